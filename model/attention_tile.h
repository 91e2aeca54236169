#ifndef ROPEWALK_ATTENTION_TILE_H
#define ROPEWALK_ATTENTION_TILE_H

#include "model/attention.h"
#include "model/base/product.h"

/* The inside of attention: one head's keys and values (attention_keys.c), and blocks of its queries against them, tile
 * by tile (attention_tile.c). Private to these and attention.c. */

#define KEY_BLOCK TILE_COLUMNS
/* Rows and columns as products take them together. */
#define ROW_BLOCKS ((QUERY_BLOCK + PRODUCT_ROWS - 1) / PRODUCT_ROWS)
#define COLUMN_BLOCKS ((KEY_BLOCK + PRODUCT_ROWS - 1) / PRODUCT_ROWS)

/* One thread's scratch. A tile is [QUERY_BLOCK][TILE_STRIDE]. */
struct attention_thread {
	real *logits, *raw, *d_logits;                /* tiles */
	real *q, *d_q;                                /* [together][QUERY_BLOCK][D], rotated, wanted rows only */
	real *k, *d_k;                                /* [together][T][D], rotated */
	real *k_turned, *v_turned;                    /* [together], [1] K^T and V^T, see product_turn */
	real *v, *d_v;                                /* [T][D] */
	real *range;                                  /* [QUERY_BLOCK][D] rows of q of a range, wanted or not */
	real *d_output;                               /* [QUERY_BLOCK][D] wanted rows */
	double *position, *alone;                     /* [QUERY_BLOCK] of the wanted rows, in one zone */
	double *centre;                               /* [together] of a `centred` encoding: the middle of the block */
	real *unscaled;                               /* [together][QUERY_BLOCK][D] q before ssmax, for its gradient */
	real *accumulator;                            /* [QUERY_BLOCK][D] */
	real *greatest, *sum, *correction, *delta;    /* [QUERY_BLOCK] */
	real *carry;                                  /* [QUERY_BLOCK][carry_reals] */
	int *low, *high;                              /* [QUERY_BLOCK] */
	/* The tile by blocks of rows and of columns: columns that rows of a block see, those of them that are read
	 * later (0 where a row does not see them), and rows that see columns of a block. */
	struct span *columns, *read;                  /* [ROW_BLOCKS] */
	struct span *rows;                            /* [COLUMN_BLOCKS] */
};

struct attention {
	const struct place *place;
	const struct zones *zones; /* [sequences] */
	struct pair_sets pairs;
	int sequences; /* whose positions differ: 1 or B */
	int B, T, C, H, D, F, gate_reals, carry_reals, saved_reals;
	size_t table_reals;
	bool gradients, rotates, rotates_keys, half, learns_frequencies, ssmax;
	real scale;
	/* [sequences][sets][together][2 sides][T][F] of the current group of zones */
	real *cosine, *sine;
	int angles_of;       /* the group these are of; -1: none */
	int group, together; /* zones group .. group + together - 1 share the current interval */
	real *table, *table_slot; /* [layers][H][table_reals], [layers][B][H][table_reals] */
	real *d_table;            /* [H][table_reals] */
	double *frequency_slot, *d_frequency; /* [F] inverse frequencies, then the attention factor */
	double *ssmax_slot;                   /* [layers][B][H] */
	struct attention_thread *thread;
};

void attention_shape(struct attention *a, const struct attention_request *q);
void attention_thread_place(const struct attention *a, struct attention_thread *t, struct arena *arena);

/* One (sequence, head) at work: pointers to its first token's reals. */
struct attention_head {
	const struct attention *a;
	struct attention_thread *scratch;
	int head, sequence, set;  /* set: of pairs */
	int keys;                 /* that are there: 0 .. keys - 1 */
	const struct zone *zone;  /* the first of the current group, of this sequence */
	const int32_t *wanted;    /* of this sequence; NULL: all */
	const real *q, *k, *v;    /* stride 3C */
	real *gate;               /* stride H gate_reals */
	real *output;             /* stride C */
	real *lse;                /* stride 1 */
	real *saved;              /* stride saved_reals */
	real *scores;             /* stride T; or NULL */
	const struct attention_probe *probe; /* or NULL */
	int layer, index, thread;            /* for it */
	const real *table;
	const real *d_output;     /* stride C */
	real *d_q, *d_k, *d_v;    /* stride 3C */
	real *d_gate;             /* stride H gate_reals */
	real *d_table;
	double *d_frequency;
	real ssmax;
	double *d_ssmax;
};

/* Head `index` = b H + h, working in a thread's scratch; its gradients. */
struct attention_head attention_head(const struct attention *a, const struct attention_layer *l, int index, int thread);
void attention_head_gradients(struct attention_head *h, const struct attention_layer *l, struct attention_gradients g,
			      int index);

/* The rotation of rows of a zone; `first` counts from the zone's begin for queries, from key 0 for keys. */
struct rotation attention_rotation(const struct attention_head *h, int zone, enum side side, int first, int rows);
size_t attention_angles(const struct attention *a, int sequence, int set, int zone, enum side side);
struct rotation_gradient attention_rotation_gradient(const struct attention_head *h);

/* Keys from `key` on, which is a multiple of KEY_BLOCK, in one zone. */
struct attention_keys {
	const real *k, *v, *k_turned, *v_turned;
	real *d_k, *d_v;
};
struct attention_keys attention_keys(const struct attention_head *h, int zone, int key);

/* Takes the head's values for the current group of zones into the scratch; adds their gradients to d_v. */
void attention_enter_values(struct attention_head *h);
void attention_leave_values(struct attention_head *h);

/* The same of its keys, rotated. Around a group, or around each block of queries if the encoding is centred. */
void attention_enter_keys(struct attention_head *h);
void attention_leave_keys(struct attention_head *h);

/* The wanted queries of first .. last - 1 (at most QUERY_BLOCK, of the current group of zones) against all their keys;
 * then their gradients. */
void attention_rows(struct attention_head *h, int first, int last);
void attention_rows_back(struct attention_head *h, int first, int last);

#endif
