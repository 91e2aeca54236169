#include "runs/plot/chart_gnuplot.h"
#include "runs/plot/terminal.h"

#include "model/base/stb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

/* Axes and charts, as a gnuplot script, as a table, and in characters. */

static void test_axes(void **state)
{
	(void)state;
	struct axis a = axis_new("x", 0);
	axis_hold(&a, NAN);
	axis_hold(&a, INFINITY);
	axis_finish(&a);
	assert_true(a.least < a.greatest);
	arrfree(a.tick);
	a = axis_new("x", 10);
	axis_hold(&a, 0);
	axis_hold(&a, -1);
	axis_hold(&a, 1);
	axis_finish(&a);
	assert_true(a.least > 0.9 && a.least < 1 && a.greatest > 1 && a.greatest < 1.1);
	assert_true(arrlen(a.tick) >= 2);
	arrfree(a.tick);
	a = axis_new("x", 10);
	axis_hold(&a, 1);
	axis_hold(&a, 1e6);
	axis_finish(&a);
	assert_int_equal(arrlen(a.tick), 7);
	assert_string_equal(a.tick[5].text, "100000");
	assert_string_equal(a.tick[6].text, "1e+06");
	assert_close(axis_share(&a, 1000), 0.5, 1e-12);
	arrfree(a.tick);
	a = axis_new("x", 0);
	a.percent = true;
	axis_hold(&a, 0);
	axis_hold(&a, 1);
	axis_finish(&a);
	assert_string_equal(a.tick[0].text, "0 %");
	assert_string_equal(arrlast(a.tick).text, "100 %");
	assert_close(axis_share(&a, 0.5), 0.5, 1e-12);
	assert_true(axis_reaches(&a, 1) && !axis_reaches(&a, 1.2));
	arrfree(a.tick);
	/* Shares end at 0 and 1, and of pairs there are no halves. */
	a = axis_new("x", 0);
	a.percent = true;
	axis_hold(&a, 0);
	axis_finish(&a);
	assert_string_equal(a.tick[0].text, "0 %");
	arrfree(a.tick);
	a = axis_new("x", 0);
	a.whole = true;
	axis_hold(&a, 0);
	axis_hold(&a, 3);
	axis_finish(&a);
	assert_int_equal(arrlen(a.tick), 4);
	arrfree(a.tick);
}
static struct chart small_chart(const char *label)
{
	struct chart c = { .title = "a title", .x = "length", .y = "loss", .columns = 1 };
	struct panel *p = chart_panel(&c, "recall", axis_new("length", 2), axis_new("loss", 0));
	struct series *s = panel_series(p, SERIES_LINE, 0, label);
	series_add(p, s, 1, 0);
	series_add_band(p, s, (struct point){ .x = 4, .y = 10, .low = 9, .high = 12 }, 1);
	s = panel_series(p, SERIES_THIN, 0, "floor");
	series_add(p, s, 1, 0);
	series_add(p, s, 4, NAN);
	p->key = true;
	axis_finish(&p->x);
	axis_finish(&p->y);
	return c;
}

/* A line that the axis does not reach is not drawn, and the key says of what there is nothing. */
static void test_what_is_not_there(void **state)
{
	(void)state;
	struct chart c = small_chart("method");
	struct text_builder b = { 0 };
	panel_mark(c.panel, (struct mark){ true, false, 2, 0.5, "within" });
	panel_mark(c.panel, (struct mark){ true, false, 64, 0.5, "beyond" });
	panel_series(c.panel, SERIES_LINE, 1, "diverged one");
	panel_series(c.panel, SERIES_THIN, 1, "no floor");
	chart_key(&c, 1);
	chart_script(&c, "small", PICTURE_SVG, &b);
	assert_non_null(strstr(b.data, "'within'"));
	assert_null(strstr(b.data, "'beyond'"));
	assert_non_null(strstr(b.data, "'method'"));
	assert_non_null(strstr(b.data, "'diverged one: nothing to show'"));
	assert_null(strstr(b.data, "no floor"));
	text_builder_free(&b);
	chart_free(&c);
}

