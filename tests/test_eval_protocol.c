#include "eval/by_position.h"
#include "eval/recall_grid.h"
#include "eval/windows.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/positions.h"
#include "tests/eval_case.h"

#include <stdio.h>

/* Protocols: what is seen, what counts, and the measures made of it, against the same done naively. */

static struct method settled(const char *text, int train_length, const int *length, int lengths)
{
	struct method m;
	assert_ok(method_parse("protocol", protocol_at, text, &m));
	assert_ok(protocol_settle(&m, train_length, length, lengths));
	return m;
}

static void test_settle(void **state)
{
	(void)state;
	static const struct {
		const char *text, *name;
		int train_length, length[3], lengths;
	} cases[] = {
		{ "all", "", 64, { 64, 2048 }, 2 },
		{ "half", "half", 64, { 64 }, 1 },
		{ "last", "last(tokens=32,span=2048)", 64, { 128, 2048, 64 }, 3 },
		{ "last", "last(tokens=16,span=64)", 64, { 16, 64 }, 2 },
		{ "last(tokens=1)", "last(tokens=1,span=64)", 1, { 1, 64 }, 2 },
		{ "last(span=4096)", "last(tokens=32,span=4096)", 64, { 64, 2048 }, 2 },
		{ "sliding(stride=64)", "sliding(stride=64,span=2048)", 64, { 64, 2048 }, 2 },
		{ "sliding", "sliding(stride=1,span=1)", 1, { 1 }, 1 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct text_builder b = { 0 };
		struct method m = settled(cases[i].text, cases[i].train_length, cases[i].length, cases[i].lengths);
		protocol_name(&m, &b);
		assert_string_equal(b.data, cases[i].name);
		text_builder_free(&b);
	}
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "last(tokens=65)", "tokens: 65 is more than the 64 tokens of a window" },
		{ "sliding(stride=65)", "stride: 65 is more than the 64" },
		{ "last(span=2047)", "a document of 2047 tokens has no window of 2048" },
		{ "sliding(stride=1.5)", "stride: 1.5 is not a whole number" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct method m;
		assert_ok(method_parse("protocol", protocol_at, bad[i].text, &m));
		assert_err(protocol_settle(&m, 64, (const int[]){ 64, 2048 }, 2), ERR_USAGE, bad[i].why);
	}
}

/* How often each token of a document counts. */
static void count_tokens(const struct method *m, int length, int *count)
{
	struct cut c = protocol_cut(m, length);
	memset(count, 0, (size_t)c.span * sizeof *count);
	for (int w = 0; w < c.windows; w++) {
		int begin = cut_begin(&c, w), from = cut_from(&c, w);
		assert_true(begin >= 0 && begin + length <= c.span);
		assert_true(from >= 0 && from < length);
		assert_true(w == 0 || begin > cut_begin(&c, w - 1));
		for (int t = from; t < length; t++)
			count[begin + t]++;
	}
}

/* sliding counts every token once, whatever divides what; later ones see length - stride before them at least. */
static void test_sliding_covers(void **state)
{
	(void)state;
	int count[25];
	for (int span = 1; span <= 25; span++)
		for (int length = 1; length <= span; length++)
			for (int stride = 1; stride <= length; stride++) {
				char text[60];
				snprintf(text, sizeof text, "sliding(stride=%d,span=%d)", stride, span);
				struct method m = settled(text, 10, &length, 1);
				count_tokens(&m, length, count);
				for (int t = 0; t < span; t++)
					assert_int_equal(count[t], 1);
				struct cut c = protocol_cut(&m, length);
				for (int w = 1; w < c.windows; w++)
					assert_true(cut_from(&c, w) >= length - stride);
				assert_true(c.whole == (span == length));
			}
}

