#include "model/weights.h"

#include "model/base/stb.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FORMAT "ropewalk-1"

/* What earlier versions called interleaved pairs. */
#define ADJACENT "adjacent"

#define CHANGED "The file was changed or damaged after it was written."
#define SUM_KEY WEIGHTS_SUM
#define METADATA_SUM_KEY "xxh3_128_metadata"

static void print_sum(XXH128_hash_t hash, char text[33])
{
	snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

/* XXH3-128 over the tensors in the layout's order, as 32 hex digits. */
static void checksum(const struct tensor *tensor, int count, char text[33])
{
	XXH3_state_t *state = XXH3_createState();
	BUG_IF(!state, "no memory for a checksum");
	XXH3_128bits_reset(state);
	for (int i = 0; i < count; i++)
		XXH3_128bits_update(state, tensor[i].data,
				    (size_t)tensor_items(&tensor[i]) * dtype_size(tensor[i].dtype));
	print_sum(XXH3_128bits_digest(state), text);
	XXH3_freeState(state);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct metadata *)a)->key, ((const struct metadata *)b)->key);
}

/* The same over the metadata by key, each key and value with its zero byte; the sum itself is left out. */
static void metadata_sum(const struct metadata *metadata, int count, char text[33])
{
	struct metadata *list = NULL;
	struct text_builder b = { 0 };
	for (int i = 0; i < count; i++)
		if (strcmp(metadata[i].key, METADATA_SUM_KEY))
			arrput(list, metadata[i]);
	if (list)
		qsort(list, arrlenu(list), sizeof *list, compare_keys);
	for (ptrdiff_t i = 0; i < arrlen(list); i++)
		text_add(&b, "%s%c%s%c", list[i].key, 0, list[i].value, 0);
	print_sum(XXH3_128bits(b.data, b.size), text);
	text_builder_free(&b);
	arrfree(list);
}

static struct tensor tensor_of(const struct parameter *p, const real *value)
{
	struct tensor t = { .name = p->name, .dtype = REAL_DTYPE, .data = value + p->offset };
	if (p->rows)
		t.shape[t.rank++] = p->rows;
	t.shape[t.rank++] = p->columns;
	return t;
}

const char *weights_rope_layout(const struct model_options *options)
{
	struct place p = place_of(options);
	return p.position->half_layout && p.position->half_layout(&p) ? "half" : "interleaved";
}

/* Weights of one layout under the other run, and mean nothing. */
static struct err check_rope_layout(const struct safetensors *file, const struct model_options *options)
{
	const char *layout = safetensors_metadata(file, "rope_layout");
	if (!layout || !position_of(&options->encoding)->rotate)
		return OK;
	const char *wanted = weights_rope_layout(options);
	if (!strcmp(layout, wanted) || (!strcmp(layout, ADJACENT) && !strcmp(wanted, "interleaved")))
		return OK;
	return err_usage("Read it with the layout it was trained with (--rope-layout).",
			 "rope_layout %.40s where %s is read", layout, wanted);
}

/* The options as one JSON object of texts. */
static char *options_json(const struct model_options *options)
{
	json_t *object = json_object();
	for (const struct option *o = model_option_rows; o->name; o++) {
		struct text_builder b = { 0 };
		const char *field = (const char *)options + o->offset;
		if (o->kind == OPTION_METHOD)
			method_identity((const struct method *)(const void *)field, &b);
		else
			option_print(o, *(const union option_value *)(const void *)field, &b);
		json_object_set_new(object, o->name, json_string(b.data));
		text_builder_free(&b);
	}
	char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(object);
	BUG_IF(!text, "no memory for a model's options");
	return text;
}

/* The tensors of all slabs, their names in memory that name_free gives back. */
static struct tensor *slab_tensors(const struct layout *l, const struct weights_slab *slab, int slabs)
{
	struct tensor *tensor = NULL;
	for (int s = 0; s < slabs; s++)
		for (int i = 0; i < layout_count(l); i++) {
			struct tensor t = tensor_of(&l->parameter[i], slab[s].value);
			struct text_builder name = { 0 };
			text_add(&name, "%s%s", slab[s].prefix, t.name);
			t.name = name.data;
			arrput(tensor, t);
		}
	return tensor;
}

static void slab_tensors_free(struct tensor *tensor)
{
	for (ptrdiff_t i = 0; i < arrlen(tensor); i++)
		free((char *)(uintptr_t)tensor[i].name);
	arrfree(tensor);
}

