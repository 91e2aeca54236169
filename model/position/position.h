#ifndef ROPEWALK_POSITION_H
#define ROPEWALK_POSITION_H

#include "model/base/real.h"
#include "model/layout.h"
#include "model/options.h"

/* What a positional encoding is. An encoding is one file with one `const struct position` and one line in the list of
 * position.c; it fills the hooks it needs and leaves the others NULL. Hooks come in pairs, a value and its gradient
 * with the same arguments first: both or neither (position_verify).
 *
 * Notation: C width, H heads, D head_dim, T tokens, F = D / 2 pairs (of a narrower rotary width, half of that).
 * Positions are data: doubles that may repeat or skip, and decrease only for encodings that say so (`any_order`);
 * causality goes by index. Gradients are added to, never overwritten. */

/* What every hook gets to know. */
struct place {
	const struct position *position;
	const struct method *method; /* its own options' values */
	int C, H, D, layers, train_length;
	int T;                   /* tokens of a sequence, and */
	const double *positions; /* [T] their positions */
	bool unordered;          /* positions may decrease */
};

/* The largest of the first `end` positions + 1. */
double place_length(const struct place *p, int end);

/* How much of head_dim an encoding that rotates rotates. */
int place_rotary_dim(const struct place *p);

/* The encoding's parameters, and in `_back` hooks their gradients, where `declare` put them. */
struct place_parameters {
	const real *shared, *layer; /* those of all layers; those of this one */
};
struct place_gradients {
	real *shared, *layer;
};

/* What `prepare` makes of the parameters once a layer. */
struct prepared {
	real *table;              /* [H][table_reals] */
	double *inv_freq;         /* [F] and */
	double *attention_factor; /* [1] for `rotate`, if the encoding `prepares_inv_freq`; else NULL */
};

/* Rows of one head's queries or keys to rotate. */
enum side { SIDE_QUERY, SIDE_KEY };
struct rotation {
	const struct place *place;
	int rows, D, head;
	int F; /* pairs, the first 2 F of a row's D reals in some order; the rest are copied */
	enum side side;
	bool half; /* pairs are (m, m + F), not (2m, 2m + 1) */
	const double *positions; /* [rows] under the zone's map */
	double centre;           /* of a `centred` encoding: position of the middle of the query block */
	const double *inv_freq;  /* [F] of the zone */
	double attention_factor; /* multiplies the rotated rows */
	const real *cosine; /* [rows][F] attention_factor cos(position inv_freq), made in double and rounded once */
	const real *sine;        /* [rows][F] */
	const real *table;       /* [table_reals] of this head */
};
struct rotation_gradient {
	double *inv_freq;         /* [F], this (sequence, head)'s own; NULL unless the encoding prepares_inv_freq */
	double *attention_factor; /* [1], likewise */
	real *table;              /* [table_reals], this (sequence, head)'s own */
};

/* A tile of the T x T logits: some queries by some keys of one head of one sequence. Row r sees the keys of columns
 * [low[r], high[r]); what stands in other columns is ignored. Reals named with a stride are that far apart by row. */
#define TILE_COLUMNS 256 /* at most */
/* Reals from one row of a tile to the next: no power of two, so that rows do not share cache sets. */
#define TILE_STRIDE 272
struct tile {
	int rows, columns, head, D;
	const int *low, *high;                          /* [rows] */
	const double *query_positions, *key_positions;  /* [rows], [columns], under the zone's maps */
	const double *query_alone;                      /* [rows] for what goes by the query's position itself; NULL:
							   query_positions */
	const real *q, *k;                              /* [rows][D], [columns][D], after `rotate` */
	int q_stride, k_stride;
	const real *query_gate, *key_gate;              /* [rows][gate_reals], [columns][gate_reals] of this head */
	int gate_stride;
	const real *table;                              /* [table_reals] of this head */
	real *carry;                                    /* [rows][carry_reals], see struct position */
	real *saved;                                    /* [rows][saved_reals], likewise */
	bool backward;                                  /* tiles come from key 0 up, for `logits_back` */
	real scale;                                     /* of q.k, from `scale` */
};
struct tile_gradient {
	real *q, *k; /* [rows][D], [columns][D], of the rotated rows */
	int q_stride, k_stride;
	real *query_gate, *key_gate; /* with the tile's gate_stride */
	real *table; /* [table_reals], this (sequence, head)'s own */
};

struct inspection;
struct report;

struct position {
	struct entry entry;

	/* Refuses options it cannot take (an odd head_dim). May be NULL. */
	struct err (*check)(const struct model_options *options, int D);
	/* It takes positions that decrease along a sequence, so that a key may lie ahead of a query that sees it. */
	bool any_order;
	/* Refuses positions it cannot take, up to `largest`. May be NULL: any length. */
	struct err (*reach)(const struct place *p, double largest);

	/* Adds its tensors to the layout: with layer -1 those shared by all layers, then those of each layer. Names
	 * begin with "model.position." or "model.layers.N.self_attn.position.". */
	void (*declare)(const struct model_options *options, struct layout *l, int layer);
	/* Projects the parameters back into their domain after an update. */
	void (*constrain)(const struct place *p, real *shared, real *layer);
	/* For checks by differences: moves them to where the loss has no kink within a step. May be NULL. */
	void (*avoid_kinks)(const struct place *p, real *shared, real *layer);

