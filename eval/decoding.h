#ifndef ROPEWALK_DECODING_H
#define ROPEWALK_DECODING_H

#include "eval/perplexity.h"

/* A lot of an evaluation's sequences decoded token by token (model/decode.h), for perplexity.c. */

/* Is the request evaluated so? Not where recomputing each step would give what the whole sequences do. */
bool decoding_wanted(const struct eval_request *r);

/* `lot` sequences at positions [length] (NULL: 0 .. length - 1). Errors: those of decoder_open. */
struct decoding;
struct err decoding_open(const struct eval_request *r, int lot, const double *positions, struct decoding **out);
struct err decoding_bytes(const struct eval_request *r, int lot, const double *positions, size_t *bytes);
void decoding_close(struct decoding *d);

/* token, target [lot][length] -> outcome, as transformer_forward gives it. `progress` (may be NULL) is called after
 * each step with the share of the work that is done, 0 .. 1; an error of it ends the work. */
typedef struct err decoding_progress(void *data, double share);
struct err decoding_run(struct decoding *d, const int32_t *token, const int32_t *target, decoding_progress *progress,
			void *data, struct outcome *out);

#endif
