#include "tests/hostile.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/run/rows.h"
#include "runs/run/run_folder.h"

#include <stdlib.h>
#include <string.h>

/* What a run's folder says of itself: rows of eval-*.csv, those of eval-*-sequences.csv and of the measures beside them,
 * record.json. The input is given to all the readers, and accepted if one of them takes it. */

static void same(const void *a, ptrdiff_t count, const void *b, ptrdiff_t others, size_t size)
{
	BUG_IF(count != others, "%d rows became %d", (int)count, (int)others);
	/* Equal texts are one text (text_keep). */
	BUG_IF(count && memcmp(a, b, (size_t)count * size), "other rows were read");
}

static struct err read_rows(const char *path, const char *again)
{
	struct row *first = NULL, *second = NULL;
	struct err e = refusal(rows_read(path, &first), path);
	if (!e.code) {
		struct err f = rows_write(again, first, (int)arrlen(first));
		if (!f.code)
			f = rows_read(again, &second);
		BUG_IF(f.code, "what was written is refused: %s", f.text);
		same(first, arrlen(first), second, arrlen(second), sizeof *first);
	}
	arrfree(first);
	arrfree(second);
	return e;
}

static struct err read_sequences(const char *path, const char *again)
{
	struct sequence_row *first = NULL, *second = NULL;
	struct err e = refusal(sequence_rows_read(path, &first), path);
	if (!e.code) {
		struct err f = sequence_rows_write(again, first, (int)arrlen(first));
		if (!f.code)
			f = sequence_rows_read(again, &second);
		BUG_IF(f.code, "what was written is refused: %s", f.text);
		same(first, arrlen(first), second, arrlen(second), sizeof *first);
	}
	arrfree(first);
	arrfree(second);
	return e;
}

static struct err read_measure(enum measure_kind m, const char *path, const char *again)
{
	struct measure_row *first = NULL, *second = NULL;
	struct err e = refusal(measure_rows_read(m, path, &first), path);
	if (!e.code) {
		struct err f = measure_rows_write(m, again, first, (int)arrlen(first));
		if (!f.code)
			f = measure_rows_read(m, again, &second);
		BUG_IF(f.code, "what was written is refused: %s", f.text);
		same(first, arrlen(first), second, arrlen(second), sizeof *first);
	}
	arrfree(first);
	arrfree(second);
	return e;
}

/* A record is read by its folder's name, and written over. */
static struct err read_record(const char *path)
{
	json_t *first, *second;
	char *folder = strndup(path, strlen(path) - strlen("/" RUN_RECORD));
	run_folder_status(folder);
	struct err e = refusal(run_record_read(folder, &first), path);
	if (!e.code) {
		struct err f = run_record_write(folder, first);
		if (!f.code)
			f = run_record_read(folder, &second);
		BUG_IF(f.code, "what was written is refused: %s", f.text);
		BUG_IF(!json_equal(first, second), "another record was read");
		json_decref(first);
		json_decref(second);
	}
	free(folder);
	return e;
}

static struct err read(const char *path, const char *again)
{
	struct err rows = read_rows(path, again), sequences = read_sequences(path, again), record = read_record(path);
	bool taken = !rows.code || !sequences.code;
	for (enum measure_kind m = 0; m < MEASURE_KINDS; m++)
		taken |= !read_measure(m, path, again).code;
	if (taken)
		return OK;
	return record;
}

const struct target target_records = { "records", RUN_RECORD, read };
FUZZED(target_records)
