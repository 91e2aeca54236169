#ifndef ROPEWALK_LAYOUT_H
#define ROPEWALK_LAYOUT_H

#include "model/base/err.h"
#include "model/base/real.h"
#include "model/options.h"

#include <stddef.h>
#include <stdint.h>

/* The one table of parameters. Initialisation, optimiser, files, gradient tests and lists walk it; the value, the
 * gradient and both moments of a parameter stand at the same offset of four slabs of `size` reals. */

/* N(0, deviation^2); uniform over (0, deviation); 1; 0; the deviation itself. */
enum initialiser { INIT_NORMAL, INIT_UNIFORM, INIT_ONES, INIT_ZEROS, INIT_CONSTANT };

/* Do its values depend on the seed? */
static inline bool initialiser_random(enum initialiser i)
{
	return i == INIT_NORMAL || i == INIT_UNIFORM;
}

struct parameter {
	char name[96]; /* Hugging Face's LLaMA names; an encoding's own below `position.` */
	int rows, columns; /* rows 0: a vector of `columns` */
	size_t offset, size; /* in reals */
	enum initialiser initialiser;
	double deviation; /* of INIT_NORMAL, _UNIFORM and _CONSTANT */
	bool decayed;     /* weight decay applies */
};

/* Where one layer's tensors begin, in reals. q, k, v stand one after the other, as do gate and up, so that each group
 * is one matrix. */
struct layer_layout {
	size_t input_norm, q, k, v, o, post_norm, gate, up, down;
	size_t ssmax; /* [H], with that option */
	size_t position, position_reals; /* the encoding's own tensors of this layer */
};

struct layout {
	struct parameter *parameter; /* stb_ds array, in order of offset */
	size_t size;                 /* reals in all */
	struct layer_layout *layer;  /* stb_ds array */
	size_t embedding, position, norm, head; /* position: the encoding's tensors shared by all layers */
	int V;
};

/* Builds the table for V tokens. Errors: heads that do not divide the width, an encoding that cannot take these
 * options. layout_free takes a zeroed table too. */
struct err layout_build(const struct model_options *options, int V, struct layout *out);
void layout_free(struct layout *l);

/* The tensors of attention itself, the encoding's own and ssmax's, those of a layer once (`layer` has one row). Same
 * errors; layout_free it. */
struct err layout_position(const struct model_options *options, struct layout *out);

/* Adds a row; for layout_build and for the encodings' `declare`. rows 0 makes a vector. */
void layout_add(struct layout *l, enum initialiser initialiser, double deviation, bool decayed, int rows, int columns,
		const char *format, ...) __attribute__((format(printf, 7, 8)));

const struct parameter *layout_find(const struct layout *l, const char *name); /* NULL if absent */
int layout_count(const struct layout *l);

/* The first parameter of which a slab (size reals: values, a gradient, a moment) has an item that is not finite; NULL if
 * all are. */
const struct parameter *layout_not_finite(const struct layout *l, const real *slab);

/* Fills `value` (size reals) by the initialisers from Philox stream `init` of `seed`, at the index XXH3-64 of each
 * parameter's name, so that models of different encodings begin alike in all they share. */
void layout_initialise(const struct layout *l, uint64_t seed, real *value);

#endif
