#include "runs/plot/gnuplot.h"
#include "runs/plot/plot.h"
#include "runs/report/html.h"
#include "runs/report/report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/study_case.h"

/* Pages, and what the real gnuplot draws. */

static const char *const no_elements[] = { "<script", "<link", "<iframe", "<img", "<object", "<?xml", "@import", NULL };

/* The next tag from here on, its name in `name`; NULL past the last. */
static const char *next_tag(const char *s, char name[32])
{
	s = strchr(s, '<');
	if (!s)
		return NULL;
	int n = 0;
	for (const char *c = s + 1; (isalnum((unsigned char)*c) || strchr("/!?-", *c)) && *c && n < 31; c++)
		name[n++] = *c;
	name[n] = '\0';
	return s;
}

/* Every element is closed in its turn, as in XML, and text holds no bare `&`. */
static void check_nesting(const char *html)
{
	char name[32], **open = NULL;
	for (const char *s = html; (s = next_tag(s, name)); s++) {
		const char *end = strchr(s, '>');
		assert_non_null(end);
		if (*name == '!' || end[-1] == '/')
			continue;
		if (*name != '/') {
			arrput(open, strdup(name));
			continue;
		}
		assert_true(arrlen(open) > 0);
		char *last = arrpop(open);
		assert_string_equal(last, name + 1);
		free(last);
	}
	assert_int_equal(arrlen(open), 0);
	arrfree(open);
	for (const char *s = html; (s = strchr(s, '&')); s++)
		assert_true(s[1 + strspn(s + 1, "#abcdefghijklmnopqrstuvwxyz0123456789")] == ';');
}

