#include "runs/config.h"

#include "eval/perplexity.h"
#include "model/position/scaling.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void *config_list(struct config *c, unsigned list)
{
	switch (list) {
	case LIST_MODEL:
		return &c->model;
	case LIST_DATA:
		return &c->data;
	case LIST_TRAIN:
		return &c->train;
	case LIST_EVAL:
		return &c->eval;
	case LIST_RUN:
		return &c->run;
	case LIST_OWN:
		return c->own;
	case LIST_STUDY:
		return &c->study;
	}
	BUG("no such option list: %u", list);
}

const void *config_list_const(const struct config *c, unsigned list)
{
	return config_list((struct config *)c, list);
}

static struct method *method_field(const struct option *row, void *options)
{
	return (struct method *)((char *)options + row->offset);
}

static const struct method *method_field_const(const struct option *row, const void *options)
{
	return (const struct method *)((const char *)options + row->offset);
}

/* Methods that other tools have and whose name would mislead. */
static struct err parse_method(const struct option *row, const char *text, struct method *out)
{
	char name[32];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "( "), text);
	if (same_name(name, "linear_ntk"))
		return err_usage("Say linear or ntk.", "%s: linear_ntk mixes two methods", row->name);
	return method_parse(row->name, row->family, text, out);
}

static void set_default(const struct option *row, void *options)
{
	union option_value value;
	struct err e = row->kind == OPTION_METHOD ? parse_method(row, row->initial, method_field(row, options))
						  : option_parse(row, row->initial, &value);
	BUG_IF(e.code, "a default does not parse: %s", e.text);
	if (row->kind != OPTION_METHOD)
		option_put(row, options, value);
}

void config_init(struct config *c, const struct scope *scope, void *own)
{
	*c = (struct config){ .scope = *scope, .own = own };
	for (int i = 0; i < LISTS; i++) {
		void *options = config_list(c, 1u << i);
		for (const struct option *o = option_rows(scope, 1u << i); options && o && o->name; o++)
			set_default(o, options);
	}
}

/* How the user wrote the name: --name on the command line. */
static const char *shown_name(const char *name, const char *from, char out[100])
{
	snprintf(out, 100, "%s%s", from ? "" : "--", name);
	return out;
}

static struct err at_place(struct err e, const char *from)
{
	return from ? err_at(e, "%s", from) : e;
}

static struct err set_flag(struct config *c, const struct option_name *n, const char *text, const char *from)
{
	int i = 0;
	while (i < c->flags && !(same_name(c->flag[i].name.name, n->name) && c->flag[i].name.family == n->family))
		i++;
	if (i == CONFIG_FLAGS)
		return err_usage(NULL, "%s: more than %d options of methods", n->name, CONFIG_FLAGS);
	c->flags += i == c->flags;
	c->flag[i] = (struct config_flag){ .name = *n, .text = text, .from = from };
	return OK;
}

static struct err set_field(struct config *c, const struct option_name *n, const struct option *named, const char *text,
			    const char *from)
{
	void *options = config_list(c, n->list);
	union option_value value;
	if (named->kind == OPTION_METHOD) {
		struct method method;
		TRY(parse_method(named, text, &method));
		*method_field(named, options) = method;
	} else {
		TRY(option_parse(named, text, &value));
		option_put(named, options, value);
	}
	int i = 0;
	while (i < c->givens && c->given[i].option != n->option)
		i++;
	BUG_IF(i == CONFIG_GIVEN, "more than %d options", CONFIG_GIVEN);
	c->givens += i == c->givens;
	c->given[i] = (struct config_given){ n->option, from };
	return OK;
}

struct err config_set(struct config *c, const char *name, const char *text, const char *from)
{
	struct option_name n;
	char shown[100];
	shown_name(name, from, shown);
	if (!option_lookup(&c->scope, name, &n))
		return at_place(option_unknown(&c->scope, name, shown), from);
	text = text_keep(text);
	from = from ? text_keep(from) : NULL;
	struct option named = *n.option;
	named.name = shown;
	if (!n.family)
		return at_place(set_field(c, &n, &named, text, from), from);
	union option_value value;
	struct err e = option_parse(&named, text, &value);
	return at_place(e.code ? e : set_flag(c, &n, text, from), from);
}

bool config_is_switch(const struct config *c, const char *name)
{
	struct option_name n;
	return option_lookup(&c->scope, name, &n) && n.option->kind == OPTION_SWITCH;
}

bool config_can_be_on(const struct config *c, const char *name)
{
	struct option_name n;
	union option_value value;
	return option_lookup(&c->scope, name, &n) && n.option->kind == OPTION_CHOICE &&
	       !option_parse(n.option, "on", &value).code;
}

