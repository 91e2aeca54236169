#include "option.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 32

/* "a|b|c" cut into its words. */
struct words {
	char text[400];
	const char *word[WORDS + 1]; /* ends with NULL */
	int count;
};

static struct words *cut_words(const char *choices, struct words *w)
{
	w->count = 0;
	int length = snprintf(w->text, sizeof w->text, "%s", choices ? choices : "");
	BUG_IF((size_t)length >= sizeof w->text, "too long a list of choices: %s", choices);
	char *rest = NULL;
	for (char *word = strtok_r(w->text, "|", &rest); word; word = strtok_r(NULL, "|", &rest)) {
		BUG_IF(w->count == WORDS, "too many choices: %s", choices);
		w->word[w->count++] = word;
	}
	w->word[w->count] = NULL;
	return w;
}

static const char *next_word(int i, const void *words)
{
	return ((const struct words *)words)->word[i];
}

/* The text without the white space around it, cut to what an error can show. */
#define SHOWN 100

static const char *trim(const char *text, char out[SHOWN])
{
	while (isspace((unsigned char)*text))
		text++;
	size_t length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length < SHOWN)
		snprintf(out, SHOWN, "%.*s", (int)length, text);
	else
		snprintf(out, SHOWN, "%.*s...", SHOWN - 4, text);
	return out;
}

static int find_word(const struct words *w, const char *name)
{
	for (int i = 0; i < w->count; i++)
		if (same_name(w->word[i], name))
			return i;
	return -1;
}

/* "1 to 1000", and the word that stands for 0 if there is one. */
static const char *range_text(const struct option *o, char text[160])
{
	char least[NUMBER_TEXT], most[NUMBER_TEXT];
	struct words w;
	cut_words(o->kind == OPTION_NUMBER ? o->choices : NULL, &w);
	number_to_text(o->least, least);
	number_to_text(o->most, most);
	if (w.count)
		snprintf(text, 160, "%s to %s, or %.60s", least, most, w.word[0]);
	else
		snprintf(text, 160, "%s to %s", least, most);
	return text;
}

static struct err not_a_number(const struct option *o, const char *shown, const char *kind)
{
	char range[160];
	return err_usage(NULL, "%s: '%s' is not a %s (%s)", o->name, shown, kind, range_text(o, range));
}

static struct err out_of_range(const struct option *o, const char *shown)
{
	char range[160];
	return err_usage(NULL, "%s: %s: out of range %s", o->name, shown, range_text(o, range));
}

static struct err parse_integer(const struct option *o, const char *text, const char *shown, int64_t *out)
{
	int64_t value;
	double number;
	if (!text_to_integer(text, &value)) {
		bool too_large = text_to_number(text, &number) && fabs(number) >= 0x1p63;
		return too_large ? out_of_range(o, shown) : not_a_number(o, shown, "whole number");
	}
	if (!((double)value >= o->least && (double)value <= o->most))
		return out_of_range(o, shown);
	*out = value;
	return OK;
}

static struct err parse_number(const struct option *o, const char *text, const char *shown, double *out)
{
	double value;
	struct words w;
	if (find_word(cut_words(o->choices, &w), shown) == 0) {
		*out = 0;
		return OK;
	}
	if (!text_to_number(text, &value))
		return not_a_number(o, shown, "number");
	if (!(value >= o->least && value <= o->most))
		return out_of_range(o, shown);
	*out = value;
	return OK;
}

static struct err parse_switch(const struct option *o, const char *shown, int64_t *out)
{
	static const char *const word[] = { "off", "on", "false", "true", "no", "yes", "0", "1" };
	for (int i = 0; i < (int)(sizeof word / sizeof word[0]); i++)
		if (!strcmp(shown, word[i])) {
			*out = i % 2;
			return OK;
		}
	return err_usage(NULL, "%s: '%s' is neither on nor off (on, true, yes, 1; off, false, no, 0)", o->name, shown);
}

static struct err parse_choice(const struct option *o, const char *shown, int64_t *out)
{
	struct words w;
	int found = find_word(cut_words(o->choices, &w), shown);
	if (found >= 0) {
		*out = found;
		return OK;
	}
	const char *nearest = nearest_name(shown, next_word, &w);
	char hint[160] = "", list[sizeof w.text * 2] = "";
	for (int i = 0, used = 0; i < w.count; i++)
		used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", i ? ", " : "", w.word[i]);
	if (nearest)
		snprintf(hint, sizeof hint, "Did you mean '%s'?", nearest);
	return err_usage(hint, "%s: '%s' is none of %s", o->name, shown, list);
}

