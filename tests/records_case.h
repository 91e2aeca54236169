#ifndef ROPEWALK_TESTS_RECORDS_CASE_H
#define ROPEWALK_TESTS_RECORDS_CASE_H

#include "tests/program.h"
#include "tests/support.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* What commands print, as text and as records. */

static inline char *output(const char *line)
{
	struct program_run r = program_run(line);
	if (r.code)
		fail_msg("%s: exit %d: %s", line, r.code, r.err);
	char *out = strdup(r.out);
	program_run_free(&r);
	return out;
}

static inline void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

static inline int count(const char *text, const char *part)
{
	int found = 0;
	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static inline json_t *records(const char *line)
{
	char *text = output(line);
	json_t *all = json_loads(text, 0, NULL);
	assert_true(json_is_array(all));
	free(text);
	return all;
}

#endif
