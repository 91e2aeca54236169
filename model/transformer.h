#ifndef ROPEWALK_TRANSFORMER_H
#define ROPEWALK_TRANSFORMER_H

#include "model/layout.h"
#include "model/position/zones.h"

/* A model is what a file holds: options, layout and values. */
struct model {
	struct model_options options;
	int V;
	struct layout layout;
	real *value; /* [layout.size] */
	struct arena memory;
};

/* Builds the layout and reserves zeroed values; layout_initialise or a file fills them. model_close takes a zeroed
 * struct too. */
struct err model_open(const struct model_options *options, int V, struct model *out);
void model_close(struct model *m);

/* Takes over the values of every tensor that `from` has too, by name and size; the others stay. */
void model_inherit(struct model *m, const struct model *from);

/* A transformer is a model's workspace for batches of one shape: B sequences of T tokens at given positions under one
 * scaling. Its memory grows linearly with B T. It may be used again and again; the model's values may change between
 * calls. */
struct transformer;

struct attention_probe;

struct transformer_request {
	const struct model *model;
	int B, T;
	int T_least;                  /* the least that transformer_resize will ask for; 0: it will not */
	const double *positions;      /* [T], or with `each` [B][T], copied; NULL: 0 .. T - 1 */
	bool each;                    /* sequences differ in their positions */
	const struct method *scaling; /* NULL: none */
	const struct pair_sets *pairs; /* how each head's pairs turn; NULL: as the scaling says */
	const struct attention_probe *probe; /* looks on at every layer's attention (attention.h); NULL: none */
	bool gradients;               /* keeps what transformer_backward needs */
};

/* Checks the request (length against the encoding's reach, scaling against encoding, memory against the machine) and
 * opens; transformer_bytes only measures what it would reserve. */
struct err transformer_open(const struct transformer_request *request, struct transformer **out);
struct err transformer_bytes(const struct transformer_request *request, size_t *bytes);
void transformer_close(struct transformer *t);

/* New positions, of the shape the transformer was opened with. Errors: what the encoding or the scaling cannot take. */
struct err transformer_move(struct transformer *t, const double *positions);

/* Another length, T_least .. T of the request, in the memory it has; positions as in the request. Errors likewise. */
struct err transformer_resize(struct transformer *t, int T, const double *positions);

/* What a forward pass found. Arrays are the transformer's own, valid until the next call. */
struct outcome {
	int64_t scored;
	double nll_sum;      /* nats, over scored tokens, summed in double in index order */
	int64_t correct;     /* scored tokens whose target is the likeliest token (ties: the lowest id) */
	const double *nll;   /* [B][T], 0 where not scored */
	const int32_t *best; /* [B][T] likeliest token, -1 where not scored */
};

/* token [B][T]; target [B][T], -1 where not scored; ids outside 0 .. V - 1 are a BUG. Logits are computed at scored
 * positions only, unless `logits` [B][T][V] is given, which then takes all of them. */
struct outcome transformer_forward(struct transformer *t, const int32_t *token, const int32_t *target, real *logits);

/* The logits [B][V] of each sequence's last token alone, without gradients. */
void transformer_last(struct transformer *t, const int32_t *token, real *logits);

/* Gradient of the mean NLL over the scored tokens of the last forward pass, into `gradient` [layout.size], which is
 * overwritten. No scored token is a BUG. */
void transformer_backward(struct transformer *t, real *gradient);

#endif
