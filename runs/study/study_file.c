#include "runs/study/study_file.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct scope study_scope = { .command = "study", .lists = LIST_TRAINING | LIST_EVAL | LIST_STUDY };

bool study_takes_list(const struct option_name *option)
{
	return option->list & (LIST_EVAL | LIST_STUDY) && option->option->kind == OPTION_TEXT;
}

/* Only what training depends on can be an axis: the rest would give one run's rows different meanings. */
static bool can_be_axis(const struct option_name *option)
{
	if (option->list)
		return option->list & LIST_TRAINING;
	return option->family != scaling_at;
}

static struct err place(const char *from, struct err e)
{
	return from && e.code ? err_at(e, "%s", from) : e;
}

static const char *shown_name(const char *name, const char *from)
{
	char text[128];
	snprintf(text, sizeof text, "%s%s", from ? "" : "--", name);
	return text_keep(text);
}

static struct err refuse_axis(const struct option_name *option, const char *shown)
{
	if (!option->list)
		return err_usage("Write it into the list of scalings: scaling = ntk(factor=4), ntk(factor=8).",
				 "%s: a scaling's option takes one value in a study", shown);
	return err_usage("All cells of a study are evaluated alike; make a second study for other values.",
			 "%s: takes one value in a study", shown);
}

static struct err refuse_duplicates(char **value, int count, const char *shown)
{
	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++)
			if (!strcmp(value[i], value[j]))
				return err_usage("Name every value once.", "%s: %s is there twice", shown, value[i]);
	return OK;
}

static struct err take_values(struct study_line *l, char **value, int count, const char *shown)
{
	if (!count)
		return err_usage("Give a value, or remove the line.", "%s: no value", shown);
	if (count > STUDY_VALUES)
		return err_usage("Make several studies of it.", "%s: more than %d values", shown, STUDY_VALUES);
	for (int i = 0; i < count; i++) {
		if (!*value[i])
			return err_usage("A list is written a, b, c.", "%s: an empty value in the list", shown);
		if (*value[i] == '#')
			return err_usage("Before a comment stands a space.", "%s: '%.60s': a value begins with #",
					 shown, value[i]);
	}
	if (count > 1 && !can_be_axis(&l->option))
		return refuse_axis(&l->option, shown);
	TRY(refuse_duplicates(value, count, shown));
	for (int i = 0; i < count; i++)
		arrput(l->value, text_keep(value[i]));
	return OK;
}

bool study_is_variant(const struct study_line *l)
{
	return !strcmp(l->name, STUDY_VARIANT);
}

/* An option, or the variant. */
static bool lookup(const char *name, struct option_name *out)
{
	if (!same_name(name, STUDY_VARIANT))
		return option_lookup(&study_scope, name, out);
	*out = (struct option_name){ .name = STUDY_VARIANT, .list = LIST_TRAIN };
	return true;
}

static struct err check_variants(const struct study_line *l)
{
	for (int i = 0; i < arrlen(l->value); i++)
		if (study_is_variant(l) && !claim_is_name(l->value[i]))
			return err_usage("A name has letters, digits, -, _ and . only, and is short.",
					 "%s: '%.60s' is not a name", l->name, l->value[i]);
	return OK;
}

static struct err parse_line(const char *name, const char *text, const char *from, struct study_line *out)
{
	const char *shown = shown_name(name, from);
	*out = (struct study_line){ .from = from };
	if (!lookup(name, &out->option))
		return place(from, option_unknown(&study_scope, name, shown));
	out->name = text_keep(out->option.name);
	if (study_takes_list(&out->option)) {
		arrput(out->value, text_keep(text));
		return OK;
	}
	int count;
	char **value = text_list(text, &count);
	struct err e = take_values(out, value, count, shown);
	if (!e.code)
		e = check_variants(out);
	text_list_free(value);
	if (e.code)
		arrfree(out->value);
	return place(from, e);
}

static struct study_line *find_line(struct study_line *line, const char *name)
{
	for (int i = 0; i < arrlen(line); i++)
		if (!strcmp(line[i].name, name))
			return &line[i];
	return NULL;
}

