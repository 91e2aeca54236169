#include "option.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A method: its options' values, parts joined by +, from text and back. */

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

static bool same_value(const struct option *o, union option_value a, union option_value b)
{
	switch (o->kind) {
	case OPTION_NUMBER:
		return a.number == b.number;
	case OPTION_TEXT:
		return !strcmp(a.text, b.text);
	default:
		return a.integer == b.integer;
	}
}

bool method_changed(const struct method *m, int index)
{
	return !same_value(&m->entry->options[index], method_default(m->entry).value[index], m->value[index]);
}

void method_as_trained(struct method *m)
{
	struct method initial = method_default(m->entry);
	const struct option *o;
	for (int i = 0; (o = own_option(m->entry, i)); i++)
		if (o->untrained)
			m->value[i] = initial.value[i];
}

/* Are they written alike, too? */
static bool same_part(const struct method *a, const struct method *b)
{
	const struct option *o;
	bool same = a->entry == b->entry && a->plus == b->plus && a->given == b->given &&
		    !memcmp(a->order, b->order, (size_t)a->given);
	for (int i = 0; same && (o = own_option(a->entry, i)); i++)
		same = same_value(o, a->value[i], b->value[i]);
	return same;
}

/* A part that outlives what it was made from. */
static const struct method *keep_part(const struct method *part)
{
	static struct kept_part {
		struct kept_part *next;
		struct method part;
	} *all;
	for (struct kept_part *k = all; k; k = k->next)
		if (same_part(&k->part, part))
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
	char shown[TEXT_SHOWN];
	text_shown(name, shown);
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
	char shown[TEXT_SHOWN];
	if (!own_option(entry, 0))
		return err_usage("Leave it out.", "option '%s' is unknown, '%s' has none", text_shown(name, shown),
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
	char shown[TEXT_SHOWN];
	char *equals = strchr(piece, '=');
	if (!*piece)
		return err_usage("Write NAME=VALUE, separated by single commas.", "an option is missing at a comma");
	if (!equals) {
		struct text_builder list = name_list(next_option, m->entry);
		struct err e = err_usage(own_option(m->entry, 0) ? list.data : "It has no options.",
					 "'%s' is a bare value; an option is written NAME=VALUE", text_shown(piece, shown));
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
		return err_usage("Leave one of them out.", "option '%s' is given twice", text_shown(piece, shown));
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
	char shown[TEXT_SHOWN];
	int depth = 0;
	*open = *close = NULL;
	for (const char *s = text; *s; s++) {
		if (*close && !isspace((unsigned char)*s))
			return err_usage(PARENTHESES, "'%s' follows the closing parenthesis", text_shown(s, shown));
		if (*s == '(' && !depth++)
			*open = s;
		if (*s == ')' && --depth <= 0) {
			if (depth < 0)
				return err_usage(PARENTHESES, "'%s' closes a parenthesis that was not opened",
						 text_shown(text, shown));
			*close = s;
		}
	}
	if (depth)
		return err_usage(PARENTHESES, "'%s' lacks a closing parenthesis", text_shown(text, shown));
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
	char name[TEXT_SHOWN];
	const char *end = open ? open : text + strlen(text);
	char *head = strndup(text, (size_t)(end - text));
	BUG_IF(!head, "out of memory for a method's name");
	text_shown(head, name);
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

bool method_means(const struct method *m, family_at family, const char *text)
{
	struct text_builder one = { 0 }, other = { 0 };
	struct method meant;
	if (method_parse("", family, text, &meant).code)
		return false;
	method_identity(m, &one);
	method_identity(&meant, &other);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): every method has a name */
	bool same = !strcmp(one.data, other.data);
	text_builder_free(&one);
	text_builder_free(&other);
	return same;
}