struct err option_parse(const struct option *o, const char *text, union option_value *out)
{
	char room[SHOWN];
	const char *shown = trim(text, room);
	switch (o->kind) {
	case OPTION_SWITCH:
		return parse_switch(o, shown, &out->integer);
	case OPTION_INTEGER:
		return parse_integer(o, text, shown, &out->integer);
	case OPTION_NUMBER:
		return parse_number(o, text, shown, &out->number);
	case OPTION_CHOICE:
		return parse_choice(o, shown, &out->integer);
	case OPTION_TEXT:
		out->text = text;
		return o->load ? err_at(o->load(text, &out->text), "%s", o->name) : OK;
	case OPTION_METHOD:
		break;
	}
	BUG("option %s is of a kind that option_parse does not read", o->name);
}

void option_print(const struct option *o, union option_value value, struct text_builder *b)
{
	struct words w;
	char number[NUMBER_TEXT];
	cut_words(o->choices, &w);
	switch (o->kind) {
	case OPTION_SWITCH:
		text_add(b, "%s", value.integer ? "on" : "off");
		return;
	case OPTION_INTEGER:
		text_add(b, "%" PRId64, value.integer);
		return;
	case OPTION_NUMBER:
		text_add(b, "%s", value.number == 0 && w.count ? w.word[0] : number_to_text(value.number, number));
		return;
	case OPTION_CHOICE:
		BUG_IF(value.integer < 0 || value.integer >= w.count, "option %s has no choice %" PRId64, o->name,
		       value.integer);
		text_add(b, "%s", w.word[value.integer]);
		return;
	case OPTION_TEXT:
		text_add(b, "%s", value.text ? value.text : "");
		return;
	case OPTION_METHOD:
		break;
	}
	BUG("option %s is of a kind that option_print does not write", o->name);
}

static const struct option *own_option(const struct entry *entry, int index)
{
	const struct option *o = entry->options ? entry->options + index : NULL;
	return o && o->name ? o : NULL;
}

static const char *next_option(int i, const void *entry)
{
	const struct option *o = own_option(entry, i);
	return o ? o->name : NULL;
}

struct method method_default(const struct entry *entry)
{
	struct method m = { .entry = entry };
	const struct option *o;
	for (int i = 0; (o = own_option(entry, i)); i++) {
		BUG_IF(i == METHOD_OPTIONS, "%s has more than %d options", entry->name, METHOD_OPTIONS);
		struct err e = option_parse(o, o->initial, &m.value[i]);
		BUG_IF(e.code, "a default of %s does not parse: %s", entry->name, e.text);
	}
	return m;
}

int method_find(const struct entry *entry, const char *name)
{
	const struct option *o;
	for (int i = 0; (o = own_option(entry, i)); i++)
		if (same_name(o->name, name))
			return i;
	return -1;
}

void method_set(struct method *m, int index, union option_value value)
{
	BUG_IF(index < 0 || index >= METHOD_OPTIONS, "%s has no option %d", m->entry->name, index);
	m->value[index] = value;
	if (!memchr(m->order, index, (size_t)m->given))
		m->order[m->given++] = (uint8_t)index;
}

bool method_changed(const struct method *m, int index)
{
	union option_value initial = method_default(m->entry).value[index], now = m->value[index];
	switch (m->entry->options[index].kind) {
	case OPTION_NUMBER:
		return now.number != initial.number;
	case OPTION_TEXT:
		return strcmp(now.text, initial.text);
	default:
		return now.integer != initial.integer;
	}
}

void method_as_trained(struct method *m)
{
	struct method initial = method_default(m->entry);
	const struct option *o;
	for (int i = 0; (o = own_option(m->entry, i)); i++)
		if (o->untrained)
			m->value[i] = initial.value[i];
}

/* A part that outlives what it was made from. */
static const struct method *keep_part(const struct method *part)
{
	static struct kept_part {
		struct kept_part *next;
		struct method part;
	} *all;
	for (struct kept_part *k = all; k; k = k->next)
		if (!memcmp(&k->part, part, sizeof *part))
			return &k->part;
	struct kept_part *k = calloc(1, sizeof *k);
	BUG_IF(!k, "out of memory for a method's parts");
	memcpy(&k->part, part, sizeof *part);
	k->next = all;
	all = k;
	return &k->part;
}

int method_split(const struct method *m, struct method part[METHOD_PARTS])
{
	int count = 0;
	for (; m; m = m->plus) {
		BUG_IF(count == METHOD_PARTS, "%s has more than %d parts", m->entry->name, METHOD_PARTS);
		part[count] = *m;
		part[count++].plus = NULL;
	}
	return count;
}