static void test_last_and_half(void **state)
{
	(void)state;
	int count[100], length = 30;
	struct method last = settled("last(tokens=8,span=100)", 30, &length, 1), half = settled("half", 30, &length, 1);
	for (length = 8; length <= 100; length++) {
		count_tokens(&last, length, count);
		for (int t = 0; t < 100; t++)
			assert_int_equal(count[t], t >= 92);
		assert_true(protocol_cuts(&last, length) == (length < 100));
		count_tokens(&half, length, count);
		for (int t = 0; t < length; t++)
			assert_int_equal(count[t], t >= length / 2);
		assert_false(protocol_cuts(&half, length));
	}
}

/* ---- Against windows run one at a time ---- */

/* Tallies by hand: groups, bins of positions of width 2 (lengths to 128), distances. */
struct by_hand {
	struct eval_tally tally[SEQUENCES][GROUPS], bin[SEQUENCES][GROUPS][SPAN], grid[SPAN + 1][2];
	int width;
	bool cut;
};

static void add(struct eval_tally *to, double nll, bool correct)
{
	to->scored++;
	to->correct += correct;
	to->nll_sum += nll;
}

static void add_by_hand(void *data, const struct sequence *s, int document, int t, double nll, bool correct,
			const real *logits)
{
	(void)logits;
	struct by_hand *h = data;
	int own = s->group[t] ? ECHO : RECALL, side = s->distance[t] < TRAIN_LENGTH ? NEAR : FAR;
	for (int g = 0; g < GROUPS; g++) {
		if (g != own && g != ALL && (s->group[t] || g != side))
			continue;
		add(&h->tally[document][g], nll, correct);
		add(&h->bin[document][g][t / h->width], nll, correct);
	}
	if (s->group[t] == 0 && t - s->distance[t] >= 0)
		add(&h->grid[s->distance[t]][t - s->distance[t] < TRAIN_LENGTH], nll, correct);
}

static void same_tally(const struct eval_tally *a, const struct eval_tally *b)
{
	assert_int_equal(a->scored, b->scored);
	assert_int_equal(a->correct, b->correct);
	assert_close(a->nll_sum, b->nll_sum, TOLERANCE);
}

/* sqrt(n/(n-1) sum (nll_sum - nll scored)^2) / scored, as it is written. */
static double error_of(const struct by_hand *h, int group, int bin, double nll, double scored)
{
	double squares = 0;
	for (int i = 0; i < SEQUENCES; i++) {
		const struct eval_tally *t = &h->bin[i][group][bin];
		squares += pow(t->nll_sum - nll * (double)t->scored, 2);
	}
	return sqrt((double)SEQUENCES / (SEQUENCES - 1) * squares) / scored;
}

static void same_bins(const struct by_hand *h, const struct by_position *b)
{
	assert_int_equal(b->width, h->width);
	assert_true(b->bins <= POSITION_BINS && (b->bins - 1) * b->width < b->length &&
		    b->bins * b->width >= b->length);
	for (int g = 0; g < GROUPS; g++)
		for (int i = 0; i < b->bins; i++) {
			struct eval_tally sum = { 0 };
			for (int d = 0; d < SEQUENCES; d++) {
				sum.scored += h->bin[d][g][i].scored;
				sum.correct += h->bin[d][g][i].correct;
				sum.nll_sum += h->bin[d][g][i].nll_sum;
			}
			struct eval_cell cell = by_position_cell(b, g, i);
			assert_int_equal(cell.scored, sum.scored);
			if (!sum.scored)
				continue;
			double scored = (double)sum.scored;
			assert_close(cell.nll, sum.nll_sum / scored, TOLERANCE);
			assert_close(cell.accuracy, (double)sum.correct / scored, 1e-12);
			assert_close(cell.nll_se, error_of(h, g, i, sum.nll_sum / scored, scored), 10 * TOLERANCE);
		}
}