/* Appends to a list of lines in which every name stands once. */
static struct err add_line(struct study_line **list, const char *name, const char *text, const char *from)
{
	struct study_line l;
	TRY(parse_line(name, text, from, &l));
	const struct study_line *before = find_line(*list, l.name);
	if (before) {
		arrfree(l.value);
		return place(from, err_usage("Keep one of the two lines.", "%s: given before, in %s", name,
					     before->from));
	}
	arrput(*list, l);
	return OK;
}

static struct err no_equals(const char *text)
{
	const char *kind = claim_nearest_kind(text);
	char hint[128];
	snprintf(hint, sizeof hint, kind ? "Did you mean [%s NAME]?"
		 : "A section is named by an option's value, as written: [encoding=nope].", kind);
	return err_usage(hint, "[%s]: no `=`", text);
}

static struct err split_section(const char *text, struct study_section *out)
{
	const char *equals = strchr(text, '=');
	if (!equals)
		return no_equals(text);
	char *name = strndup(text, (size_t)(equals - text));
	BUG_IF(!name, "out of memory for a name");
	for (char *end = name + strlen(name); end > name && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	struct option_name option;
	if (!lookup(name, &option)) {
		struct err e = option_unknown(&study_scope, name, name);
		free(name);
		return e;
	}
	out->name = text_keep(option.name);
	free(name);
	if (!can_be_axis(&option) || !strcmp(out->name, "seed"))
		return err_usage("Sections select by what makes rows of the table, as [encoding=nope].",
				 "[%s]: %s does not tell rows apart", text, out->name);
	for (equals++; isspace((unsigned char)*equals);)
		equals++;
	out->value = text_keep(equals);
	return OK;
}

static struct err add_section(struct study *s, const char *text, const char *from)
{
	struct study_section section = { .from = from };
	TRY(place(from, split_section(text, &section)));
	for (int i = 0; i < arrlen(s->section); i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an unknown name was an error */
		if (!strcmp(s->section[i].name, section.name) && !strcmp(s->section[i].value, section.value))
			return place(from, err_usage("Put its lines together.", "[%s]: given before, in %s", text,
						     s->section[i].from));
	if (arrlen(s->section) == STUDY_SECTIONS)
		return place(from, err_usage("Make two studies of it.", "more than %d sections", STUDY_SECTIONS));
	arrput(s->section, section);
	return OK;
}

static struct err add_section_line(struct study_section *section, const struct config_line *l, const char *from)
{
	TRY(add_line(&section->line, l->name, l->value, from));
	const struct study_line *added = &arrlast(section->line);
	if (arrlen(added->value) > 1)
		return place(from, err_usage("Put the list before the first section.",
					     "%s: a list inside a section", l->name));
	if (!strcmp(added->name, section->name) || study_is_variant(added))
		return place(from, err_usage("Sections change other options of the cells they select.",
					     "%s: %s", l->name, study_is_variant(added) ? "selects cells itself"
					     : "the section selects by it"));
	return OK;
}

static struct err take_minutes(struct study *s, const struct config_line *l, const char *from)
{
	double minutes;
	if (l->section)
		return place(from, err_usage("Put it before the first section.", "minutes: is of the whole study"));
	if (s->minutes > 0)
		return place(from, err_usage("Keep one of the two lines.", "minutes: given before"));
	if (!text_to_number(l->value, &minutes) || minutes <= 0)
		return place(from, err_usage("About how long the study takes on two cores.",
					     "minutes: '%.60s' is not a number above 0", l->value));
	s->minutes = minutes;
	return OK;
}

/* `claim`: are the lines those of a claim, or of options? */
static struct err add_any(struct study *s, const struct config_line *l, const char *from, bool *claim)
{
	if (!l->name) {
		*claim = claim_is_section(l->section);
		return *claim ? claims_begin(&s->claim, l->section, from) : add_section(s, l->section, from);
	}
	if (*claim)
		return claims_add(&s->claim, l->name, l->value, from);
	if (same_name(l->name, "minutes"))
		return take_minutes(s, l, from);
	if (l->section)
		return add_section_line(&arrlast(s->section), l, from);
	return add_line(&s->line, l->name, l->value, from);
}

static struct err add_lines(const char *path, const struct config_line *line, int count, struct study *out)
{
	bool claim = false;
	for (int i = 0; i < count; i++) {
		char place_text[1024];
		snprintf(place_text, sizeof place_text, "%s:%d", path, line[i].number);
		TRY(add_any(out, &line[i], text_keep(place_text), &claim));
	}
	return claims_finish(out->claim);
}

struct err study_parse(const char *path, const char *text, struct study *out)
{
	struct config_line *line;
	int count;
	*out = (struct study){ 0 };
	TRY(config_lines_of(path, text, &line, &count));
	struct err e = add_lines(path, line, count, out);
	free(line);
	if (e.code)
		study_free(out);
	return e;
}

struct err study_read(const char *path, struct study *out)
{
	char *text;
	size_t size;
	*out = (struct study){ 0 };
	TRY(io_read(path, &text, &size));
	struct err e = strlen(text) == size ? study_parse(path, text, out)
					    : err_usage("A study file is text.", "%s: a NUL byte in it, at byte %zu", path,
						      strlen(text));
	free(text);
	return e;
}

static void free_lines(struct study_line *line)
{
	for (int i = 0; i < arrlen(line); i++)
		arrfree(line[i].value);
	arrfree(line);
}

void study_free(struct study *s)
{
	free_lines(s->line);
	for (int i = 0; i < arrlen(s->section); i++)
		free_lines(s->section[i].line);
	arrfree(s->section);
	claims_free(&s->claim);
	*s = (struct study){ 0 };
}

static void remove_line(struct study_line **list, const char *name)
{
	struct study_line *l = find_line(*list, name);
	if (!l)
		return;
	arrfree(l->value);
	arrdel(*list, l - *list);
}

bool study_same_value(const char *a, const char *b)
{
	for (;;) {
		while (isspace((unsigned char)*a))
			a++;
		while (isspace((unsigned char)*b))
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

static bool has_value(const struct study_line *l, const char *value)
{
	for (int i = 0; i < arrlen(l->value); i++)
		if (study_same_value(l->value[i], value))
			return true;
	return false;
}

static void drop_sections(struct study *s, const struct study_line *l)
{
	for (int i = (int)arrlen(s->section) - 1; i >= 0; i--) {
		if (strcmp(s->section[i].name, l->name) || has_value(l, s->section[i].value))
			continue;
		free_lines(s->section[i].line);
		arrdel(s->section, i);
	}
}

/* What was said of the file's own models and time. */
static void drop_claims(struct study *s, const struct study_line *l)
{
	const struct study_line *before = find_line(s->line, l->name);
	bool same_models = !(l->option.list & LIST_TRAINING) || !strcmp(l->name, "seed") ||
			   (before && arrlen(before->value) > 1);
	for (int i = (int)arrlen(s->claim) - 1; i >= 0 && !same_models; i--)
		if (s->claim[i].kind == CLAIM_EXPECT)
			claims_remove(&s->claim, i);
	s->minutes = 0;
	s->overridden = true;
}

struct err study_override(struct study *s, const char *name, const char *text, const char *from)
{
	struct study_line l;
	TRY(parse_line(name, text, from, &l));
	drop_claims(s, &l);
	for (int i = 0; i < arrlen(s->section); i++)
		remove_line(&s->section[i].line, l.name);
	drop_sections(s, &l);
	struct study_line *before = find_line(s->line, l.name);
	if (!before) {
		arrput(s->line, l);
		return OK;
	}
	arrfree(before->value);
	*before = l;
	return OK;
}

static void print_lines(const struct study_line *line, struct text_builder *b)
{
	for (int i = 0; i < arrlen(line); i++) {
		text_add(b, "%s = ", line[i].name);
		for (int j = 0; j < arrlen(line[i].value); j++)
			text_add(b, "%s%s", j ? ", " : "", line[i].value[j]);
		text_add(b, "\n");
	}
}

void study_print(const struct study *s, struct text_builder *b)
{
	char number[NUMBER_TEXT];
	text_add(b, "%s", "");
	if (s->minutes > 0)
		text_add(b, "minutes = %s\n", number_to_text(s->minutes, number));
	print_lines(s->line, b);
	for (int i = 0; i < arrlen(s->section); i++) {
		text_add(b, "\n[%s=%s]\n", s->section[i].name, s->section[i].value);
		print_lines(s->section[i].line, b);
	}
	claims_print(s->claim, b);
}
