#include "runs/study/study_claims.h"

#include "model/base/stb.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_name[CLAIM_KINDS] = {
	[CLAIM_EXPECT] = "expect",
	[CLAIM_PUBLISHED] = "published",
	[CLAIM_ORDER] = "order",
	[CLAIM_STABILITY] = "stability",
};

static const struct {
	const char *name, *text;
} measures[] = {
	[CLAIM_ACCURACY] = { "accuracy", "accuracy in %" },
	[CLAIM_PERPLEXITY] = { "perplexity", "perplexity" },
	[CLAIM_NLL] = { "nll", "NLL in nats" },
	[CLAIM_BITS] = { "bits_per_byte", "bits per byte" },
	[CLAIM_SLOPE] = { "slope", "perplexity over its own at 1x" },
};
#define MEASURES "accuracy|perplexity|nll|bits_per_byte|slope"

const char *claim_measure_name(enum claim_measure measure)
{
	return measures[measure].name;
}

const char *claim_measure_text(enum claim_measure measure)
{
	return measures[measure].text;
}

/* --- Values. ------------------------------------------------------------------------------------------------------ */

static struct err take_source(struct study_claim *c, const char *value)
{
	c->source = value;
	return OK;
}

static struct err take_what(struct study_claim *c, const char *value)
{
	c->what = value;
	return OK;
}

static struct err take_first_row(struct study_claim *c, const char *value)
{
	c->row[0] = value;
	return OK;
}

static struct err take_second_row(struct study_claim *c, const char *value)
{
	c->row[1] = value;
	return OK;
}

static struct err take_group(struct study_claim *c, const char *value)
{
	c->group = value;
	return OK;
}

static struct err take_measure(struct study_claim *c, const char *value)
{
	static const struct option row = { .name = "measure", .kind = OPTION_CHOICE, .choices = MEASURES };
	union option_value choice;
	TRY(option_parse(&row, value, &choice));
	c->measure = (enum claim_measure)choice.integer;
	return OK;
}

static struct err number(const char *name, const char *value, double least, double *out)
{
	if (!text_to_number(value, out))
		return err_usage("Give a number.", "%s: '%.60s' is not a number", name, value);
	if (*out < least)
		return err_usage(NULL, "%s: %.60s is too small", name, value);
	return OK;
}

static struct err take_multiple(struct study_claim *c, const char *value)
{
	return number("multiple", value, 0, &c->multiple);
}

static struct err take_least(struct study_claim *c, const char *value)
{
	return number("least", value, -INFINITY, &c->least);
}

static struct err take_most(struct study_claim *c, const char *value)
{
	return number("most", value, -INFINITY, &c->most);
}

static struct err take_columns(struct study_claim *c, const char *value)
{
	int count;
	char **piece = text_list(value, &count);
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		if (!*piece[i])
			e = err_usage("Give each column a name, without commas.", "columns: '%.60s': one is empty", value);
		arrput(c->column, text_keep(piece[i]));
	}
	text_list_free(piece);
	return e;
}

static struct err take_multiples(struct study_claim *c, const char *value)
{
	int count;
	char **piece = text_list(value, &count);
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		double multiple;
		e = number("multiples", piece[i], 0, &multiple);
		arrput(c->multiples, multiple);
	}
	text_list_free(piece);
	return e;
}

static bool is_published_number(const char *text)
{
	double value;
	return !strcmp(text, "-") || text_to_number(text + (*text == '<' || *text == '>'), &value);
}

/* "sinusoidal: 20.05, 43.54" */
static struct err take_published(struct study_claim *c, const char *value)
{
	const char *colon = strrchr(value, ':');
	char label[400];
	int count;
	if (!colon || colon == value)
		return err_usage("Write row = LABEL: NUMBER, NUMBER ...", "row: '%.60s' is not LABEL: NUMBERS", value);
	snprintf(label, sizeof label, "%.*s", (int)(colon - value), value);
	struct published_row row = { .label = text_keep(label) };
	char **piece = text_list(colon + 1, &count);
	struct err e = OK;
	for (int i = 0; i < count && !e.code; i++) {
		if (!is_published_number(piece[i]))
			e = err_usage("A number, perhaps with < or > before it, or - where the source has none.",
				      "row: '%.60s' is not a number", piece[i]);
		arrput(row.value, text_keep(piece[i]));
	}
	text_list_free(piece);
	arrput(c->published, row);
	return e;
}

static struct err take_ours(struct study_claim *c, const char *value)
{
	if (!arrlen(c->published) || arrlast(c->published).ours)
		return err_usage("It stands below the published row that it belongs to.", "ours: no row before it");
	arrlast(c->published).ours = value;
	arrlast(c->published).from = arrlast(c->line).from;
	return OK;
}

static struct err take_axis(struct study_claim *c, const char *value)
{
	c->axis = value;
	return OK;
}

static struct err take_default(struct study_claim *c, const char *value)
{
	c->value = value;
	return OK;
}

