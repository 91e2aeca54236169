#ifndef ROPEWALK_TESTS_REFERENCE_PARTS_H
#define ROPEWALK_TESTS_REFERENCE_PARTS_H

#include "tests/reference.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

/* How the oracle's files read options; for reference.c and reference_zones.c. */

static inline bool is(const struct method *m, const char *name)
{
	return !strcmp(m->entry->name, name);
}

static inline double option(const struct method *m, const char *name)
{
	int index = method_find(m->entry, name);
	if (index < 0)
		fail_msg("%s has no option %s", m->entry->name, name);
	const struct option *o = &m->entry->options[index];
	return o->kind == OPTION_NUMBER ? m->value[index].number : (double)m->value[index].integer;
}

/* Is a choice set to this word? */
static inline bool chosen(const struct method *m, const char *name, const char *word)
{
	int64_t index = (int64_t)option(m, name);
	const char *at = m->entry->options[method_find(m->entry, name)].choices;
	for (; index > 0; index--)
		at = strchr(at, '|') + 1;
	return !strncmp(at, word, strlen(word)) && (at[strlen(word)] == '|' || !at[strlen(word)]);
}

/* The part of that name of a scaling A+B; NULL: it has none. */
static inline const struct method *part(const struct method *scaling, const char *name)
{
	while (scaling && !is(scaling, name))
		scaling = scaling->plus;
	return scaling;
}

/* The number given, or what stands for 0. */
static inline double or_else(double given, double otherwise)
{
	return given > 0 ? given : otherwise;
}

/* Where query i stands for its nearest keys. */
double reference_query_position(const struct method *scaling, int train_length, const double *positions, int i);

#endif