static const struct config_given *find_given(const struct config *c, const char *name)
{
	for (int i = 0; i < c->givens; i++)
		if (!strcmp(c->given[i].option->name, name))
			return &c->given[i];
	return NULL;
}

bool config_given(const struct config *c, const char *name)
{
	return find_given(c, name);
}

struct err config_at(const struct config *c, const char *name, struct err e)
{
	const struct config_given *given = find_given(c, name);
	return given ? at_place(e, given->from) : e;
}

static void inherit_row(struct config *c, unsigned list, const struct option *row, const struct config *from)
{
	void *mine = config_list(c, list);
	const void *theirs = config_list_const(from, list);
	if (row->kind != OPTION_METHOD) {
		option_put(row, mine, option_get(row, theirs));
		return;
	}
	struct method *m = method_field(row, mine);
	*m = *method_field_const(row, theirs);
	/* So that a flag of the method counts, as it does beside a method's name alone. */
	m->given = 0;
}

void config_inherit(struct config *c, unsigned lists, const struct config *from)
{
	for (int i = 0; i < LISTS; i++)
		for (const struct option *o = lists & (1u << i) ? option_rows(&c->scope, 1u << i) : NULL; o && o->name;
		     o++)
			if (!config_given(c, o->name))
				inherit_row(c, 1u << i, o, from);
}

void config_take_methods(struct config *c, unsigned lists, const struct config *from)
{
	for (int i = 0; i < LISTS; i++) {
		unsigned list = lists & (1u << i);
		for (const struct option *o = list ? option_rows(&c->scope, list) : NULL; o && o->name; o++)
			if (o->kind == OPTION_METHOD)
				*method_field(o, config_list(c, list)) =
					*method_field_const(o, config_list_const(from, list));
	}
}

/* The flag for an option of a method of `family`: its own (METHOD_OPTION) before the shared one. Marks both as used. */
static const struct config_flag *flag_for(struct config *c, family_at family, const struct entry *entry,
					  const struct option *option)
{
	const struct config_flag *own = NULL, *shared = NULL;
	for (int i = 0; i < c->flags; i++) {
		struct config_flag *f = &c->flag[i];
		if (f->name.family != family)
			continue;
		bool for_own = f->name.entry == entry && f->name.option == option;
		bool for_all = !f->name.entry && option->shared && !strcmp(f->name.option->name, option->name);
		f->used |= for_own || for_all;
		own = for_own ? f : own;
		shared = for_all ? f : shared;
	}
	return own ? own : shared;
}

static struct err apply_flags_to_part(struct config *c, family_at family, struct method *m)
{
	struct method parsed = *m;
	for (int i = 0; m->entry->options && m->entry->options[i].name; i++) {
		const struct option *o = &m->entry->options[i];
		const struct config_flag *f = flag_for(c, family, m->entry, o);
		if (!f || memchr(parsed.order, i, (size_t)parsed.given))
			continue;
		char shown[100];
		struct option named = *o;
		union option_value value;
		named.name = shown_name(f->name.name, f->from, shown);
		TRY(at_place(option_parse(&named, f->text, &value), f->from));
		method_set(m, i, value);
	}
	return OK;
}

static struct err apply_flags(struct config *c, family_at family, struct method *m)
{
	struct method part[METHOD_PARTS];
	int count = method_split(m, part);
	for (int i = 0; i < count; i++)
		TRY(apply_flags_to_part(c, family, &part[i]));
	*m = method_join(part, count);
	return OK;
}

static struct err no_effect(const struct config_flag *f, const char *chosen)
{
	char shown[100], hint[200] = "Leave it out, or choose a method that has this option.";
	shown_name(f->name.name, f->from, shown);
	for (char *s = shown; !f->from && *s; s++)
		*s = *s == '_' ? '-' : *s;
	if (f->name.entry)
		snprintf(hint, sizeof hint, "Leave it out, or choose %s.", f->name.entry->name);
	return at_place(err_usage(hint, "%s: has no effect: the %s", shown, chosen), f->from);
}

/* A flag of this family that nothing used is an error that says what was chosen. */
static struct err judge_flags(const struct config *c, family_at family, const char *what, const char *chosen)
{
	char text[300];
	snprintf(text, sizeof text, "%s %s", what, chosen);
	for (int i = 0; i < c->flags; i++)
		if (c->flag[i].name.family == family && !c->flag[i].used)
			return no_effect(&c->flag[i], text);
	return OK;
}

static struct err finish_method(struct config *c, const struct option *row, struct method *m, bool strict)
{
	TRY(apply_flags(c, row->family, m));
	char what[64];
	snprintf(what, sizeof what, "%s is", row->name);
	return strict ? judge_flags(c, row->family, what, m->entry->name) : OK;
}

