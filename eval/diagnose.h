#ifndef ROPEWALK_DIAGNOSE_H
#define ROPEWALK_DIAGNOSE_H

#include "eval/perplexity.h"

/* Where attention goes, head by head, while a model is evaluated: what a failure past the trained length looks like
 * from the inside. Rows are attention rows of two kinds of tokens:
 *
 *	queries	the scored tokens of one group of the task. Token t has its evidence at e = t - distance.
 *	sources	the tokens e that are evidence for some query, each once a sequence.
 *
 * A model of two layers that recalls does so by induction (Olsson et al. 2022, 2209.11895): in a lower layer each token
 * takes up what stands right before it, so that a value knows its key; in a higher one the query finds the value by
 * that. So the right token of a query is e, which counts in the layer that answers; of the layers below, what counts is
 * the link: what a source gives the token before it. */

/* The keys that a query sees, each in the first of these that fits, so that their shares add up to 1. */
enum key_class {
	KEY_RIGHT,  /* e */
	KEY_BEFORE, /* e - 1: the key of the pair */
	KEY_SELF,   /* t */
	KEY_BOS,    /* 0 */
	KEY_ALIKE,  /* look-alikes: the same token as e, or as t, as an earlier query of the same key */
	KEY_RIVAL,  /* the evidence for another query of the sequence, if only a later one */
	KEY_FILLER, /* a token that the task may draw as filler */
	KEY_REST,
	KEY_CLASSES
};

/* One head: means over its rows. A key that is masked, or whose logit is -inf, is not seen. */
struct diagnosed_head {
	int64_t queries;
	double entropy;            /* nats, -sum p ln p of a row; exp of it: effective number of keys */
	double share[KEY_CLASSES]; /* of the attention of a row */
	double beyond;             /* share on keys at least train_length tokens back, of whatever class */
	double deviation;          /* standard deviation of a row's logits over the keys it sees */
	double peak;               /* their maximum less their mean */
	double outside; /* of the variance of q.k the share of the pairs that are outside, sum of cov(theirs, all) / sum
			   of var(all) over rows; NAN where there is no pair, or logits are not of q.k alone */
	int64_t sources;           /* 0 in the last layer, where no one reads them */
	double link;               /* share of a source on the token right before it */
};

/* A pair of rotated components. */
struct diagnosed_pair {
	double trained_inv_freq, inv_freq; /* of training; in force (of several zones the last) */
	double trained_angle, angle;       /* at the longest distance, in radians */
	bool outside;                      /* it meets angles that training did not, see rope_angle_is_new */
};

struct diagnosis {
	struct eval_result result;
	int layers, heads, pairs, outside; /* outside: so many pairs are */
	struct diagnosed_head *head;       /* [layers][heads] */
	struct diagnosed_pair *pair;       /* [pairs] */
};

struct diagnose_request {
	struct eval_request eval; /* without watch or kv */
	int group;                /* an index into the task's */
	int trained_length;       /* tokens of the longest training sequence */
};

/* eval_run of the request, looking on; check it by eval_check. Memory is linear in the length. No encoding is refused:
 * attention is looked at as it is, whatever made it. diagnosis_free takes a zeroed struct too. */
struct err diagnose_run(const struct diagnose_request *request, eval_progress *progress, void *data,
			struct diagnosis *out);
void diagnosis_free(struct diagnosis *d);

#endif