/* --- Lines. ------------------------------------------------------------------------------------------------------- */

enum { E = 1 << CLAIM_EXPECT, P = 1 << CLAIM_PUBLISHED, O = 1 << CLAIM_ORDER, S = 1 << CLAIM_STABILITY };

static const struct key {
	const char *name;
	unsigned kinds, needed, many; /* kinds that take it, that need it, that take it more than once */
	struct err (*take)(struct study_claim *c, const char *value);
} keys[] = {
	{ "claim", O, O, 0, take_what },
	{ "what", P, P, 0, take_what },
	{ "source", E | P | O, P, 0, take_source },
	{ "row", E, E, 0, take_first_row },
	{ "better", O, O, 0, take_first_row },
	{ "worse", O, O, 0, take_second_row },
	{ "group", E | P | O | S, 0, 0, take_group },
	{ "multiple", E | O, E | O, 0, take_multiple },
	{ "measure", E | P | O | S, E | O, 0, take_measure },
	{ "least", E, 0, 0, take_least },
	{ "most", E, 0, 0, take_most },
	{ "columns", P, P, 0, take_columns },
	{ "multiples", P, 0, 0, take_multiples },
	{ "row", P, P, P, take_published },
	{ "ours", P, 0, P, take_ours },
	{ "axis", S, S, 0, take_axis },
	{ "default", S, 0, 0, take_default },
};
#define KEYS ((int)(sizeof keys / sizeof *keys))

