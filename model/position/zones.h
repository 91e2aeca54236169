#ifndef ROPEWALK_ZONES_H
#define ROPEWALK_ZONES_H

#include "model/position/scaling.h"

#include <stdint.h>

/* Zones: what a scaling makes of one sequence. A zone says, for an interval of queries, which keys they see and at which
 * positions and frequencies. Arrays are indexed by the query's or key's index in the sequence, less the offset in the
 * comment. Zones of the same interval are disjoint for every row; a key in no zone is masked. */
struct zone {
	int begin, end;               /* queries begin .. end - 1 */
	const int *low, *high;        /* [end - begin] row i sees keys low[i - begin] .. high[i - begin] - 1 <= i */
	const double *query_position; /* [end - begin] */
	const double *key_position;   /* [T] */
	const double *query_alone;    /* [end - begin] the query's position where it counts by itself, in no distance;
					 NULL: query_position */
	const double *query_scale;    /* [end - begin] multiplies the rotated query; NULL: 1 */
	double *inv_freq;             /* [F]; NULL for encodings that do not rotate */
	double attention_factor;
};

/* Sorted by `begin`; zones of one interval stand together, and intervals do not overlap. */
struct zones {
	struct zone *zone;
	int count;
	int together; /* the most zones that share an interval */
};

/* How a pair of one head of one layer turns, to take a scaling or a model apart. */
enum pair_kind {
	PAIR_SCALED,  /* by the zone's frequency and attention factor */
	PAIR_TRAINED, /* by the encoding's own frequency, unscaled */
	PAIR_STILL,   /* not at all: its angle is 0 everywhere */
	PAIR_REMOVED, /* it adds nothing to the logits */
};

/* Which of `count` sets of kinds a head takes. */
struct pair_sets {
	int count;
	const uint8_t *kind;   /* [count][F] */
	const uint8_t *set;    /* [layers][H] */
	const double *trained; /* [F] the frequencies of PAIR_TRAINED; NULL where there is none */
};

/* For `zones` hooks: a zone of queries begin .. end - 1 that see every key up to their own, at the sequence's
 * positions, with the frequencies of the length that ends with the last of them. Its arrays are new but for the
 * positions, and may be changed while a->base is set. */
struct zone zone_plain(const struct zones_request *q, struct arena *a, int begin, int end);

/* For `zones` hooks: a plain zone for each block of queries, keys rotated anew for each; 0: one of all. */
void zones_by_blocks(const struct zones_request *q, int64_t block, struct arena *a, struct zones *out);

/* For `zones` hooks that keep near distances: two zones of all queries, the nearer first: keys at a distance below
 * `window` at their own positions, and those before them at what the caller then writes to `far`, [T] each. False while
 * measuring. `window` may be infinite, which leaves the far zone empty. */
struct far_zone {
	double *query_position, *key_position;
};
bool zones_near_far(const struct zones_request *q, double window, struct arena *a, struct far_zone *far,
		    struct zones *out);

/* The window of such a method, from its option: as given, or for 0 half the trained length; one that is given must be
 * below the trained length. */
double near_window(int train_length, int64_t given);
struct err near_window_check(const struct scaling_request *r, int64_t given);

/* `zones` and `zoned` of scalings that have a BLOCK_OPTION. */
void zones_by_block_option(const struct zones_request *q, struct arena *a, struct zones *out);
bool has_block(const struct method *own);

/* Places the zones of a sequence in the arena (measuring or placing), after scaling_check. */
void scaling_zones(const struct method *scaling, const struct model_options *options, const struct place *p,
		   struct arena *a, struct zones *out);

/* The longest distance, under the zones' maps, between a query and a key that it sees. */
double zones_longest_distance(const struct zones *z);

/* Is there one rotation a zone and key, its own step's, that later queries could find it under: does every zone see a
 * key at the same position? */
bool zones_turn_once(const struct zones *z);

/* Pairs that an encoding rotates: half its rotary width, 0 if it does not rotate. */
int place_pairs(const struct place *p);

/* Does an encoding that rotates do so in this layer? */
bool place_rotates(const struct place *p, int layer);

/* The sets in force: `given` (NULL: all pairs scaled), and for layers that the encoding does not rotate one more in
 * which all are still. */
void place_pair_sets(const struct place *p, const struct pair_sets *given, struct arena *a, struct pair_sets *out);

#endif