static int count(const char *text, const char *part)
{
	int n = 0;
	for (const char *s = text; (s = strstr(s, part)); s += strlen(part))
		n++;
	return n;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* No id stands twice, and what is pointed at is there. */
static void check_ids(const char *html)
{
	static const char *const begins[] = { " id=\"", " id='" };
	char **id = NULL;
	for (int i = 0; i < 2; i++)
		for (const char *s = html; (s = strstr(s, begins[i])); s += strlen(begins[i]))
			arrput(id, strndup(s + strlen(begins[i]), strcspn(s + strlen(begins[i]), "\"'")));
	qsort(id, arrlenu(id), sizeof *id, by_text);
	for (int i = 1; i < arrlen(id); i++)
		assert_string_not_equal(id[i - 1], id[i]);
	for (const char *s = html; (s = strstr(s, "href=")); s++) {
		assert_int_equal(s[6], '#');
		char *to = strndup(s + 7, strcspn(s + 7, "\"'"));
		assert_non_null(bsearch(&to, id, arrlenu(id), sizeof *id, by_text));
		free(to);
	}
	for (int i = 0; i < arrlen(id); i++)
		free(id[i]);
	arrfree(id);
}

static void check_page(const char *html)
{
	assert_memory_equal(html, "<!DOCTYPE html>\n<html lang=\"en\"", 31);
	check_nesting(html);
	check_ids(html);
	for (int i = 0; no_elements[i]; i++)
		assert_null(strstr(html, no_elements[i]));
	/* Names of languages aside, nothing points elsewhere. */
	assert_int_equal(count(html, "http"), count(html, "http://www.w3.org/"));
	assert_int_equal(count(html, "<h1>"), 1);
	assert_int_equal(count(html, "<table"), count(html, "<caption>"));
	assert_int_equal(count(html, "<td"), count(html, "</td>"));
}

static char *page_of(const char *path)
{
	struct subject s;
	struct text_builder b = { 0 };
	assert_ok(subject_open(path, &s));
	assert_ok(report_html(&s, &b));
	subject_close(&s);
	check_page(b.data);
	return b.data;
}

static void need_gnuplot(void)
{
	if (!gnuplot_there())
		skip();
}

static void test_page(void **state)
{
	(void)state;
	need_gnuplot();
	two_seeds("b");
	char *html = page_of(folder);
	assert_non_null(strstr(html, "<th scope=\"row\">ntk</th><td class=\"h0\">1.00 / 100<br/><small>1 of 2 "
				     "seeds</small></td>"));
	assert_non_null(strstr(html, "Which way to scale the positions keeps it working?"));
	assert_non_null(strstr(html, "At 4x in recall the best by the mean is ntk: perplexity 2.00, accuracy 90.0 %"));
	assert_non_null(strstr(html, "<p class=\"warning\">warning: 1 of 2 models were trained by another version"));
	assert_non_null(strstr(html, "scaling = none, ntk"));
	assert_non_null(strstr(html, "ropewalk study by-hand"));
	assert_non_null(strstr(html, "prefers-color-scheme: dark"));
	assert_non_null(strstr(html, "<dd>rope, a positional encoding: rotates"));
	assert_non_null(strstr(html, "<dd>ntk, a scaling: larger base"));
	assert_null(strstr(html, "<dd>window"));
	assert_non_null(strstr(html, "<caption><span>usable length"));
	assert_null(strstr(html, "more: "));
	assert_int_equal(count(html, "<figure"), 4);
	assert_int_equal(count(html, "<svg role=\"img\" aria-label="), 4);
	free(html);
}

static void test_page_of_a_run(void **state)
{
	(void)state;
	need_gnuplot();
	two_seeds("b");
	char *run = io_join(folder, grid.cell[0].name), *html = page_of(run);
	assert_non_null(strstr(html, "<h1>Run seed-1-"));
	assert_non_null(strstr(html, "train_length = 64"));
	free(html);
	free(run);
}

static void test_page_of_what_is_unfinished(void **state)
{
	(void)state;
	need_gnuplot();
	build("encoding = rope, alibi\nseed = 1, 2\nscaling = none\n");
	char *run = make_run(0, "running", "a"), *html = page_of(folder);
	assert_non_null(strstr(html, "Not complete: of 4 models finished 0, being trained or interrupted 1, not begun "
				     "3."));
	assert_non_null(strstr(html, "Which positional encoding keeps it working?"));
	assert_non_null(strstr(html, "<td>-</td>"));
	free(html);
	free(run);
}

/* What comes of a study's claims stands on the page as beneath its tables, and where nothing was learned that is said
 * before all else. */
static void test_page_of_claims(void **state)
{
	(void)state;
	need_gnuplot();
	build("seed = 1\nscaling = none\nmultiples = 1, 4\nsequences = 3\nreferences = off\n"
	      "[expect a-band]\nrow = none\nmultiple = 4\nmeasure = perplexity\nmost = 10\n");
	char *run = make_run(0, "finished", "a");
	write_rows(run, 0, 0, (const double[][2]){ { 5, 0.6 }, { 9, 0.6 } });
	char *html = page_of(folder);
	assert_non_null(strstr(html, "<caption><span>expected"));
	assert_non_null(strstr(html, "inside"));
	assert_non_null(strstr(html, "Nothing has learned the task: "));
	assert_null(strstr(html, "The others have not"));
	free(html);
	free(run);
}

static void test_page_without_gnuplot(void **state)
{
	(void)state;
	char *path = strdup(getenv("PATH"));
	two_seeds("b");
	setenv("PATH", "/nowhere", 1);
	char *html = page_of(folder);
	setenv("PATH", path, 1);
	assert_non_null(strstr(html, "There are none: gnuplot is not installed (apt install gnuplot-nox"));
	assert_int_equal(count(html, "<figure"), 0);
	free(html);
	free(path);
}

static void test_text(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	html_element(&b, "p", "<b> & \"x\" 'y'\x1b[0m\nsecond\n");
	assert_string_equal(b.data, "<p>&lt;b&gt; &amp; &quot;x&quot; &#39;y&#39;\\x1b[0m\nsecond\n</p>\n");
	text_builder_free(&b);
}

static void test_sheet(void **state)
{
	(void)state;
	struct sheet s = { .title = "a: \"b\"\nsmall" };
	struct text_builder b = { 0 };
	arrput(s.column, "1x");
	struct sheet_row *row = sheet_add(&s, "a(b=<1>,c)");
	row->cell[0] = (struct sheet_cell){ .line = { "1.00 / 100", "", "(1 - 2)" }, .heat = 0.5, .best = true };
	row = sheet_add(&s, "reference");
	row->ruled = true;
	row->cell[0] = (struct sheet_cell){ .line = { "n/a" }, .heat = NAN };
	html_sheet(&b, &s);
	check_nesting(b.data);
	assert_non_null(strstr(b.data, "aria-label=\"table: a\""));
	assert_non_null(strstr(b.data, "<caption><span>a: &quot;b&quot;<br/><small>small</small></span></caption>"));
	assert_non_null(strstr(b.data, "<th scope=\"row\">a(<wbr/>b=&lt;1&gt;,<wbr/>c)</th><td "
				       "class=\"h5\"><strong>1.00 / "
				       "100</strong>*<br/><small>(1 - 2)</small></td></tr>\n</tbody>\n<tbody "
				       "class=\"below\">"));
	assert_non_null(strstr(b.data, "<td>n/a</td>"));
	text_builder_free(&b);
	sheet_free(&s);
}

static void test_svg(void **state)
{
	(void)state;
	struct text_builder b = { 0 };
	html_svg(&b, "<?xml version=\"1.0\"?>\n<svg viewBox=\"0 0 1 1\">\n<title>Gnuplot</title><desc>by <x></desc>"
		     "<path id='p' d='M0'/><use xlink:href='#p' id=\"q\" clip-path=\"url(#p)\" width='1'/></svg>\n",
		 "name", "a & b");
	assert_string_equal(b.data, "<svg role=\"img\" aria-label=\"a &amp; b\" viewBox=\"0 0 1 1\">\n"
				    "<path id='name-p' d='M0'/><use xlink:href='#name-p' id=\"name-q\" "
				    "clip-path=\"url(#name-p)\" width='1'/></svg>\n");
	text_builder_free(&b);
}

/* ---- What gnuplot draws ---- */


static void run_shell(const char *line)
{
	int status = system(line);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* The scripts draw the same images again, byte for byte. */
static void test_redrawn(void **state)
{
	(void)state;
	struct plotted done;
	bool wanted[PICTURES];
	struct text_builder line = { 0 };
	need_gnuplot();
	two_seeds("b");
	char *to = io_join(folder, "it's pictures");
	const struct plot_job job = { &results, to, wanted, PICTURE_SVG };
	assert_ok(pictures_pick("", wanted));
	assert_ok(plot(&job, &done));
	assert_string_equal(done.names.data, "perplexity, accuracy, seeds, frequencies");
	assert_non_null(strstr(done.absent.data, "by_position: "));
	plotted_free(&done);
	text_add(&line, "cd \"%s\" && for f in *.svg; do mv $f $f.old && gnuplot ${f%%.svg}.gp && cmp $f $f.old || "
			"exit 1; done", to);
	run_shell(line.data);
	text_builder_free(&line);
	free(to);
}

static void test_formats(void **state)
{
	(void)state;
	static const char *const begins[] = { "<?xml", "\x89PNG", "%PDF" };
	need_gnuplot();
	two_seeds("b");
	for (int format = 0; format < 3; format++) {
		struct chart c;
		char *image;
		size_t size;
		assert_ok(picture_make(picture_at(0), &results, &c));
		assert_ok(picture_draw(picture_at(0), &c, (enum picture_format)format, &image, &size));
		assert_true(size > 1000);
		assert_memory_equal(image, begins[format], strlen(begins[format]));
		free(image);
		chart_free(&c);
	}
}

/* Labels come from files and paths of users: they are shown as they are, and do nothing. */
static void test_hostile_labels(void **state)
{
	(void)state;
	struct text_builder label = { 0 };
	struct chart c = { .title = "", .x = "x", .y = "y", .columns = 1 };
	char *made = io_join(folder, "made"), *svg;
	size_t size;
	need_gnuplot();
	text_add(&label, "it's `touch %s` \"@n\" {_a^b} $(touch %s) %%s \\n <b> & \t%d", made, made, 7);
	struct panel *p = chart_panel(&c, text_keep(label.data), axis_new(text_keep(label.data), 0),
				      axis_new(text_keep(label.data), 0));
	series_add(p, panel_series(p, SERIES_POINTS, 0, text_keep(label.data)), 1, 1);
	panel_mark(p, (struct mark){ true, false, 1, 0.5, text_keep(label.data) });
	axis_tick(&p->x, 1, "%s", "50 % `touch made`");
	c.title = text_keep(label.data);
	p->key = true;
	axis_finish(&p->x);
	axis_finish(&p->y);
	assert_ok(picture_draw(picture_at(0), &c, PICTURE_SVG, &svg, &size));
	assert_false(io_exists(made));
	assert_non_null(strstr(svg, "it's `touch "));
	assert_non_null(strstr(svg, "\\n &lt;b> &amp;"));
	assert_non_null(strstr(svg, "50 % `touch made`"));
	assert_non_null(strstr(svg, "{_a^b}"));
	struct text_builder page = { 0 };
	html_svg(&page, svg, "x", c.title);
	check_nesting(page.data);
	text_builder_free(&page);
	text_builder_free(&label);
	free(svg);
	free(made);
	chart_free(&c);
}

#define PAGE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAGE_TEST(test_page),
		PAGE_TEST(test_page_of_a_run),
		PAGE_TEST(test_page_of_what_is_unfinished),
		PAGE_TEST(test_page_of_claims),
		PAGE_TEST(test_page_without_gnuplot),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_sheet),
		cmocka_unit_test(test_svg),
		PAGE_TEST(test_redrawn),
		PAGE_TEST(test_formats),
		PAGE_TEST(test_hostile_labels),
	};
	return cmocka_run_group_tests_name("runs report", tests, NULL, NULL);
}
