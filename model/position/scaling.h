#ifndef ROPEWALK_SCALING_H
#define ROPEWALK_SCALING_H

#include "model/base/arena.h"
#include "model/position/position.h"

/* What a RoPE scaling is: it turns (options, train_length, positions) into zones. A scaling is one `const struct
 * scaling` and one line in the list of scaling.c. */

/* A zone says, for an interval of queries, which keys they see and at which positions and frequencies. Arrays are
 * indexed by the query's or key's index in the sequence, less the offset in the comment. Zones of the same interval
 * are disjoint for every row; a key in no zone is masked. */
struct zone {
	int begin, end;               /* queries begin .. end - 1 */
	const int *low, *high;        /* [end - begin] row i sees keys low[i - begin] .. high[i - begin] - 1 <= i */
	const double *query_position; /* [end - begin] */
	const double *key_position;   /* [T] */
	double *inv_freq;             /* [F]; NULL for encodings that do not rotate */
	double attention_factor;
};

/* Sorted by `begin`; zones of one interval stand together, and intervals do not overlap. */
struct zones {
	struct zone *zone;
	int count;
	int together; /* the most zones that share an interval */
};

/* What a scaling gets to know. */
struct scaling_request {
	const struct method *method; /* the scaling's own options */
	double rope_theta;
	int D, train_length;
	double length; /* largest position + 1 */
	double factor; /* as given, or for auto max(1, length / train_length) */
};

struct scaling {
	struct entry entry;
	bool any_encoding; /* it leaves frequencies alone, so that encodings without them take it too */
	/* Refuses what it cannot take (ntk with head_dim 2). May be NULL. */
	struct err (*check)(const struct scaling_request *r);
	/* inv_freq [F] and attention factor for the request's length. */
	void (*frequencies)(const struct scaling_request *r, double *inv_freq, double *attention_factor);
	/* The share of each pair [F] that is kept, where the rest is interpolated: 1 .. 0 along a ramp. NULL: it has no
	 * ramp. */
	void (*ramp)(const struct scaling_request *r, double *kept);
	/* Its zones, where they are not one zone of all queries at the sequence's own positions. May be NULL. */
	void (*zones)(const struct method *scaling, const struct model_options *options, const struct place *p,
		      struct arena *a, struct zones *out);
	/* The factor in force, where that is not request.factor (dynamic's ratio). May be NULL. */
	double (*ratio)(const struct scaling_request *r);
};

const struct entry *scaling_at(int index);

/* Rows that several scalings share: their flags keep the bare name (--factor). */
#define FACTOR_OPTION                                                                                          \
	{ .name = "factor", .kind = OPTION_NUMBER, .initial = "auto", .choices = "auto", .least = 1, .most = 1e9, \
	  .results = true, .shared = true, .help = "extension factor s; auto: max(1, length / train_length)" }

static inline const struct scaling *scaling_of(const struct method *m)
{
	return (const struct scaling *)m->entry;
}

/* Checks that the scaling can be used with this encoding: one that changes frequencies needs some (`rope_theta`), and
 * options may be such as it cannot take. `length` is the largest position + 1. */
struct err scaling_check(const struct method *scaling, const struct model_options *options, double length);

/* For `zones` hooks: a zone of queries begin .. end - 1 that see every key up to their own, at the sequence's
 * positions, with the frequencies of the length that ends with the last of them. */
struct zone zone_plain(const struct method *scaling, const struct model_options *options, const struct place *p,
		       struct arena *a, int begin, int end);

/* The request a scaling answers, resolved: for records, inspection and tests. */
struct scaling_request scaling_request(const struct method *scaling, const struct model_options *options,
				       double length);

/* The factor in force: as given or auto; 1 for `none`; for dynamic its ratio. */
double scaling_factor(const struct scaling_request *r);

/* Does this scaling have a factor that stands for the length ratio? (none and dynamic do not.) */
bool scaling_has_factor(const struct method *scaling);

/* Do two scalings give a sequence of this length the same zones to the bit? (Not claimed of those with zones of their
 * own.) */
bool scaling_same(const struct method *a, const struct method *b, const struct model_options *options, double length);

/* The base frequencies of a request, rope_theta^(-2m/D). */
void scaling_base(const struct scaling_request *r, double *inv_freq);

/* Places the zones of a sequence in the arena (measuring or placing), after scaling_check. */
void scaling_zones(const struct method *scaling, const struct model_options *options, const struct place *p,
		   struct arena *a, struct zones *out);

/* The longest distance, under the zones' maps, between a query and a key that it sees. */
double zones_longest_distance(const struct zones *z);

#endif