static void same_as_naive(const char *protocol, int length)
{
	struct setup s;
	setup_open(&s, protocol);
	struct eval_result r = evaluate(&s, length);
	struct by_hand *h = TAKE(struct by_hand, 1);
	memset(h, 0, sizeof *h);
	h->width = length > POSITION_BINS ? 2 : 1;
	naively(&s, protocol, length, STREAM_REPORT, SEQUENCES, add_by_hand, h);
	for (int i = 0; i < SEQUENCES; i++)
		for (int g = 0; g < GROUPS; g++)
			same_tally(&r.tally[i * GROUPS + g], &h->tally[i][g]);
	same_bins(h, r.by_position);
	for (int d = 1; d <= length; d++)
		for (int seen = 0; seen < 2; seen++)
			same_tally(recall_grid_at(r.recall_grid, d, seen), &h->grid[d][seen]);
	bool cut = span_of(protocol, length) > length;
	assert_true(isnan(r.cell[RECALL].floor) == cut && isnan(r.cell[ALL].floor) == cut);
	assert_true((r.references == 0) == cut);
	free(h);
	eval_result_free(&r);
	model_close(&s.model);
}

static void test_naive(void **state)
{
	(void)state;
	static const char *const protocol[] = { "all", "half", "last(tokens=12)", "sliding(stride=9)" };
	for (int i = 0; i < 4; i++) {
		same_as_naive(protocol[i], TRAIN_LENGTH);
		same_as_naive(protocol[i], 67);
		same_as_naive(protocol[i], SPAN);
	}
}

/* The tokens and documents of `last` are the same at every length. */
static void test_same_tokens(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "last(tokens=12)");
	struct eval_result a = evaluate(&s, TRAIN_LENGTH), b = evaluate(&s, SPAN);
	for (int i = 0; i < SEQUENCES; i++)
		for (int g = 0; g < GROUPS; g++)
			assert_int_equal(a.tally[i * GROUPS + g].scored, b.tally[i * GROUPS + g].scored);
	assert_true(a.cell[ALL].nll != b.cell[ALL].nll);
	eval_result_free(&a);
	eval_result_free(&b);
	model_close(&s.model);
}

/* ---- Bits ---- */

/* Many windows of few documents, so that a document is taken up again in the next lot. */
static void test_threads(void **state)
{
	(void)state;
	static const char *const protocol[] = { "half", "last(tokens=12)", "sliding(stride=1,span=270)" };
	for (int i = 0; i < 3; i++) {
		struct setup s;
		struct eval_result r[2];
		setup_open(&s, protocol[i]);
		struct eval_request request = request_of(&s, SPAN);
		request.sequences = 3;
		for (int k = 0; k < 2; k++) {
			threads_start(k ? 3 : 1);
			assert_ok(eval_run(&request, NULL, NULL, &r[k]));
		}
		struct by_position *b = r[0].by_position;
		assert_memory_equal(r[0].cell, r[1].cell, sizeof r[0].cell);
		assert_memory_equal(r[0].tally, r[1].tally, 3 * GROUPS * sizeof *r[0].tally);
		assert_memory_equal(b->bin, r[1].by_position->bin,
				    (size_t)b->groups * (size_t)b->bins * sizeof *b->bin);
		assert_memory_equal(r[0].recall_grid->tally, r[1].recall_grid->tally,
				    2 * SPAN * sizeof *r[0].recall_grid->tally);
		eval_result_free(&r[0]);
		eval_result_free(&r[1]);
		model_close(&s.model);
	}
	threads_start(1);
}

/* Without being asked for, measures cost nothing, and nothing changes. */
static void test_measures_apart(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "all");
	struct eval_request request = request_of(&s, SPAN);
	struct eval_result with = evaluate(&s, SPAN), without;
	request.measures = false;
	request.protocol = NULL;
	assert_ok(eval_run(&request, NULL, NULL, &without));
	assert_null(without.by_position);
	assert_null(without.recall_grid);
	assert_memory_equal(with.cell, without.cell, sizeof with.cell);
	eval_result_free(&with);
	eval_result_free(&without);
	model_close(&s.model);
}