static void test_tsv(void **state)
{
	(void)state;
	struct chart c = small_chart("a\tb\n\"c\"");
	struct text_builder b = { 0 };
	chart_tsv(&c, &b);
	assert_string_equal(b.data, "panel\tseries\tpanel_title\tlabel\tlength\tloss\tlow\thigh\n"
				    "1\t1\trecall\ta\\x09b\\x0a\\x22c\\x22\t1\t0\t0\t0\n"
				    "1\t1\trecall\ta\\x09b\\x0a\\x22c\\x22\t4\t10\t9\t12\n"
				    "1\t2\trecall\tfloor\t1\t0\t0\t0\n"
				    "1\t2\trecall\tfloor\t4\tNaN\tNaN\tNaN\n");
	text_builder_free(&b);
	/* The band reaches no further than was allowed. */
	assert_true(c.panel[0].y.greatest < 12);
	chart_free(&c);
}

static void test_terminal(void **state)
{
	(void)state;
	struct chart c = small_chart("method");
	struct text_builder b = { 0 };
	terminal_chart(&c, &(struct terminal){ 40, false, false }, &b);
	assert_non_null(strstr(b.data, "a title\n\nrecall: loss\n"));
	assert_non_null(strstr(b.data, "  a method\n  1 floor\n  & several of them\n"));
	const char *high = strstr(b.data, "     10 |"), *low = strstr(b.data, "      0 |");
	assert_true(high && low && high < low);
	/* At the top right the method, at the bottom left both. */
	assert_int_equal(strcspn(high, "\n"), strcspn(high, "a") + 1);
	assert_int_equal(strcspn(low, "&"), strlen("      0 |") + 1);
	for (const char *s = b.data; *s; s += strcspn(s, "\n"), s += *s == '\n')
		assert_true(strcspn(s, "\n") <= 40);
	for (const char *s = b.data; *s; s++)
		assert_true(*s == '\n' || (*s >= ' ' && *s <= '~'));
	text_builder_free(&b);
	terminal_chart(&c, &(struct terminal){ 100, true, false }, &b);
	assert_non_null(strstr(b.data, "\u2502"));
	assert_null(strstr(b.data, "\033"));
	text_builder_free(&b);
	chart_free(&c);
}

/* Texts in the plot have lines enough, and nothing is wider than the terminal. */
static void test_terminal_notes(void **state)
{
	(void)state;
	struct chart c = small_chart("a method with many options (first=1,second=2,third=3)");
	struct text_builder b = { 0 };
	c.title = "a title of very many words that does not fit a narrow terminal";
	c.panel[0].x.label = "an axis of which very much is said, more than fits";
	c.panel[0].y.label = "";
	for (int i = 0; i < 2; i++)
		arrsetlen(c.panel[0].series[i].point, 0);
	for (int i = 0; i < 6; i++)
		arrput(c.panel[0].note, ((struct tick){ 2 * i, chart_text("m\u00fcthod %d, with=many(x=%d)", i, i) }));
	terminal_chart(&c, &(struct terminal){ 40, false, false }, &b);
	assert_non_null(strstr(b.data, "\nrecall\n"));
	for (int i = 0; i < 6; i++)
		assert_non_null(strstr(b.data, chart_text("m?thod %d", i)));
	for (const char *s = b.data; *s; s += strcspn(s, "\n"), s += *s == '\n')
		assert_true(strcspn(s, "\n") <= 40);
	text_builder_free(&b);
	chart_free(&c);
}

static void test_terminal_of_stdout(void **state)
{
	(void)state;
	setenv("COLUMNS", "57", 1);
	setenv("LC_ALL", "C", 1);
	setenv("LANG", "de_DE.UTF-8", 1);
	struct terminal t = terminal_of_stdout();
	assert_int_equal(t.width, 57);
	assert_false(t.unicode);
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	assert_true(terminal_of_stdout().unicode);
	unsetenv("COLUMNS");
}
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_axes),
		cmocka_unit_test(test_what_is_not_there),
		cmocka_unit_test(test_tsv),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_terminal_notes),
		cmocka_unit_test(test_terminal_of_stdout),
	};
	return cmocka_run_group_tests_name("runs plot chart", tests, NULL, NULL);
}