struct method method_join(const struct method *part, int count)
{
	struct method joined;
	memcpy(&joined, &part[count - 1], sizeof joined);
	joined.plus = NULL;
	for (int i = count - 2; i >= 0; i--) {
		const struct method *rest = keep_part(&joined);
		memcpy(&joined, &part[i], sizeof joined);
		joined.plus = rest;
	}
	return joined;
}

static void part_label(const struct method *m, struct text_builder *b)
{
	text_add(b, "%s", m->entry->name);
	for (int i = 0; i < m->given; i++) {
		const struct option *o = &m->entry->options[m->order[i]];
		text_add(b, "%s%s=", i ? "," : "(", o->name);
		option_print(o, m->value[m->order[i]], b);
	}
	if (m->given)
		text_add(b, ")");
}

void method_label(const struct method *m, struct text_builder *b)
{
	for (; m; m = m->plus) {
		part_label(m, b);
		text_add(b, "%s", m->plus ? "+" : "");
	}
}

static void part_identity(const struct method *m, struct text_builder *b)
{
	const struct option *o;
	text_add(b, "%s", m->entry->name);
	int i = 0;
	for (; (o = own_option(m->entry, i)); i++) {
		text_add(b, "%s%s=", i ? "," : "(", o->name);
		option_print(o, m->value[i], b);
	}
	if (i)
		text_add(b, ")");
}

void method_identity(const struct method *m, struct text_builder *b)
{
	for (; m; m = m->plus) {
		part_identity(m, b);
		text_add(b, "%s", m->plus ? "+" : "");
	}
}

/* A text that outlives what it was cut from: a method's TEXT option refers to it as long as the program runs. */
static const char *keep(const char *text)
{
	static struct kept {
		struct kept *next;
		char text[];
	} *all;
	for (struct kept *k = all; k; k = k->next)
		if (!strcmp(k->text, text))
			return k->text;
	size_t size = strlen(text) + 1;
	struct kept *k = malloc(sizeof *k + size);
	BUG_IF(!k, "out of memory for an option's text");
	memcpy(k->text, text, size);
	k->next = all;
	all = k;
	return k->text;
}

/* A family as nearest_name wants it. */
static const char *next_entry(int i, const void *family)
{
	const struct entry *entry = (*(const family_at *)family)(i);
	return entry ? entry->name : NULL;
}

/* "There are: a, b, c." */
static struct text_builder name_list(const char *(*next)(int i, const void *data), const void *data)
{
	struct text_builder b = { 0 };
	const char *name;
	text_add(&b, "There are: ");
	for (int i = 0; (name = next(i, data)); i++)
		text_add(&b, "%s%s", i ? ", " : "", name);
	text_add(&b, ".");
	return b;
}

/* `name` is none of a list: says so, with the nearest of it and all there is. */
static struct err unknown_name(const char *what, const char *name, const char *(*next)(int i, const void *data),
			       const void *data)
{
	char shown[SHOWN];
	trim(name, shown);
	struct text_builder list = name_list(next, data);
	const char *nearest = nearest_name(name, next, data);
	struct err e;
	if (!*shown)
		e = err_usage(list.data, "%s: a name is missing", what);
	else if (nearest)
		e = err_usage(list.data, "%s: '%s' is unknown, did you mean '%s'?", what, shown, nearest);
	else
		e = err_usage(list.data, "%s: '%s' is unknown", what, shown);
	text_builder_free(&list);
	return e;
}

static struct err unknown_option(const struct entry *entry, const char *name)
{
	char shown[SHOWN];
	if (!own_option(entry, 0))
		return err_usage("Leave it out.", "option '%s' is unknown, '%s' has none", trim(name, shown),
				 entry->name);
	return unknown_name("option", name, next_option, entry);
}

/* The option's index, also by its name outside the parentheses (alibi_slopes). */
static int find_own(const struct entry *entry, const char *name)
{
	int index = method_find(entry, name);
	size_t length = strlen(entry->name);
	if (index >= 0 || strlen(name) <= length || (name[length] != '_' && name[length] != '-'))
		return index;
	char *prefix = strndup(name, length);
	BUG_IF(!prefix, "out of memory for an option's name");
	if (same_name(prefix, entry->name))
		index = method_find(entry, name + length + 1);
	free(prefix);
	return index;
}

