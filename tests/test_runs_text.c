#include <stdio.h>
#include <string.h>

#include "runs/show/notes.h"
#include "tests/study_case.h"

/* Tables of text: bits per byte where others have perplexities, from numbers written by hand. */

static void put_text(const char *name, struct text_builder *path)
{
	char text[4000];
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + i * i % 7);
	text_add(path, "%s/%s", folder, name);
	assert_ok(io_write(path->data, text, sizeof text));
}

static struct row bytes_row(const struct cell *c, int length, double bits, double bits_se)
{
	struct row r = new_row(c, 0, length, "bytes", exp2(bits), 0.5);
	r.cell.nll = bits * M_LN2;
	r.cell.nll_se = bits_se * M_LN2;
	return r;
}

/* Seeds 1 ..: bits 2, 2.5 ... at 2x and twice that at 4x. */
static void build_study(int seeds, double error)
{
	char text[2 * FOLDER_PATH];
	struct text_builder path = { 0 };
	put_text("text", &path);
	snprintf(text, sizeof text, "task = text(file=%s,held=0.5)\ntrain_length = 32\nseed = 1%s\n"
		 "multiples = 2, 4\nsequences = 4\nreferences = on\n", path.data,
		 seeds == 2 ? ", 2" : seeds == 5 ? ", 2, 3, 4, 5" : "");
	build(text);
	for (int i = 0; i < seeds; i++) {
		const struct cell *c = &grid.cell[i];
		struct row row[2] = { bytes_row(c, 0, 2 + 0.5 * i, error), bytes_row(c, 1, 4 + i, error) };
		char *run = make_run(i, "finished", "a");
		char *csv = run_folder_csv(run, &c->config.eval, c->scaling_label[0], false);
		assert_ok(rows_write(csv, row, 2));
		free(csv);
		free(run);
	}
	read_back();
	text_builder_free(&path);
}

static void assert_line(const struct sheet *s, int row, int column, int line, const char *wanted)
{
	assert_string_equal(s->row[row].cell[column].line[line], wanted);
}

static void test_sheet(void **state)
{
	(void)state;
	struct sheet s;
	build_study(2, 0);
	assert_ok(table_sheet(&results, "bytes", &s));
	assert_non_null(strstr(s.title, "bytes: bits per byte / accuracy in %; (least - greatest bits over seeds)"));
	assert_line(&s, 0, 0, 0, "2.250 / 50.0");
	assert_line(&s, 0, 0, 1, "(2.000 - 2.500)");
	assert_line(&s, 0, 1, 0, "4.500 / 50.0");
	sheet_free(&s);
}

static void test_error_in_bits(void **state)
{
	(void)state;
	struct sheet s;
	build_study(1, 0.25);
	assert_ok(table_sheet(&results, "bytes", &s));
	assert_line(&s, 0, 1, 0, "4.000 / 50.0");
	assert_line(&s, 0, 1, 1, "+-0.25 eval");
	sheet_free(&s);
}

/* 2, 2.5 ... 4 at 2x: mean 3, interval 3 -+ 2.7764 sqrt(0.625 / 5). */
static void test_interval_in_bits(void **state)
{
	(void)state;
	struct sheet s;
	build_study(5, 0);
	assert_ok(table_sheet(&results, "bytes", &s));
	assert_line(&s, 0, 0, 0, "3.000 / 50.0");
	assert_line(&s, 0, 0, 1, "[2.018 - 3.982]");
	sheet_free(&s);
}

/* Three of them, from the file; none at a length it does not have. */
static void test_baselines(void **state)
{
	(void)state;
	struct sheet s;
	struct baseline *found;
	char bits[SHORT_TEXT];
	build_study(1, 0);
	assert_ok(table_sheet(&results, "bytes", &s));
	assert_ok(table_baselines(&results, 0, "bytes", &found));
	assert_int_equal(arrlen(found), 6);
	int first = (int)arrlen(s.row) - 3;
	assert_non_null(strstr(s.row[first].label, "how often the byte comes"));
	for (int i = 0; i < 3; i++) {
		const char *cell = s.row[first + i].cell[0].line[0];
		bits_text(log(found[i].reference.perplexity), bits);
		assert_memory_equal(cell, bits, strlen(bits));
	}
	/* Squares modulo 7, a period of 7: little is left to know after two of them. */
	assert_true(found[0].reference.perplexity > 3 && found[2].reference.perplexity < 1.2);
	arrfree(found);
	sheet_free(&s);
}

static void test_records(void **state)
{
	(void)state;
	build_study(1, 0);
	struct records rows = { 0 }, seeds = { 0 };
	struct text_builder b = { 0 };
	assert_ok(table_long(&results, NULL, &rows));
	records_json(&rows, 0, &b);
	assert_non_null(strstr(b.data, "\"bits_per_byte\": 2"));
	assert_non_null(strstr(b.data, "\"bits_per_byte\": 4"));
	text_builder_free(&b);
	table_seeds(&results, &seeds);
	records_json(&seeds, 0, &b);
	assert_non_null(strstr(b.data, "\"bits_per_byte\": 2"));
	text_builder_free(&b);
	records_free(&rows);
	records_free(&seeds);
}

static void test_notes(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	build_study(1, 0);
	notes_text(&results, &b);
	assert_non_null(strstr(b.data, "Bits per byte are the mean NLL over seeds"));
	text_builder_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sheet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_error_in_bits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_interval_in_bits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_baselines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_notes, set_up, tear_down),
	};
	return cmocka_run_group_tests_name("runs text", tests, NULL, NULL);
}