struct err weights_write_slabs(const struct model *m, const struct weights_slab *slab, int slabs, const char *format,
			       const char *path, const struct metadata *extra, int extra_count)
{
	struct tensor *tensor = slab_tensors(&m->layout, slab, slabs);
	struct metadata *metadata = NULL;
	char sum[33], meta[33], V[16], *options = options_json(&m->options);
	checksum(tensor, (int)arrlen(tensor), sum);
	snprintf(V, sizeof V, "%d", m->V);
	const struct metadata own[] = { { "format", format }, { "options", options },
					{ "rope_layout", weights_rope_layout(&m->options) },
					{ "vocabulary", V }, { SUM_KEY, sum } };
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		arrput(metadata, own[i]);
	for (int i = 0; i < extra_count; i++)
		arrput(metadata, extra[i]);
	metadata_sum(metadata, (int)arrlen(metadata), meta);
	arrput(metadata, ((struct metadata){ METADATA_SUM_KEY, meta }));
	struct err e = safetensors_write(path, tensor, (int)arrlen(tensor), metadata, (int)arrlen(metadata));
	slab_tensors_free(tensor);
	arrfree(metadata);
	free(options);
	return e;
}

struct err weights_write(const struct model *m, const char *path, const struct metadata *extra, int extra_count)
{
	const struct weights_slab values = { "", m->value };
	return weights_write_slabs(m, &values, 1, FORMAT, path, extra, extra_count);
}

bool weights_ours(const struct safetensors *file)
{
	const char *format = safetensors_metadata(file, "format");
	return format && !strncmp(format, "ropewalk-", 9);
}

static struct err set_option(const struct option *o, const char *text, struct model_options *options)
{
	char *field = (char *)options + o->offset;
	if (o->kind == OPTION_METHOD)
		return method_parse(o->name, o->family, text, (struct method *)(void *)field);
	return option_parse(o, text, (union option_value *)(void *)field);
}

/* What every file has; a file made before another option was there was made with its default. */
static bool in_every_file(const char *name)
{
	static const char *const names[] = { "layers", "width", "heads", "hidden", "rms_eps", "tied", "encoding",
					     "train_length" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static struct err options_of(const json_t *object, struct model_options *options)
{
	const char *key;
	json_t *value;
	for (const struct option *o = model_option_rows; o->name; o++) {
		const char *text = json_string_value(json_object_get(object, o->name));
		if (!text && in_every_file(o->name))
			return err_usage(NULL, "its metadata lack the option %s", o->name);
		TRY(set_option(o, text ? text : o->initial, options));
	}
	json_object_foreach((json_t *)(uintptr_t)object, key, value) {
		const struct option *o = model_option_rows;
		while (o->name && strcmp(o->name, key))
			o++;
		if (!o->name)
			return err_usage("It was written by another version of the program.",
					 "its metadata have the unknown option %s", key);
	}
	return OK;
}

/* Files of earlier versions have no sum of their metadata. */
static struct err check_metadata(const struct safetensors *file)
{
	char sum[33];
	const char *written = safetensors_metadata(file, METADATA_SUM_KEY);
	metadata_sum(file->metadata, file->metadata_count, sum);
	if (!written || !strcmp(written, sum))
		return OK;
	return err_usage(CHANGED, "its metadata have the checksum %s, and %s was written", sum, written);
}

struct err weights_options(const struct safetensors *file, struct model_options *options, int *V)
{
	return weights_format_options(file, FORMAT, options, V);
}

struct err weights_format_options(const struct safetensors *file, const char *wanted, struct model_options *options,
				  int *V)
{
	const char *format = safetensors_metadata(file, "format"), *text = safetensors_metadata(file, "options");
	const char *vocabulary = safetensors_metadata(file, "vocabulary");
	int64_t tokens;
	if (!format || strcmp(format, wanted))
		return err_usage(format && strstr(format, "checkpoint") ?
				 "It is for `ropewalk train --resume`; the run's model is model.safetensors." :
				 "It was written by another version of the program.",
				 "format %.40s where %s is read", format ? format : "none", wanted);
	TRY(check_metadata(file));
	if (!safetensors_metadata(file, "rope_layout"))
		return err_usage(NULL, "its metadata lack rope_layout");
	if (!vocabulary || !text_to_integer(vocabulary, &tokens) || tokens < 1 || tokens > 1 << 24)
		return err_usage(NULL, "its metadata have no usable vocabulary");
	json_t *object = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct err e = json_is_object(object) ? options_of(object, options) :
						err_usage(NULL, "its metadata have no usable options");
	json_decref(object);
	*V = (int)tokens;
	return e.code ? e : check_rope_layout(file, options);
}

#define NAMES 3

/* The i-th name a tensor may have in a file: its own, then those of other programs; false past the last. */
static bool name_in_file(const char *prefix, const char *name, int i, char text[256])
{
	int layer, end = 0;
	if (i == 0) {
		snprintf(text, 256, "%s%s", prefix, name);
		return true;
	}
	if (!strcmp(name, "model.position.table")) {
		snprintf(text, 256, "%s%s", prefix, i == 1 ? "pos_emb.weight" : "t5.table");
		return i < NAMES;
	}
	if (sscanf(name, "model.layers.%d.self_attn.position.table%n", &layer, &end) != 1 || !end || name[end])
		return false;
	snprintf(text, 256, "%st5.layers.%d.table", prefix, layer);
	return i == 1;
}

static void shape_text(const struct tensor *t, char text[128])
{
	size_t used = 0;
	text[0] = 0;
	for (int i = 0; i < t->rank && used < 100; i++)
		used += (size_t)snprintf(text + used, 128 - used, "%s%lld", i ? " x " : "", (long long)t->shape[i]);
}

static bool same_shape(const struct tensor *a, const struct tensor *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]);
}