static const struct key *key_named(enum claim_kind kind, const char *name)
{
	for (int i = 0; i < KEYS; i++)
		if (keys[i].kinds & (1u << kind) && same_name(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static const char *next_key(int index, const void *data)
{
	const enum claim_kind *kind = data;
	for (int i = 0; i < KEYS; i++)
		if (keys[i].kinds & (1u << *kind) && index-- == 0)
			return keys[i].name;
	return NULL;
}

static struct err unknown_key(const struct study_claim *c, const char *name)
{
	const char *nearest = nearest_name(name, next_key, &c->kind), *known;
	struct text_builder b = { 0 };
	text_add(&b, nearest ? "Did you mean %s?" : "It takes", nearest);
	for (int i = 0; !nearest && (known = next_key(i, &c->kind)); i++)
		text_add(&b, "%s %s", i ? "," : "", known);
	text_add(&b, "%s", nearest ? "" : ".");
	struct err e = err_usage(b.data, "%.60s: unknown in [%s]", name, kind_name[c->kind]);
	text_builder_free(&b);
	return e;
}

static const struct claim_line *line_named(const struct study_claim *c, const char *name)
{
	for (int i = 0; i < arrlen(c->line); i++)
		if (!strcmp(c->line[i].name, name))
			return &c->line[i];
	return NULL;
}

#define VALUE_TEXT 400

/* What is written into tables must not steer a terminal. */
static struct err check_value(const char *name, const char *value)
{
	char printable[VALUE_TEXT];
	if (!*value)
		return err_usage("Give a value, or remove the line.", "%s: no value", name);
	if (strlen(value) >= VALUE_TEXT)
		return err_usage("Say it in fewer words.", "%s: longer than %d bytes", name, VALUE_TEXT - 1);
	text_printable(value, printable, sizeof printable);
	if (strcmp(value, printable))
		return err_usage("Write UTF-8 without control characters.", "%s: '%.60s' is not plain text", name,
				 printable);
	return OK;
}

static struct err add_line(struct study_claim *c, const char *name, const char *value, const char *from)
{
	const struct key *key = key_named(c->kind, name);
	if (!key)
		return unknown_key(c, name);
	const struct claim_line *before = line_named(c, key->name);
	if (before && !(key->many & (1u << c->kind)))
		return err_usage("Keep one of the two lines.", "%s: given before, in %s", name, before->from);
	TRY(check_value(key->name, value));
	struct claim_line line = { key->name, text_keep(value), from };
	arrput(c->line, line);
	return key->take(c, line.value);
}

struct err claims_add(struct study_claim **list, const char *name, const char *value, const char *from)
{
	return err_at(add_line(&arrlast(*list), name, value, from), "%s", from);
}

/* --- Sections. ---------------------------------------------------------------------------------------------------- */

static int kind_of(const char *text, const char **rest)
{
	size_t word = strcspn(text, " \t");
	for (int i = 0; i < CLAIM_KINDS; i++)
		if (strlen(kind_name[i]) == word && !strncmp(text, kind_name[i], word)) {
			*rest = text + word + strspn(text + word, " \t");
			return i;
		}
	return -1;
}

bool claim_is_section(const char *text)
{
	const char *rest;
	return kind_of(text, &rest) >= 0 && *rest != '=';
}

static const char *next_kind(int index, const void *unused)
{
	(void)unused;
	return index < CLAIM_KINDS ? kind_name[index] : NULL;
}

const char *claim_nearest_kind(const char *text)
{
	char word[32];
	snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " \t="), text);
	return nearest_name(word, next_kind, NULL);
}

#define NAME_TEXT 60

bool claim_is_name(const char *text)
{
	size_t length = strlen(text);
	bool plain = length && length < NAME_TEXT;
	for (const char *s = text; *s && plain; s++)
		plain = isalnum((unsigned char)*s) || strchr("-_.", *s);
	return plain;
}

static struct err check_name(enum claim_kind kind, const char *text, const char *name)
{
	char shown[TEXT_SHOWN];
	if (!*name && kind != CLAIM_STABILITY)
		return err_usage("Give it a name of its own, as [expect yarn-8x].", "[%s]: no name", kind_name[kind]);
	if (*name && !claim_is_name(name))
		return err_usage("A name has letters, digits, -, _ and . only, and is short.", "[%s]: not a name",
				 text_shown(text, shown));
	return OK;
}

static struct err begin(struct study_claim **list, const char *text, const char *from)
{
	const char *name;
	int kind = kind_of(text, &name);
	BUG_IF(kind < 0, "no claim: %s", text);
	TRY(check_name((enum claim_kind)kind, text, name));
	for (int i = 0; i < arrlen(*list); i++)
		if ((int)(*list)[i].kind == kind && !strcmp((*list)[i].name, name))
			return err_usage("Give it another name.", "[%s]: given before, in %s", text, (*list)[i].from);
	if (arrlen(*list) == STUDY_CLAIMS)
		return err_usage("Make two studies of it.", "more than %d claims", STUDY_CLAIMS);
	arrput(*list, ((struct study_claim){
		.kind = (enum claim_kind)kind, .name = text_keep(name), .from = from, .least = -INFINITY,
		.most = INFINITY, .measure = kind == CLAIM_STABILITY ? CLAIM_NLL : CLAIM_PERPLEXITY }));
	return OK;
}

struct err claims_begin(struct study_claim **list, const char *text, const char *from)
{
	return err_at(begin(list, text, from), "%s", from);
}

static struct err check_published(const struct study_claim *c)
{
	int columns = (int)arrlen(c->column);
	if (c->multiples && arrlen(c->multiples) != columns)
		return err_usage("Give one for each column.", "multiples: %d of them, and %d columns",
				 (int)arrlen(c->multiples), columns);
	for (int i = 0; i < arrlen(c->published); i++) {
		const struct published_row *row = &c->published[i];
		if (arrlen(row->value) != columns)
			return err_usage("Where the source has no number, write -.",
					 "row %.60s: %d numbers for %d columns", row->label, (int)arrlen(row->value),
					 columns);
		if (row->ours && !c->multiples)
			return err_usage("Say which multiples the columns are.", "ours: no multiples");
	}
	return OK;
}

static struct err finish(const struct study_claim *c)
{
	for (int i = 0; i < KEYS; i++)
		if (keys[i].needed & (1u << c->kind) && !line_named(c, keys[i].name))
			return err_usage(NULL, "[%s%s%s]: no %s", kind_name[c->kind], *c->name ? " " : "", c->name,
					 keys[i].name);
	if (c->kind == CLAIM_EXPECT && isinf(c->least) && isinf(c->most))
		return err_usage("Give least, most or both.", "[expect %s]: no band", c->name);
	if (c->least > c->most)
		return err_usage(NULL, "[expect %s]: least is above most", c->name);
	if (c->kind == CLAIM_EXPECT && c->measure == CLAIM_ACCURACY && (c->least > 100 || c->most < 0))
		return err_usage("Accuracy is from 0 to 100 %.", "[expect %s]: no accuracy is in the band", c->name);
	return c->kind == CLAIM_PUBLISHED ? check_published(c) : OK;
}

struct err claims_finish(const struct study_claim *list)
{
	for (int i = 0; i < arrlen(list); i++)
		TRY(err_at(finish(&list[i]), "%s", list[i].from));
	return OK;
}

void claims_remove(struct study_claim **list, int index)
{
	struct study_claim *c = &(*list)[index];
	for (int i = 0; i < arrlen(c->published); i++)
		arrfree(c->published[i].value);
	arrfree(c->published);
	arrfree(c->line);
	arrfree(c->column);
	arrfree(c->multiples);
	arrdel(*list, index);
}

void claims_free(struct study_claim **list)
{
	while (arrlen(*list))
		claims_remove(list, (int)arrlen(*list) - 1);
	arrfree(*list);
}

void claims_print(const struct study_claim *list, struct text_builder *b)
{
	for (int i = 0; i < arrlen(list); i++) {
		const struct study_claim *c = &list[i];
		text_add(b, "\n[%s%s%s]\n", kind_name[c->kind], *c->name ? " " : "", c->name);
		for (int j = 0; j < arrlen(c->line); j++)
			text_add(b, "%s = %s\n", c->line[j].name, c->line[j].value);
	}
}
