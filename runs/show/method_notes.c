#include "runs/show/notes.h"

#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/show/once.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <string.h>

static const union option_value *value_of(const struct method *part, const char *name)
{
	int index = method_find(part->entry, name);
	return index < 0 ? NULL : &part->value[index];
}

/* The first part of a scaling that has this option; NULL: none has. */
static const struct method *part_with(const struct method *m, const char *name)
{
	while (m && method_find(m->entry, name) < 0)
		m = m->plus;
	return m;
}

/* Calls `visit` once for every scaling label that the study asks for, with a cell that has it. */
static void each_scaling(const struct results *r, void (*visit)(const struct cell *c, int scaling, void *data),
			 void *data)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct cell *c = &r->grid->cell[i];
		for (int j = 0; j < c->scalings - c->references; j++)
			if (once(&seen, c->scaling_label[j]))
				visit(c, j, data);
	}
	arrfree(seen);
}

/* A rule of scalings' own, and the rows it is of. */
struct rule {
	const char *text;
	struct text_builder labels;
};

/* The rows by the rule that sets their factor. */
struct factors {
	struct text_builder automatic, given, full;
	struct rule *own; /* stb_ds array */
};

static void add_word(struct text_builder *b, const char *word)
{
	text_add(b, "%s%s", b->size ? "; " : "", word);
}

static bool has_options(const struct method *m)
{
	while (m && !m->entry->options)
		m = m->plus;
	return m;
}

static void add_in_full(struct text_builder *b, const struct method *m)
{
	struct text_builder identity = { 0 };
	method_identity(m, &identity);
	add_word(b, "");
	/* Many options are longer than a line: it may end between them. */
	for (const char *at = identity.data; *at; at++)
		text_add(b, *at == ',' ? "%c " : "%c", *at);
	text_builder_free(&identity);
}

static void add_own(struct factors *f, const char *text, const char *label)
{
	int i = 0;
	while (i < arrlen(f->own) && strcmp(f->own[i].text, text))
		i++;
	if (i == arrlen(f->own))
		arrput(f->own, ((struct rule){ .text = text }));
	add_word(&f->own[i].labels, label);
}

static void visit_factor(const struct cell *c, int scaling, void *data)
{
	struct factors *f = data;
	const struct method *m = &c->scaling[scaling];
	const char *label = c->scaling_label[scaling];
	bool automatic = false, given = false;
	for (const struct method *part = m; part; part = part->plus) {
		const union option_value *factor = scaling_heeds_factor(part) ? value_of(part, "factor") : NULL;
		automatic |= factor && factor->number == 0;
		given |= factor && factor->number > 0;
		const char *own = scaling_of(part)->rule ? scaling_of(part)->rule(part) : NULL;
		if (own)
			add_own(f, own, label);
	}
	if (automatic)
		add_word(&f->automatic, label);
	if (given)
		add_word(&f->given, label);
	if (has_options(m))
		add_in_full(&f->full, m);
}

static void print_rule(const char *rule, struct text_builder *labels, struct text_builder *b)
{
	if (!labels->size)
		return;
	struct text_builder p = { 0 };
	text_add(&p, "%s: %s.", rule, labels->data);
	wrap_paragraph(b, p.data);
	text_builder_free(&p);
	text_builder_free(labels);
}

void notes_factors(const struct results *r, struct text_builder *b)
{
	struct factors f = { .automatic.data = NULL };
	each_scaling(r, visit_factor, &f);
	print_rule("factor auto = max(1, length / train_length)", &f.automatic, b);
	print_rule("factor fixed as given, at every length", &f.given, b);
	for (int i = 0; i < arrlen(f.own); i++)
		print_rule(f.own[i].text, &f.own[i].labels, b);
	arrfree(f.own);
	print_rule("in full", &f.full, b);
}

/* What the trained length means for a ramp over rotations. */
struct ramp {
	double fastest; /* rotations of the fastest pair over train_length */
	int once, pairs; /* how many turn at least once, of how many */
};

#define PAIRS_MOST 4096

/* False if the scaling has no ramp, or the model does not rotate. */
static bool ramp_of(const struct cell *c, int scaling, struct ramp *out)
{
	const struct model_options *model = &c->config.model;
	int D = (int)(model->width / model->heads), length = (int)model->train_length;
	double inv_freq[PAIRS_MOST];
	if (!part_with(&c->scaling[scaling], "ramp") || D / 2 > PAIRS_MOST || !cell_possible(c, scaling, length))
		return false;
	struct scaling_request request = scaling_request(&c->scaling[scaling], model, length);
	scaling_base(&request, inv_freq);
	*out = (struct ramp){ .fastest = length / (2 * M_PI), .pairs = D / 2 };
	for (int i = 0; i < D / 2; i++)
		out->once += out->fastest * inv_freq[i] >= 1;
	return true;
}

static bool any_ramp(const struct cell *c, struct ramp *out)
{
	for (int i = 0; i < c->scalings; i++)
		if (ramp_of(c, i, out))
			return true;
	return false;
}

void notes_ramp(const struct results *r, struct text_builder *b)
{
	struct ramp ramp, last = { 0 };
	for (int cells = 0; cells < r->grid->groups; cells++) {
		const struct cell *c = &r->grid->cell[results_first(r, cells)];
		if (!any_ramp(c, &ramp) || (ramp.fastest == last.fastest && ramp.once == last.once))
			continue;
		last = ramp;
		struct text_builder p = { 0 };
		text_add(&p, "ramp: over train_length %d the fastest pair turns train_length / 2 pi = %.1f times; %d "
			     "of %d pairs (%.0f%%) turn at least once.",
			 (int)c->config.model.train_length, ramp.fastest, ramp.once, ramp.pairs,
			 100.0 * ramp.once / ramp.pairs);
		wrap_paragraph(b, p.data);
		text_builder_free(&p);
	}
}

struct unscaled {
	struct text_builder labels;
	double fastest;
};

static void visit_unscaled(const struct cell *c, int scaling, void *data)
{
	struct unscaled *u = data;
	const struct method *m = part_with(&c->scaling[scaling], "ramp");
	const union option_value *kind = m ? value_of(m, "ramp") : NULL, *beta = m ? value_of(m, "beta_fast") : NULL;
	struct ramp ramp;
	if (!kind || !beta || !ramp_of(c, scaling, &ramp))
		return;
	union option_value rotations;
	if (option_parse(&m->entry->options[method_find(m->entry, "ramp")], "rotations", &rotations).code)
		return;
	if (kind->integer != rotations.integer || beta->number <= ramp.fastest)
		return;
	add_word(&u->labels, c->scaling_label[scaling]);
	u->fastest = ramp.fastest;
}

void notes_ramp_warnings(const struct results *r, struct text_builder *b)
{
	struct unscaled u = { .fastest = 0 };
	each_scaling(r, visit_unscaled, &u);
	if (!u.labels.size)
		return;
	struct text_builder p = { 0 };
	text_add(&p, "warning: beta_fast is above train_length / 2 pi = %.1f, so the ramp over rotations leaves no "
		     "pair unscaled: %s.", u.fastest, u.labels.data);
	wrap_paragraph(b, p.data);
	text_builder_free(&p);
	text_builder_free(&u.labels);
}