/* Token by token, windows are decoded like sequences. */
static void test_decoded(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "sliding(stride=20)");
	struct eval_request request = request_of(&s, 60);
	struct eval_result whole = evaluate(&s, 60), decoded;
	request.kv = EVAL_KV_UNROTATED;
	assert_ok(eval_check(&request));
	assert_ok(eval_run(&request, NULL, NULL, &decoded));
	assert_int_equal(decoded.cell[ALL].scored, whole.cell[ALL].scored);
	assert_close(decoded.cell[ALL].nll, whole.cell[ALL].nll, TOLERANCE);
	eval_result_free(&whole);
	eval_result_free(&decoded);
	model_close(&s.model);
}

/* Where memory is not enough, documents longer than the length are named with it. */
static void test_memory(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "last(tokens=12)");
	s.model.options.hidden = 1 << 30;
	struct eval_request request = request_of(&s, TRAIN_LENGTH);
	struct err e = eval_check(&request);
	assert_err(e, ERR_USAGE, "a length of 40 tokens in documents of 100 needs ");
	assert_non_null(strstr(e.hint, "smaller span"));
	request.length = SPAN;
	assert_err(eval_check(&request), ERR_USAGE, "a length of 100 tokens needs ");
	model_close(&s.model);
}

/* ---- What begins a window ---- */

/* Tokens and targets of a document's windows, but for the first token where the task has one of its own for it. */
static void test_openings(void **state)
{
	(void)state;
	static const char *const bos[] = { "none", "each" };
	char folder[FOLDER_PATH], label[2 * FOLDER_PATH];
	assert_int_equal(folder_make(folder), 0);
	snprintf(label, sizeof label, "%s/text", folder);
	FILE *f = fopen(label, "wb");
	assert_non_null(f);
	for (int i = 0; i < 4000; i++)
		putc('a' + i * i % 23, f);
	assert_int_equal(fclose(f), 0);
	for (int k = 0; k < 2; k++) {
		struct method task, m = settled("sliding(stride=9)", TRAIN_LENGTH, (const int[]){ TRAIN_LENGTH, SPAN }, 2);
		struct cut cut = protocol_cut(&m, TRAIN_LENGTH);
		struct windows w;
		snprintf(label, sizeof label, "text(file=%s/text,bos=%s)", folder, bos[k]);
		assert_ok(method_parse("task", task_at, label, &task));
		struct batch_source source = { &task, TRAIN_LENGTH, SPAN, 1, STREAM_REPORT };
		assert_ok(windows_open(&source, &cut, 1, &w));
		windows_make(&w, 0, 1);
		assert_true(w.most >= cut.windows);
		windows_take(&w, 0, cut.windows);
		struct sequence all = batch_sequence(&w.batch, 0);
		for (int i = 0; i < cut.windows; i++) {
			struct sequence s = windows_at(&w, i);
			const int32_t *from = all.token + cut_begin(&cut, i);
			assert_int_equal(s.token[0], k ? 256 : from[0]);
			assert_memory_equal(s.token + 1, from + 1, (TRAIN_LENGTH - 1) * sizeof *from);
		}
		windows_close(&w);
	}
	assert_int_equal(folder_remove(folder), 0);
}

static void test_own_positions(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "last(tokens=12)");
	s.model.options.positions = POSITIONS_RANDOMIZED;
	s.model.options.positions_most = 500;
	struct eval_request request = request_of(&s, TRAIN_LENGTH);
	assert_err(eval_check(&request), ERR_USAGE, "protocol: last: windows of a document begin at position 0");
	request.length = SPAN;
	assert_ok(eval_check(&request));
	model_close(&s.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settle),	       cmocka_unit_test(test_sliding_covers),
		cmocka_unit_test(test_last_and_half),  cmocka_unit_test(test_naive),
		cmocka_unit_test(test_same_tokens),    cmocka_unit_test(test_threads),
		cmocka_unit_test(test_measures_apart), cmocka_unit_test(test_decoded),
		cmocka_unit_test(test_own_positions),
		cmocka_unit_test(test_openings),
		cmocka_unit_test(test_memory),
	};
	if (blas_start(1).code)
		return 1;
	return cmocka_run_group_tests_name("protocols", tests, NULL, NULL);
}
