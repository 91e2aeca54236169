#ifndef ROPEWALK_COMPUTED_H
#define ROPEWALK_COMPUTED_H

#include "runs/claims/claims.h"

/* Claims that arithmetic settles, by the code that training and evaluation run. */

/* computed.c: tables, frequencies, parameters. */
struct err claim_ntk_ends(struct finding *out);
struct err claim_dynamic_inside(struct finding *out);
struct err claim_learned_ends(struct finding *out);
struct err claim_t5_parameters(struct finding *out);
struct err claim_near_is_large(struct finding *out);

/* vectors.c: what becomes of vectors, scores and logits. */
struct err claim_norms_stay(struct finding *out);
struct err claim_rotations_alone(struct finding *out);
struct err claim_order_lost(struct finding *out);

/* Default options of a model with this encoding ("rope(theta=10000)"), D reals a head and a trained length. */
struct model_options claim_model(const char *encoding, int D, int train_length);
struct method claim_scaling(const char *text);

#endif