/* The tensor of that name, or with `others` of one of its other names: of several the first of the shape wanted, if
 * there is one. `shape` NULL: any. */
static const struct tensor *find(const struct safetensors *file, const char *prefix, const char *name, bool others,
				 const struct tensor *shape)
{
	const struct tensor *first = NULL;
	char text[256];
	for (int i = 0; i < (others ? NAMES : 1) && name_in_file(prefix, name, i, text); i++) {
		const struct tensor *t = safetensors_find(file, text);
		if (t && (!shape || same_shape(t, shape)))
			return t;
		first = first ? first : t;
	}
	return first;
}

static struct err fill(const struct layout *l, real *value, const struct safetensors *file, const char *prefix,
		       bool exact, const struct tensor ***used)
{
	for (int i = 0; i < layout_count(l); i++) {
		const struct parameter *p = &l->parameter[i];
		struct tensor want = tensor_of(p, value);
		const struct tensor *t = find(file, prefix, p->name, !exact, &want);
		char have[128], need[128];
		if (!t)
			return err_usage("Is it a model of this encoding and number of layers?",
					 "tensor %s%s is missing", prefix, p->name);
		if (!same_shape(t, &want)) {
			shape_text(t, have);
			shape_text(&want, need);
			return err_usage("Do width, heads, hidden, layers and train_length fit the file?",
					 "tensor %s is %s where the options ask for %s", t->name, have, need);
		}
		TRY(tensor_to_real(t, value + p->offset));
		arrput(*used, t);
	}
	return OK;
}

static bool is_used(const struct tensor *const *used, const struct tensor *t)
{
	for (int i = 0; i < (int)arrlen(used); i++)
		if (used[i] == t)
			return true;
	return false;
}

static struct err check_rest(const struct safetensors *file, const struct tensor *const *used, bool exact,
			     struct text_builder *ignored)
{
	for (int i = 0; i < file->count; i++) {
		if (is_used(used, &file->tensor[i]))
			continue;
		if (exact)
			return err_usage(NULL, "tensor %s does not belong to this model", file->tensor[i].name);
		if (ignored)
			text_add(ignored, "%s%s", ignored->size ? ", " : "", file->tensor[i].name);
	}
	return OK;
}

static struct err check_sum(const struct safetensors *file, const struct tensor *const *used)
{
	struct tensor *tensor = NULL;
	char sum[33];
	const char *written = safetensors_metadata(file, SUM_KEY);
	for (int i = 0; i < (int)arrlen(used); i++)
		arrput(tensor, *used[i]);
	checksum(tensor, (int)arrlen(tensor), sum);
	arrfree(tensor);
	if (written && !strcmp(written, sum))
		return OK;
	return err_usage(CHANGED, "its data have the checksum %s, and %s was written", sum, written ? written : "none");
}

struct err weights_fill(struct model *m, const struct safetensors *file, const char *path, const char *prefix,
			bool exact, struct text_builder *ignored)
{
	const struct tensor **used = NULL;
	struct err e = check_rope_layout(file, &m->options);
	if (!e.code)
		e = fill(&m->layout, m->value, file, prefix, exact, &used);
	if (!e.code)
		e = check_rest(file, used, exact, ignored);
	if (!e.code && exact)
		e = check_sum(file, used);
	arrfree(used);
	return err_at(e, "%s", path);
}

/* A checkpoint continues in the arithmetic it was made in: rounding it would give other numbers. */
static struct err check_real(const struct tensor *t)
{
	if (t->dtype == REAL_DTYPE)
		return OK;
	return err_usage("ropewalk and ropewalk-double each continue their own runs.", "tensor %s is %s, not %s",
			 t->name, dtype_name(t->dtype), dtype_name(REAL_DTYPE));
}

