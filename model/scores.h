#ifndef ROPEWALK_SCORES_H
#define ROPEWALK_SCORES_H

#include "model/transformer.h"

/* What one attention layer makes of given queries, keys and values under an encoding and a scaling, by the code that
 * training and evaluation run (attention.h). The T x T logits are kept, so memory grows with the square of T. */

/* A model of the tensors of attention itself, the encoding's own and ssmax's of the first layer; model_close it.
 * Errors: options that the encoding cannot take. */
struct err scores_model(const struct model_options *options, struct model *out);

struct scores_request {
	const struct model *model; /* of scores_model, filled */
	const struct method *scaling;
	int B, T;
	const double *positions;  /* [T] */
	const real *q, *k, *v;    /* [B][H][T][D] before any rotation; v NULL: zeros */
	const real *x;            /* [B][T][C], for encodings with a gate or vectors; else unused */
};

/* Bytes of scores_compute beside its arguments. Errors: positions past the encoding's reach, a scaling that does not
 * fit, sizes past 32 bits. */
struct err scores_bytes(const struct scores_request *q, size_t *bytes);

/* scores [B][H][T][T]: logits before softmax, -inf where masked; output [B][H][T][D], may be NULL. */
struct err scores_compute(const struct scores_request *q, real *scores, real *output);

/* embedded [B][T][C] = x + the encoding's vectors, of an encoding that has them. Same errors as scores_bytes. */
struct err scores_embed(const struct scores_request *q, real *embedded);

#endif
