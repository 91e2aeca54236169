#ifndef ROPEWALK_WEIGHTS_H
#define ROPEWALK_WEIGHTS_H

#include "model/base/safetensors.h"
#include "model/transformer.h"

/* A model and a safetensors file. Ours carry metadata: "format" "ropewalk-1", "options" (a JSON object of texts, by
 * option name), "rope_layout" "interleaved" or "half", "vocabulary", "xxh3_128" of the data and "xxh3_128_metadata"
 * of all of these (XXH3-128 of each key and value with its zero byte, by key). */

#define WEIGHTS_SUM "xxh3_128"

/* Writes atomically. `extra` metadata (may be NULL) is added: what data and training the model comes from. */
struct err weights_write(const struct model *m, const char *path, const struct metadata *extra, int extra_count);

/* Several slabs of one layout in one file, as a checkpoint has them: the tensors of a slab are named `prefix` and
 * then as in the layout; `format` takes the place of "ropewalk-1". They are read back exactly: every tensor in its
 * shape and in the dtype of `real`, none beside them, and the checksum must agree. */
struct weights_slab {
	const char *prefix;
	real *value;
};
struct err weights_write_slabs(const struct model *m, const struct weights_slab *slab, int slabs, const char *format,
			       const char *path, const struct metadata *extra, int extra_count);
struct err weights_fill_slabs(const struct model *m, const struct safetensors *file, const char *path,
			      const struct weights_slab *slab, int slabs);

/* How the pairs of a model that rotates stand, as its files say it: "interleaved" or "half". */
const char *weights_rope_layout(const struct model_options *options);

/* Does the file carry our metadata? */
bool weights_ours(const struct safetensors *file);

/* The options a file of ours was written with. */
struct err weights_options(const struct safetensors *file, struct model_options *options, int *V);
struct err weights_format_options(const struct safetensors *file, const char *format, struct model_options *options,
				  int *V);

/* Fills an open model from the file's tensors, named `prefix` (may be "") and then as in the layout, or by one of the
 * accepted other names (pos_emb.weight, t5.table, t5.layers.N.table). Every tensor of the layout must be there in its
 * shape. With `exact` a tensor that the layout lacks is an error and the checksum must agree; without, the names of
 * such tensors are appended to `ignored` (may be NULL). A file that says another rope_layout than the model's is
 * refused, whoever wrote it. */
struct err weights_fill(struct model *m, const struct safetensors *file, const char *path, const char *prefix,
			bool exact, struct text_builder *ignored);

/* Sizes of a file that is not ours, from the shapes of its tensors: layers, width, hidden, tied, V, and for a learned
 * table train_length; heads, encoding and the rest stay as in `options`. */
struct err weights_sizes(const struct safetensors *file, const char *path, const char *prefix,
			 struct model_options *options, int *V);

/* train_length from a learned table's rows, where the file has one. */
void weights_rows(const struct safetensors *file, const char *prefix, struct model_options *options);

/* Usage error if a model of these options is large and has more than twice the numbers that the file's tensors hold:
 * before memory is taken for what a small file only claims. */
struct err weights_suffice(const struct safetensors *file, const struct model_options *options, int V);

/* A model from a file of ours: options, layout, values. `path` is for errors; weights_read reads the file itself. */
struct err weights_open(const struct safetensors *file, const char *path, struct model *out);
struct err weights_read(const char *path, struct model *out);

#endif
