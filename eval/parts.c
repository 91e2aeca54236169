#include "eval/parts.h"

#include "model/base/stb.h"

#include <stdio.h>
#include <string.h>

static bool rotates(const struct place *p, int layer)
{
	return !p->position->rotates_layer || p->position->rotates_layer(p, layer);
}

void parts_add(const struct model_options *options, enum parts_by by, struct part **part)
{
	struct place p = place_of(options);
	int F = place_pairs(&p);
	for (int m = 0; by == PARTS_BY_PAIR && m < F; m++)
		arrput(*part, ((struct part){ -1, -1, m }));
	for (int layer = 0; by != PARTS_BY_PAIR && layer < p.layers; layer++) {
		if (!rotates(&p, layer))
			continue;
		if (by == PARTS_BY_LAYER)
			arrput(*part, ((struct part){ layer, -1, -1 }));
		for (int h = 0; by == PARTS_BY_HEAD && h < p.H; h++)
			arrput(*part, ((struct part){ layer, h, -1 }));
	}
}

void parts_frequencies(const struct model *m, const struct method *scaling, double length, double *inv_freq)
{
	struct place p = place_of(&m->options);
	double attention_factor;
	if (p.position->prepares_inv_freq && p.position->prepares_inv_freq(&p)) {
		struct place_parameters own = { m->value + m->layout.position,
						m->value + m->layout.layer[0].position };
		struct prepared to = { .inv_freq = inv_freq, .attention_factor = &attention_factor };
		BUG_IF(p.position->table_reals, "%s: its frequencies come with a table",
		       m->options.encoding.entry->name);
		p.position->prepare(&p, own, &to);
	} else {
		scaling_frequencies(scaling, &m->options, length, inv_freq, &attention_factor);
	}
}

struct err parts_check_encoding(const struct model_options *options)
{
	struct place p = place_of(options);
	struct text_builder hint = { 0 };
	if (place_pairs(&p))
		return OK;
	text_add(&hint, "Take a run with an encoding that does:");
	const char *between = "";
	for (int i = 0; position_at(i); i++)
		if (((const struct position *)position_at(i))->rotate) {
			text_add(&hint, "%s %s", between, position_at(i)->name);
			between = ",";
		}
	struct err e = err_usage(hint.data, "encoding: %s rotates no pairs that could be told apart",
				 options->encoding.entry->name);
	text_builder_free(&hint);
	return e;
}

static bool changes_frequencies(const struct method *scaling, const struct model_options *o, double length)
{
	struct method none = method_default(scaling_at(0));
	return !scaling_same(scaling, &none, o, length);
}

struct err parts_check_scaling(const struct method *scaling, const struct model_options *o, double length)
{
	static const char hint[] = "Frequencies alone can be patched, as those of linear, ntk or yarn.";
	const char *name = scaling->entry->name;
	TRY(scaling_check(scaling, o, length));
	if (scaling_zoned(scaling))
		return err_usage(hint, "scaling: %s changes which keys a query sees, or where, not what a pair turns "
				 "by", scaling_zoned(scaling)->entry->name);
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->query_scale)
			return err_usage(hint, "scaling: %s scales whole queries, not pairs", part->entry->name);
	if (!changes_frequencies(scaling, o, length))
		return err_usage("Choose another --scaling, or a larger --multiple.",
				 "scaling: %s changes no frequency at length %.0f", name, length);
	return OK;
}

/* The sets of a setting, in memory of their own: 0 where nothing is of the part, 1 in the part's heads. */
struct sets {
	struct pair_sets pairs;
	struct arena memory;
};

static void place_sets(struct arena *a, const struct place *p, uint8_t **kind, uint8_t **set, double **trained)
{
	size_t F = (size_t)place_pairs(p);
	*kind = ARENA_TAKE(a, uint8_t, 2 * F);
	*set = ARENA_TAKE(a, uint8_t, (size_t)p->layers * (size_t)p->H);
	*trained = ARENA_TAKE(a, double, F);
}

static bool has_trained(struct part_setting s)
{
	return s.inside == PAIR_TRAINED || s.outside == PAIR_TRAINED;
}

static struct err sets_open(const struct model_options *o, struct part_setting s, struct sets *out)
{
	struct place p = place_of(o);
	int F = place_pairs(&p);
	struct arena measure = { 0 };
	struct method none = method_default(scaling_at(0));
	uint8_t *kind, *set;
	double *trained, attention_factor;
	BUG_IF(F < 1, "%s rotates no pairs", o->encoding.entry->name);
	place_sets(&measure, &p, &kind, &set, &trained);
	TRY(arena_reserve(&out->memory, measure.used, "sets of pairs"));
	place_sets(&out->memory, &p, &kind, &set, &trained);
	memset(kind, s.outside, (size_t)F);
	for (int m = 0; m < F; m++)
		kind[F + m] = (uint8_t)(s.part.pair < 0 || s.part.pair == m ? s.inside : s.outside);
	for (int layer = 0; layer < p.layers; layer++)
		for (int h = 0; h < p.H; h++)
			set[layer * p.H + h] = (s.part.layer < 0 || s.part.layer == layer) &&
					       (s.part.head < 0 || s.part.head == h);
	if (has_trained(s))
		scaling_frequencies(&none, o, (double)o->train_length, trained, &attention_factor);
	out->pairs = (struct pair_sets){ .count = 2, .kind = kind, .set = set, .trained = trained };
	return OK;
}

struct err parts_check(const struct eval_request *request, struct part_setting s)
{
	struct eval_request r = *request;
	struct sets sets = { 0 };
	struct err e = sets_open(&r.model->options, s, &sets);
	r.pairs = &sets.pairs;
	if (!e.code)
		e = eval_check(&r);
	arena_free(&sets.memory);
	return e;
}

struct err parts_run(const struct eval_request *request, struct part_setting s, eval_progress *progress, void *data,
		     struct eval_result *out)
{
	struct eval_request r = *request;
	struct sets sets = { 0 };
	*out = (struct eval_result){ 0 };
	TRY(sets_open(&r.model->options, s, &sets));
	r.pairs = &sets.pairs;
	struct err e = eval_run(&r, progress, data, out);
	arena_free(&sets.memory);
	return e;
}