struct err weights_fill_slabs(const struct model *m, const struct safetensors *file, const char *path,
			      const struct weights_slab *slab, int slabs)
{
	const struct tensor **used = NULL;
	struct err e = OK;
	for (int i = 0; i < slabs && !e.code; i++)
		e = fill(&m->layout, slab[i].value, file, slab[i].prefix, true, &used);
	for (int i = 0; i < arrlen(used) && !e.code; i++)
		e = check_real(used[i]);
	if (!e.code)
		e = check_rest(file, used, true, NULL);
	if (!e.code)
		e = check_sum(file, used);
	arrfree(used);
	return err_at(e, "%s", path);
}

static int64_t side(const struct safetensors *file, const char *prefix, const char *name, int axis)
{
	const struct tensor *t = find(file, prefix, name, true, NULL);
	return t && t->rank == 2 ? t->shape[axis] : 0;
}

/* The shapes of an empty tensor may say anything; holds them to the ranges of the options. */
static struct err sizes_in_range(const char *path, const struct model_options *options)
{
	for (const struct option *o = model_option_rows; o->name; o++) {
		int64_t value =
			((const union option_value *)(const void *)((const char *)options + o->offset))->integer;
		bool sizes = o->kind == OPTION_INTEGER && in_every_file(o->name);
		if (sizes && ((double)value < o->least || (double)value > o->most))
			return err_usage(NULL, "%s: its %s is %lld; %g to %g can be read", path, o->name,
					 (long long)value, o->least, o->most);
	}
	return OK;
}

void weights_rows(const struct safetensors *file, const char *prefix, struct model_options *options)
{
	if (strcmp(options->encoding.entry->name, "learned"))
		return;
	int64_t rows = side(file, prefix, "model.position.table", 0);
	options->train_length = rows ? rows : options->train_length;
}

struct err weights_sizes(const struct safetensors *file, const char *path, const char *prefix,
			 struct model_options *options, int *V)
{
	char name[128];
	int64_t tokens = side(file, prefix, "model.embed_tokens.weight", 0);
	options->width = side(file, prefix, "model.embed_tokens.weight", 1);
	if (tokens < 1 || tokens > 1 << 24 || options->width < 1 || options->width > 65536)
		return err_usage("Tensors are named as in Hugging Face's LLaMA; --prefix names what stands before.",
				 "%s: no usable tensor %smodel.embed_tokens.weight", path, prefix);
	*V = (int)tokens;
	for (options->layers = 0; options->layers < 1000; options->layers++) {
		snprintf(name, sizeof name, "model.layers.%d.self_attn.q_proj.weight", (int)options->layers);
		if (!find(file, prefix, name, false, NULL))
			break;
	}
	if (!options->layers)
		return err_usage(NULL, "%s: no tensor %smodel.layers.0.self_attn.q_proj.weight", path, prefix);
	options->hidden = side(file, prefix, "model.layers.0.mlp.gate_proj.weight", 0);
	options->tied = !find(file, prefix, "lm_head.weight", false, NULL);
	weights_rows(file, prefix, options);
	return sizes_in_range(path, options);
}

/* Numbers that cost nothing to hold; what little is missing then has an error of its own. */
#define SMALL_MODEL ((size_t)1 << 22)

struct err weights_suffice(const struct safetensors *file, const struct model_options *options, int V)
{
	struct layout l;
	size_t items = 0, wanted = 0;
	TRY(layout_build(options, V, &l));
	for (int i = 0; i < file->count; i++)
		items += (size_t)tensor_items(&file->tensor[i]);
	for (int i = 0; i < layout_count(&l); i++)
		wanted += l.parameter[i].size;
	layout_free(&l);
	if (wanted / 2 <= items || wanted <= SMALL_MODEL)
		return OK;
	return err_usage("Do width, heads, hidden, layers and train_length fit the file?",
			 "its tensors hold %zu numbers where the options ask for %zu", items, wanted);
}

struct err weights_open(const struct safetensors *file, const char *path, struct model *out)
{
	struct model_options options = { 0 };
	int V = 0;
	*out = (struct model){ 0 };
	struct err e = weights_ours(file) ? weights_options(file, &options, &V) :
					    err_usage("Models of other programs are read by forward alone.",
						      "it was not written by ropewalk");
	if (!e.code)
		e = weights_suffice(file, &options, V);
	if (!e.code)
		e = model_open(&options, V, out);
	e = err_at(e, "%s", path);
	if (!e.code)
		e = weights_fill(out, file, path, "", true, NULL);
	if (e.code)
		model_close(out);
	return e;
}

struct err weights_read(const char *path, struct model *out)
{
	struct safetensors file = { 0 };
	*out = (struct model){ 0 };
	TRY(safetensors_read(path, &file));
	struct err e = weights_open(&file, path, out);
	safetensors_free(&file);
	return e;
}
