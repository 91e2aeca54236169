#ifndef ROPEWALK_DECODE_H
#define ROPEWALK_DECODE_H

#include "model/transformer.h"

/* Decoding: B sequences of one length, token by token side by side, as deployed systems run a model. What is kept of
 * the tokens so far, and what a scaling whose frequencies go by the length reached (scaling_by_length) then means:
 *   recompute  the tokens alone. Each step runs the whole sequence so far under the rule for its length, so cost grows
 *              with the square of the length and more. Where frequencies do not go by the length, earlier rows would
 *              come out as they were, and the keys are kept as in `unrotated`.
 *   unrotated  keys as projected, values and gates; each step rotates all keys by the frequencies of its own length. It
 *              is the whole-sequence run under scaling_by_query, blocks of one query.
 *   rotated    keys as the step that made them rotated them, which is right where frequencies stay (reference: a query
 *              of a later length then meets keys of earlier ones, and logits are no function of the distance).
 * A factor `auto` and an encoding's rows are those of the whole length T: a deployed system is configured once. */

enum cache_kind { CACHE_RECOMPUTE, CACHE_UNROTATED, CACHE_ROTATED };

struct decoder_request {
	const struct model *model; /* its values stay while a sequence is decoded */
	int B, T;                  /* T: the longest length */
	const double *positions;   /* [T], copied; NULL: 0 .. T - 1 */
	const struct method *scaling; /* NULL: none */
	enum cache_kind cache;
};

struct decoder;

/* Checks the request (transformer_open; with `rotated`, that a key has one rotation) and opens; decoder_bytes only
 * measures. All memory is reserved here. */
struct err decoder_open(const struct decoder_request *request, struct decoder **out);
struct err decoder_bytes(const struct decoder_request *request, size_t *bytes);
void decoder_close(struct decoder *d);

/* The next step takes the first tokens of new sequences. */
void decoder_restart(struct decoder *d);

/* The next token of each sequence, token [B] -> logits [B][V] of what follows, the same bits for any number of threads;
 * NULL where they are not wanted, which is cheaper. More than T steps are a BUG. Not inside a parallel region. */
void decoder_step(struct decoder *d, const int32_t *token, real *logits);

#endif
