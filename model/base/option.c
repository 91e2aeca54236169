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
	char room[TEXT_SHOWN];
	const char *shown = text_shown(text, room);
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