	/* Adds its numbers to a report (inspection.h). May be NULL: no more is shown than its name and options. */
	struct err (*inspect)(const struct inspection *in, struct report *to);

	/* Once a layer: parameters -> table; gradient of the table, summed over sequences, -> parameter gradients. */
	size_t (*table_reals)(const struct place *p); /* a head's share; NULL: no table */
	/* Does `prepare` also set inv_freq and attention_factor? Such an encoding takes no scaling. NULL: no. */
	bool (*prepares_inv_freq)(const struct place *p);
	void (*prepare)(const struct place *p, struct place_parameters own, struct prepared *to);
	void (*prepare_back)(const struct place *p, struct place_parameters own, const struct prepared *made,
			     const real *d_table, const double *d_inv_freq, double d_attention_factor,
			     struct place_gradients to);

	/* Once a step: the vectors [T][C] added to the token embeddings; from their gradients summed over sequences.
	 * Rows [first, last) only, so that they can be shared out. */
	void (*embed)(const struct place *p, struct place_parameters own, int first, int last, real *vector);
	void (*embed_back)(const struct place *p, struct place_parameters own, const real *d_vector,
			   struct place_gradients to);

	/* A layer's normed input x [rows][C] -> reals a head and token [rows][H][gate_reals], kept for the backward
	 * pass. Backward adds to d_x and to the layer's parameter gradients (`to.shared` is NULL), in a slot of these
	 * rows' own that is summed later in row order. */
	int gate_reals;
	void (*gate)(const struct place *p, struct place_parameters own, int rows, const real *x, real *gate);
	void (*gate_back)(const struct place *p, struct place_parameters own, int rows, const real *x, const real *gate,
			  const real *d_gate, real *d_x, struct place_gradients to);
	/* Once all gates of a sequence are made, for each head: completes its gates [T][gate_reals], `stride` apart, by
	 * what goes along the sequence (sums). Backward, when all tiles have added to d_gate: completes that, for
	 * gate_back. May be NULL. */
	void (*gates_ready)(const struct place *p, real *gate, int stride);
	void (*gates_ready_back)(const struct place *p, const real *gate, real *d_gate, int stride);

	/* Base of its fixed inverse frequencies; such an encoding takes RoPE scalings (scaling.h). NULL: takes none. */
	double (*rope_theta)(const struct place *p);

	/* How much of head_dim it rotates, for such encodings an even number; NULL: all. */
	int (*rotary_dim)(const struct place *p);
	/* Are its pairs (m, m + F), and not (2m, 2m + 1)? NULL: no. */
	bool (*half_layout)(const struct place *p);
	/* Changes the frequencies [rotary_dim / 2] last, after any scaling. May be NULL. */
	void (*limit_inv_freq)(const struct place *p, double *inv_freq);
	/* Does it rotate this layer? NULL: all of them. */
	bool (*rotates_layer)(const struct place *p, int layer);

	/* Rows of q or k [rows][D], `from_stride` apart, to `to` [rows][D]. Backward: d_to -> adds to d_from. */
	bool centred; /* it needs `centre`, as powers of absolute positions overflow: keys are rotated for each query
			 block, */
	double (*centred_span)(const struct place *p); /* and blocks are cut so that their positions span no more; NULL:
							  anything */
	void (*rotate)(const struct rotation *r, const real *from, int from_stride, real *to);
	void (*rotate_back)(const struct rotation *r, const real *from, int from_stride, const real *d_to, real *d_from,
			    int d_from_stride, struct rotation_gradient g);

	/* The scale of q.k; NULL: 1 / sqrt(D). */
	double (*scale)(const struct place *p);

	/* Raw q.k of a tile -> final logits, in place; it applies `scale` itself. Backward: gradient of the logits, in
	 * place, -> gradient of the raw q.k, and adds to the rest. `raw` is q.k again if it says that it reads it, else
	 * NULL.
	 * carry_reals: state carried along a row from tile to tile, zero at its start. The forward pass meets tiles
	 * from the diagonal down to key 0: `logits` advances the carry and writes `saved` (saved_reals a query row).
	 * The backward pass (`backward` set) meets them from key 0 up: `logits` is called again, must give the same
	 * logits from `saved` and the carry, and changes neither; `logits_back` then advances the carry. */
	int carry_reals, saved_reals;
	bool logits_back_reads_raw;
	void (*logits)(const struct place *p, const struct tile *t, real *logits);
	void (*logits_back)(const struct place *p, const struct tile *t, const real *raw, real *d_logits,
			    struct tile_gradient g);

	/* A tile of probabilities, zero outside [low, high), -> adds to the output rows [rows][D]. In the forward pass
	 * they are not yet normalised; in the backward pass they are. Backward: d_output [rows][D] -> adds to
	 * d_probability. */
	void (*values)(const struct place *p, const struct tile *t, const real *probability, real *output);
	void (*values_back)(const struct place *p, const struct tile *t, const real *probability, const real *d_output,
			    int d_output_stride, real *d_probability, struct tile_gradient g);
};

/* The list; NULL past the last. */
const struct entry *position_at(int index);

static inline const struct position *position_of(const struct method *m)
{
	return (const struct position *)m->entry;
}

/* Is every hook there with its partner? Called for the whole list at start-up; a broken pair is a BUG. */
void position_verify(const struct position *p);
void position_verify_all(void);

/* What the hooks get to know of a model; T and positions are set by whoever knows them. */
struct place place_of(const struct model_options *options);

#endif