struct err config_finish(struct config *c, bool strict)
{
	for (int i = 0; i < LISTS; i++) {
		unsigned list = 1u << i;
		for (const struct option *o = option_rows(&c->scope, list); o && o->name; o++)
			if (o->kind == OPTION_METHOD && option_family(list, o) && option_taken(&c->scope, list, o))
				TRY(finish_method(c, o, method_field(o, config_list(c, list)), strict));
	}
	return OK;
}

static struct err refuse_twins(const struct method *method, int count)
{
	struct err e = OK;
	for (int i = 1; i < count && !e.code; i++)
		for (int j = 0; j < i && !e.code; j++) {
			struct text_builder a = { 0 }, b = { 0 };
			method_identity(&method[i], &a);
			method_identity(&method[j], &b);
			if (!strcmp(a.data, b.data))
				e = err_usage("Name each scaling once.", "scaling: two are the same: %s", a.data);
			text_builder_free(&a);
			text_builder_free(&b);
		}
	return e;
}

static struct err parse_scalings(const char *text, struct method **scaling, int *count)
{
	struct err e = OK;
	int pieces;
	char **list = text_list(text, &pieces);
	struct option row = { .name = "scaling", .kind = OPTION_METHOD, .family = scaling_at };
	struct method unused;
	for (int i = 0; i < pieces && !e.code; i++)
		e = parse_method(&row, list[i], &unused);
	text_list_free(list);
	return e.code ? e : eval_scalings(text, scaling, count);
}

struct err config_scalings(struct config *c, bool strict, struct method **scaling, int *count)
{
	TRY(config_at(c, "scaling", parse_scalings(c->eval.scaling, scaling, count)));
	struct err e = OK;
	for (int i = 0; i < *count && !e.code; i++)
		e = apply_flags(c, scaling_at, &(*scaling)[i]);
	if (!e.code && strict)
		e = judge_flags(c, scaling_at, *count > 1 ? "scalings are" : "scaling is", c->eval.scaling);
	if (!e.code)
		e = refuse_twins(*scaling, *count);
	if (e.code) {
		free(*scaling);
		*scaling = NULL;
	}
	return e;
}

static void print_option(const struct option *o, const void *options, struct text_builder *b)
{
	if (o->kind == OPTION_METHOD)
		method_label(method_field_const(o, options), b);
	else
		option_print(o, option_get(o, options), b);
}

void config_print(const struct config *c, unsigned lists, struct text_builder *b)
{
	for (int i = 0; i < LISTS; i++) {
		const void *options = config_list_const(c, 1u << i);
		const struct option *o = (lists & (1u << i)) && options ? option_rows(&c->scope, 1u << i) : NULL;
		for (; o && o->name; o++) {
			text_add(b, "%s = ", o->name);
			print_option(o, options, b);
			text_add(b, "\n");
		}
	}
}

void config_value(const struct config *c, const char *name, struct text_builder *b)
{
	for (int i = 0; i < LISTS; i++) {
		const void *options = config_list_const(c, 1u << i);
		for (const struct option *o = option_rows(&c->scope, 1u << i); options && o && o->name; o++)
			if (same_name(o->name, name)) {
				print_option(o, options, b);
				return;
			}
	}
	BUG("no such option: %s", name);
}

const char *config_identity(const struct config *c, unsigned lists, char text[IDENTITY_TEXT])
{
	struct text_builder b = { 0 };
	text_add(&b, "%s", "");
	for (int i = 0; i < LISTS; i++) {
		const void *options = config_list_const(c, 1u << i);
		const struct option *o = (lists & (1u << i)) && options ? option_rows(&c->scope, 1u << i) : NULL;
		for (; o && o->name; o++) {
			if (!o->results)
				continue;
			text_add(&b, "%s=", o->name);
			if (o->kind == OPTION_METHOD)
				method_identity(method_field_const(o, options), &b);
			else
				print_option(o, options, &b);
			text_add(&b, "\n");
		}
	}
	snprintf(text, IDENTITY_TEXT, "%016" PRIx64, (uint64_t)XXH3_64bits(b.data, b.size));
	text_builder_free(&b);
	return text;
}

const char *config_training_identity(const struct config *c, char text[IDENTITY_TEXT])
{
	struct config trained = *c;
	for (int i = 0; i < LISTS; i++) {
		void *options = config_list(&trained, 1u << i);
		const struct option *o = LIST_TRAINING & (1u << i) ? option_rows(&c->scope, 1u << i) : NULL;
		for (; o && o->name; o++)
			if (o->kind == OPTION_METHOD)
				method_as_trained(method_field(o, options));
	}
	return config_identity(&trained, LIST_TRAINING, text);
}