/* Sets one option from "name=value", which it cuts in two. */
static struct err parse_own(struct method *m, char *piece)
{
	char shown[SHOWN];
	char *equals = strchr(piece, '=');
	if (!*piece)
		return err_usage("Write NAME=VALUE, separated by single commas.", "an option is missing at a comma");
	if (!equals) {
		struct text_builder list = name_list(next_option, m->entry);
		struct err e = err_usage(own_option(m->entry, 0) ? list.data : "It has no options.",
					 "'%s' is a bare value; an option is written NAME=VALUE", trim(piece, shown));
		text_builder_free(&list);
		return e;
	}
	*equals = '\0';
	for (char *end = equals; end > piece && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	int index = find_own(m->entry, piece);
	if (index < 0)
		return unknown_option(m->entry, piece);
	if (memchr(m->order, index, (size_t)m->given))
		return err_usage("Leave one of them out.", "option '%s' is given twice", trim(piece, shown));
	const char *text = equals + 1;
	while (isspace((unsigned char)*text))
		text++;
	const struct option *o = &m->entry->options[index];
	union option_value value;
	TRY(option_parse(o, o->kind == OPTION_TEXT ? keep(text) : text, &value));
	method_set(m, index, value);
	return OK;
}

/* What stands in the parentheses. */
static struct err parse_list(struct method *m, const char *text)
{
	int count;
	struct err e = OK;
	char **list = text_list(text, &count);
	for (int i = 0; i < count && !e.code; i++)
		e = parse_own(m, list[i]);
	text_list_free(list);
	return e;
}

#define PARENTHESES "Write NAME or NAME(option=value,...); a shell wants quotes around parentheses."

/* Finds the name's end and the parentheses behind it; `open` and `close` are NULL if there are none. */
static struct err find_parentheses(const char *text, const char **open, const char **close)
{
	char shown[SHOWN];
	int depth = 0;
	*open = *close = NULL;
	for (const char *s = text; *s; s++) {
		if (*close && !isspace((unsigned char)*s))
			return err_usage(PARENTHESES, "'%s' follows the closing parenthesis", trim(s, shown));
		if (*s == '(' && !depth++)
			*open = s;
		if (*s == ')' && --depth <= 0) {
			if (depth < 0)
				return err_usage(PARENTHESES, "'%s' closes a parenthesis that was not opened",
						 trim(text, shown));
			*close = s;
		}
	}
	if (depth)
		return err_usage(PARENTHESES, "'%s' lacks a closing parenthesis", trim(text, shown));
	return OK;
}

static const struct entry *find_entry(family_at family, const char *name)
{
	const struct entry *entry;
	for (int i = 0; (entry = family(i)); i++)
		if (same_name(entry->name, name))
			return entry;
	return NULL;
}

static struct err parse_part(const char *what, family_at family, const char *text, struct method *out)
{
	const char *open, *close;
	struct err e = find_parentheses(text, &open, &close);
	if (e.code)
		return err_at(e, "%s", what);
	char name[SHOWN];
	const char *end = open ? open : text + strlen(text);
	char *head = strndup(text, (size_t)(end - text));
	BUG_IF(!head, "out of memory for a method's name");
	trim(head, name);
	free(head);
	const struct entry *entry = find_entry(family, name);
	if (!entry)
		return unknown_name(what, name, next_entry, &family);
	*out = method_default(entry);
	if (!open)
		return OK;
	char *list = strndup(open + 1, (size_t)(close - open - 1));
	BUG_IF(!list, "out of memory for a method's options");
	e = parse_list(out, list);
	free(list);
	return err_at(e, "%s: %s", what, entry->name);
}

/* Where the part of A+B that begins here ends: at a + outside parentheses. */
static const char *part_end(const char *text)
{
	int depth = 0;
	for (; *text && (*text != '+' || depth > 0); text++)
		depth += (*text == '(') - (*text == ')');
	return text;
}

struct err method_parse(const char *what, family_at family, const char *text, struct method *out)
{
	struct method part[METHOD_PARTS];
	int count = 0;
	for (const char *end;; text = end + 1) {
		if (count == METHOD_PARTS)
			return err_usage("Leave some out.", "%s: more than %d parts joined by +", what, METHOD_PARTS);
		end = part_end(text);
		char *piece = strndup(text, (size_t)(end - text));
		BUG_IF(!piece, "out of memory for a method");
		struct err e = parse_part(what, family, piece, &part[count++]);
		free(piece);
		if (e.code)
			return e;
		if (!*end)
			break;
	}
	*out = method_join(part, count);
	if (count == 1)
		return OK;
	if (!part[0].entry->joins)
		return err_usage("Name one.", "%s: %s takes no part after a +", what, part[0].entry->name);
	return err_at(part[0].entry->joins(out), "%s", what);
}
