#ifndef ROPEWALK_SCALING_H
#define ROPEWALK_SCALING_H

#include "model/base/arena.h"
#include "model/position/position.h"

/* What a RoPE scaling is: it turns (options, train_length, positions) into frequencies and zones (zones.h). A scaling is
 * one `const struct scaling` and one line in the list of scaling.c. It fills the hooks it needs; those of several parts,
 * A+B, work together:
 *   base          another rope_theta
 *   frequencies   from that base, this part's own; one part of a chain has it, or the base's own are taken
 *   after         changes them in place
 *   query_scale   multiplies each query by a number of its own, before any bias
 *   zones         which keys a query sees and at which positions; at most one part of a chain has it */

/* What a scaling gets to know. */
struct scaling_request {
	const struct method *method; /* the scaling's own options */
	double rope_theta;
	int D, train_length; /* D: the width that is rotated */
	double length; /* largest position + 1 */
	double factor; /* as given, or for auto max(1, length / train_length) */
};

struct zones;
struct zones_request {
	const struct method *own;     /* the part whose hook `zones` this is */
	const struct method *scaling; /* the whole chain */
	const struct model_options *options;
	const struct place *place;    /* with the sequence's positions */
};

struct scaling {
	struct entry entry;
	bool any_encoding; /* it leaves frequencies alone, so that encodings without them take it too */
	bool tempers;      /* it multiplies logits by a number of its own, the same for all queries, */
	bool (*tempered)(const struct method *own); /* if this says so; NULL: always */
	/* Refuses what it cannot take (ntk with head_dim 2). May be NULL. */
	struct err (*check)(const struct scaling_request *r);
	double (*base)(const struct scaling_request *r);
	/* inv_freq [D / 2] and attention factor for the request's length. */
	void (*frequencies)(const struct scaling_request *r, double *inv_freq, double *attention_factor);
	void (*after)(const struct scaling_request *r, double *inv_freq);
	/* The share of each pair [D / 2] that is kept, where the rest is interpolated: 1 .. 0 along a ramp. NULL: it
	 * has no ramp. */
	void (*ramp)(const struct scaling_request *r, double *kept);
	/* Of a query at this position; `length` of the request is that of the whole sequence. */
	double (*query_scale)(const struct scaling_request *r, double position);
	void (*zones)(const struct zones_request *q, struct arena *a, struct zones *out);
	/* Would `zones` make anything but one zone of all queries at their own positions? NULL: yes. */
	bool (*zoned)(const struct method *own);
	bool in_order; /* those tell near keys from far ones, and want positions that never decrease */
	/* Do its options leave the factor without effect? NULL: never. */
	bool (*settled)(const struct method *own);
	/* The factor in force, where that is not request.factor (dynamic's ratio). May be NULL. */
	double (*ratio)(const struct scaling_request *r);
	/* In words, what goes by the length and is no option `factor`: "ratio max(1, ...)". Returns NULL where its
	 * options leave nothing that does. NULL: nothing ever does. */
	const char *(*rule)(const struct method *own);
};

const struct entry *scaling_at(int index);

/* Rows that several scalings share: their flags keep the bare name (--factor). */
#define FACTOR_OPTION                                                                                          \
	{ .name = "factor", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto", .least = 1, .most = 1e9, \
	  .results = true, .shared = true, .help = "extension factor s; auto: max(1, length / train_length)" }
#define BLOCK_NAME "block"
#define BLOCK_OPTION                                                                                           \
	{ .name = BLOCK_NAME, .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,                  \
	  .unit = "queries", .results = true,                                                                     \
	  .help = "each block of queries goes by the length that ends with it; 0: by that of the whole sequence" }
#define BLOCK_RULE ", length that of the sequence or, with block, up to the end of the query's block"

static inline const struct scaling *scaling_of(const struct method *m)
{
	return (const struct scaling *)m->entry;
}

/* `joins` of every scaling but none: refuses parts that would undo each other, with the reason. */
struct err scaling_joins(const struct method *first);

/* Checks that the scaling can be used with this encoding: one that changes frequencies needs some (`rope_theta`)
 * that are fixed, one that scales queries stands not beside ssmax, and options may be such as it cannot take.
 * `length` is the largest position + 1. */
struct err scaling_check(const struct method *scaling, const struct model_options *options, double length);

/* The request that one part of a scaling answers, resolved. */
struct scaling_request scaling_part_request(const struct method *part, const struct model_options *options,
					    double length);

/* The request of the part that leads a scaling: the one that makes the frequencies, else the first that has a factor.
 * For records, inspection and tests. */
struct scaling_request scaling_request(const struct method *scaling, const struct model_options *options,
				       double length);

/* max(1, length / train_length): what `auto` stands for, and the `ratio` of dynamic scalings; and that one's `rule`. */
double scaling_length_ratio(const struct scaling_request *r);
const char *scaling_length_rule(const struct method *own);

/* The factor in force: as given or auto; 1 for `none`; for dynamic its ratio. */
double scaling_factor(const struct scaling_request *r);

/* Has this one part a factor, and does it take effect? */
bool scaling_heeds_factor(const struct method *part);

/* Has this scaling a factor that stands for the length ratio? (none and dynamic have not.) */
bool scaling_has_factor(const struct method *scaling);

/* Do two scalings give a sequence of this length the same zones to the bit? (Not claimed of those with zones of their
 * own.) */
bool scaling_same(const struct method *a, const struct method *b, const struct model_options *options, double length);

/* The base frequencies of a request, rope_theta^(-2m/D). */
void scaling_base(const struct scaling_request *r, double *inv_freq);

/* What all parts together make of an encoding with `rope_theta`: inv_freq [rotated / 2] and the attention factor. */
void scaling_frequencies(const struct method *scaling, const struct model_options *options, double length,
			 double *inv_freq, double *attention_factor);

/* The same for queries that reach `length` in a sequence of length `whole`: a factor auto goes by the whole. */
void scaling_frequencies_within(const struct method *scaling, const struct model_options *options, double length,
				double whole, double *inv_freq, double *attention_factor);

/* The scaling with each factor that is auto as it is at this length: from then on it stays. */
struct method scaling_resolved(const struct method *scaling, const struct model_options *options, double length);

/* What all parts together multiply a query at this position by. */
double scaling_query_scale(const struct method *scaling, const struct model_options *options, double length,
			   double position);
bool scaling_has_query_scale(const struct method *scaling);

/* Do its frequencies go by the length that is reached (some part has the option `block`)? And the same scaling by the
 * length that each query reaches: blocks of one where the whole sequence was one. */
bool scaling_by_length(const struct method *scaling);
struct method scaling_by_query(const struct method *scaling);

/* The part with zones of its own; NULL: there is none. */
const struct method *scaling_zoned(const struct method *scaling);

#endif
