#include "tests/sequence_case.h"

#include <limits.h>

/* The task addition: the sums are right, and every digit's evidence is where it says. */

enum { BOS = 0, PLUS = 1, EQUALS = 2, END = 3, DIGIT = 4, FILLER = 14, VOCABULARY = 46 };
enum { SUM_GROUP, END_GROUP };
enum { LONGEST = 400 };

static bool digit(int32_t token)
{
	return token >= DIGIT && token < FILLER;
}

/* A number as read: its tokens' places, by weight. */
struct number {
	int digits, place[LONGEST], value[LONGEST];
};

struct problem {
	struct number a, b, c;
	int plus, equals, end;
};

static int read_number(const struct sequence *s, int t, bool reversed, struct number *out)
{
	int n = 0;
	while (digit(s->token[t + n]))
		n++;
	assert_true(n > 0);
	*out = (struct number){ .digits = n };
	for (int w = 0; w < n; w++) {
		out->place[w] = reversed ? t + w : t + n - 1 - w;
		out->value[w] = s->token[out->place[w]] - DIGIT;
	}
	return t + n;
}

/* The problem that starts at t; returns where it ends. */
static int read_problem(const struct sequence *s, int t, bool operands_reversed, bool sum_reversed,
			struct problem *out)
{
	out->plus = read_number(s, t, operands_reversed, &out->a);
	assert_int_equal(s->token[out->plus], PLUS);
	out->equals = read_number(s, out->plus + 1, operands_reversed, &out->b);
	assert_int_equal(s->token[out->equals], EQUALS);
	out->end = read_number(s, out->equals + 1, sum_reversed, &out->c);
	assert_int_equal(s->token[out->end], END);
	return out->end + 1;
}

struct shape {
	const char *label;
	bool operands_reversed, sum_reversed;
	enum { WIDTH, EQUAL, OFF } padding;
	int problems, length, most;
};

/* a + b - c, digit by digit from below, is nothing. */
static void assert_sum(const struct problem *p)
{
	int owed = 0;
	for (int w = 0; w < LONGEST; w++) {
		owed += p->a.value[w] + p->b.value[w] - p->c.value[w];
		assert_int_equal(owed % 10, 0);
		owed /= 10;
	}
	assert_int_equal(owed, 0);
}

static void assert_number(const struct number *x, bool padded)
{
	assert_true(padded || x->digits == 1 || x->value[x->digits - 1] != 0);
}

static void assert_digits(const struct problem *p, int padding, bool train, int most)
{
	int n = p->a.digits > p->b.digits ? p->a.digits : p->b.digits;
	bool padded = padding != OFF;
	assert_true(train && padding != WIDTH ? n <= most : p->a.digits == most && p->b.digits == most);
	assert_true(!padded || (p->a.digits == p->b.digits && p->c.digits == n + 1));
	assert_true(p->c.digits == n || p->c.digits == n + 1);
	assert_number(&p->a, padded);
	assert_number(&p->b, padded);
	assert_number(&p->c, padded);
}

/* The digit of c and END are scored, from the digit of a of that weight, or its highest. */
static void assert_scored(const struct sequence *s, const struct problem *p)
{
	for (int w = 0; w <= p->c.digits; w++) {
		int next = w < p->c.digits ? p->c.place[w] : p->end, t = next - 1;
		int evidence = p->a.place[w < p->a.digits ? w : p->a.digits - 1];
		assert_int_equal(s->target[t], s->token[next]);
		assert_int_equal(s->group[t], w < p->c.digits ? SUM_GROUP : END_GROUP);
		assert_int_equal(t - s->distance[t], evidence);
	}
}

static void assert_sequence(const struct sequence *s, const struct shape *shape, bool train)
{
	int t = 1, scored = 0, all = 0;
	assert_int_equal(s->token[0], BOS);
	for (int i = 0; i < shape->problems; i++) {
		struct problem p;
		t = read_problem(s, t, shape->operands_reversed, shape->sum_reversed, &p);
		assert_sum(&p);
		assert_digits(&p, shape->padding, train, shape->most);
		assert_scored(s, &p);
		scored += p.c.digits + 1;
	}
	for (; t < shape->length; t++)
		assert_true(s->token[t] >= FILLER && s->token[t] < VOCABULARY);
	for (t = 0; t < shape->length; t++) {
		all += s->target[t] >= 0;
		assert_true(s->target[t] >= 0 || s->distance[t] == 0);
	}
	assert_int_equal(scored, all);
}

static const struct shape shapes[] = {
	{ "addition", true, true, WIDTH, 3, 64, 5 },
	{ "addition", true, true, WIDTH, 3, 22, 1 },
	{ "addition", true, true, WIDTH, 3, 31, 2 },
	{ "addition", true, true, WIDTH, 3, 128, 12 },
	{ "addition(problems=1)", true, true, WIDTH, 1, 8, 1 },
	{ "addition(problems=1)", true, true, WIDTH, 1, 1024, 339 },
	{ "addition(problems=16)", true, true, WIDTH, 16, 113, 1 },
	{ "addition(reversed=sum)", false, true, WIDTH, 3, 64, 5 },
	{ "addition(reversed=none)", false, false, WIDTH, 3, 64, 5 },
	{ "addition(padding=equal)", true, true, EQUAL, 3, 64, 5 },
	{ "addition(padding=equal,problems=1)", true, true, EQUAL, 1, 64, 19 },
	{ "addition(padding=equal,reversed=none)", false, false, EQUAL, 3, 64, 5 },
	{ "addition(padding=off)", true, true, OFF, 3, 64, 5 },
	{ "addition(padding=off,reversed=sum)", false, true, OFF, 3, 64, 5 },
	{ "addition(padding=off,reversed=none)", false, false, OFF, 3, 64, 5 },
	{ "addition(padding=off,reversed=none,problems=1)", false, false, OFF, 1, 300, 98 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_sequences(void **state)
{
	(void)state;
	for (int i = 0; i < SHAPES; i++) {
		struct method m = task_labelled(shapes[i].label);
		struct sequence s = sequence_new(shapes[i].length, 0x5a);
		for (uint64_t k = 0; k < 200; k++) {
			enum stream stream = k % 2 ? STREAM_TRAIN : STREAM_REPORT;
			task_of(&m)->make(&m, 64, 101, stream, k, shapes[i].length, &s);
			assert_sequence(&s, &shapes[i], stream == STREAM_TRAIN);
			for (int t = 0; t < shapes[i].length; t++)
				assert_true(s.position[t] == t);
		}
		sequence_free(&s);
	}
}

static void test_solve(void **state)
{
	(void)state;
	int32_t target[1024];
	for (int i = 0; i < SHAPES; i++) {
		struct method m = task_labelled(shapes[i].label);
		struct sequence s = sequence_new(shapes[i].length, 0x5a);
		for (uint64_t k = 0; k < 1000; k++) {
			task_of(&m)->make(&m, 64, 106, k % 2 ? STREAM_TRAIN : STREAM_TUNE, k, shapes[i].length, &s);
			task_of(&m)->solve(&m, s.token, shapes[i].length, target);
			assert_memory_equal(target, s.target, (size_t)shapes[i].length * sizeof *target);
		}
		sequence_free(&s);
	}
}

/* BOS, PLUS, EQUALS and END are written ^+=; and '.' is filler. Returns how many tokens they are. */
static int write_tokens(const char *text, int32_t *token)
{
	static const char signs[] = "^+=;";
	int count = 0;
	for (; *text; text++) {
		const char *sign = strchr(signs, *text);
		token[count++] = sign ? (int32_t)(sign - signs) : *text == '.' ? FILLER : DIGIT + *text - '0';
	}
	return count;
}

/* `want` has the target under each token, '.' for none. */
static void assert_solved(const char *label, const char *text, const char *want)
{
	int32_t token[64], expected[64], target[64];
	struct method m = task_labelled(label);
	int length = write_tokens(text, token);
	assert_int_equal(write_tokens(want, expected), length);
	task_of(&m)->solve(&m, token, length, target);
	for (int t = 0; t < length; t++)
		assert_int_equal(target[t], expected[t] == FILLER ? -1 : expected[t]);
}

static void test_solve_by_hand(void **state)
{
	(void)state;
	assert_solved("addition", "^999+100=0001;..", "........0001;...");
	assert_solved("addition", "^54+63=180;0+0=00;", "......180;....00;.");
	assert_solved("addition(reversed=sum)", "^999+001=0001;..", "........0001;...");
	assert_solved("addition(reversed=none)", "^999+001=1000;..", "........1000;...");
	assert_solved("addition(reversed=none)", "^12+34=046;", "......046;.");
	assert_solved("addition(padding=off)", "^999+1=0001;..", "......0001;...");
	assert_solved("addition(padding=off)", "^1+888=988;", "......988;.");
	assert_solved("addition(padding=off,reversed=none)", "^999+1=1000;..", "......1000;...");
	assert_solved("addition(padding=off,reversed=none)", "^5+4=9;", "....9;.");
	/* From the operands alone; filler before and behind; cut where the sequence ends. */
	assert_solved("addition", "^.54+63=999;.", ".......180;..");
	assert_solved("addition", "^54+63=0", "......18");
}

/* ---- as often as it says ---- */

static void draw_two(const char *label, uint64_t index, struct sequence *s, struct problem *first,
		     struct problem *second)
{
	struct method m = task_labelled(label);
	task_of(&m)->make(&m, 64, 11, STREAM_TRAIN, index, 64, s);
	int t = read_problem(s, 1, true, true, first);
	read_problem(s, t, true, true, second);
}

static void test_law(void **state)
{
	(void)state;
	enum { SAMPLES = 20000 };
	static int equal[25], own[25], column[100], front[9], low[10], top[10], tops[2];
	double wide[10] = { 1 - 0.18, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02 };
	struct sequence s = sequence_new(64, 0x5a);
	struct problem p, q;
	for (uint64_t k = 0; k < SAMPLES; k++) {
		draw_two("addition(padding=equal)", k, &s, &p, &q);
		equal[(p.a.digits - 1) * 5 + q.b.digits - 1]++;
		column[p.a.value[p.a.digits - 1] * 10 + q.b.value[0]]++;
		draw_two("addition(padding=off)", k, &s, &p, &q);
		own[(p.a.digits - 1) * 5 + p.b.digits - 1]++;
		if (p.a.digits > 1)
			front[p.a.value[p.a.digits - 1] - 1]++;
		low[p.b.value[0]] += p.b.digits > 1;
		/* One number of five is drawn in full, each by itself. */
		draw_two("addition", k, &s, &p, &q);
		top[p.a.value[4]]++;
		tops[p.a.value[4] && p.b.value[4]]++;
	}
	assert_drawn(equal, NULL, 25, "digits of two problems");
	assert_drawn(column, NULL, 100, "highest digit of one and lowest of another");
	assert_drawn(own, NULL, 25, "digits of a and b without padding");
	assert_drawn(front, NULL, 9, "first digit without padding");
	assert_drawn(low, NULL, 10, "last digit without padding");
	assert_drawn(top, wide, 10, "highest digit of the width");
	assert_drawn(tops, (const double[]){ 1 - 0.18 * 0.18, 0.18 * 0.18 }, 2, "highest digits of the width");
	sequence_free(&s);
}

/* ---- coupled positions ---- */

/* One position a weight in all three numbers; whoever predicts a digit stands right beside it, so that all it needs is
 * always as far. */
static void assert_coupled(const struct sequence *s, const struct problem *p, bool sum_reversed)
{
	const struct number *number[] = { &p->a, &p->b, &p->c };
	double zero = s->position[p->a.place[0]];
	for (int i = 0; i < 3; i++)
		for (int w = 0; w < number[i]->digits; w++)
			assert_true(s->position[number[i]->place[w]] == zero - w);
	for (int w = 0; w < p->c.digits; w++) {
		double from = s->position[p->c.place[w] - 1], want = sum_reversed ? zero - w + 1 : zero - w - 1;
		bool short_sum = !sum_reversed && w == p->c.digits - 1 &&
				 p->c.digits == (p->a.digits > p->b.digits ? p->a.digits : p->b.digits);
		assert_true(from == (short_sum ? want - 1 : want));
	}
}

static void test_coupled(void **state)
{
	(void)state;
	static const struct {
		const char *label, *plain;
		bool operands_reversed, sum_reversed;
	} row[] = {
		{ "addition(coupled=on)", "addition", true, true },
		{ "addition(coupled=on,padding=equal)", "addition(padding=equal)", true, true },
		{ "addition(coupled=on,reversed=sum)", "addition(reversed=sum)", false, true },
		{ "addition(coupled=on,reversed=none)", "addition(reversed=none)", false, false },
		{ "addition(coupled=on,padding=off)", "addition(padding=off)", true, true },
		{ "addition(coupled=on,padding=off,reversed=none)", "addition(padding=off,reversed=none)", false,
		  false },
	};
	struct sequence s = sequence_new(64, 0x5a), other = sequence_new(64, 0x5a);
	for (int i = 0; i < 6; i++) {
		struct method m = task_labelled(row[i].label), plain = task_labelled(row[i].plain);
		assert_true(task_placed(&m) && !task_placed(&plain));
		for (uint64_t k = 0; k < 300; k++) {
			enum stream stream = k % 2 ? STREAM_TRAIN : STREAM_REPORT;
			task_of(&m)->make(&m, 64, 13, stream, k, 64, &s);
			task_of(&plain)->make(&plain, 64, 13, stream, k, 64, &other);
			assert_memory_equal(s.token, other.token, 64 * sizeof *s.token);
			assert_memory_equal(s.target, other.target, 64 * sizeof *s.target);
			int t = 1;
			for (int j = 0; j < 3; j++) {
				struct problem p;
				int next = read_problem(&s, t, row[i].operands_reversed, row[i].sum_reversed, &p);
				assert_coupled(&s, &p, row[i].sum_reversed);
				for (; t < next; t++)
					assert_true(s.position[t] >= 0 && s.position[t] < 64);
			}
			for (; t < 64; t++)
				assert_true(s.position[t] == t);
		}
	}
	sequence_free(&s);
	sequence_free(&other);
}

/* ---- filler, references, lengths ---- */

static void test_filler(void **state)
{
	(void)state;
	struct method m = method_default(task_named("addition"));
	struct sequence s = sequence_new(64, 0x5a);
	for (uint64_t k = 0; k < 200; k++) {
		task_of(&m)->make(&m, 64, 14, STREAM_TRAIN, k, 64, &s);
		int begin = 1;
		for (int j = 0; j < 3; j++) {
			struct problem p;
			int next = read_problem(&s, begin, true, true, &p);
			for (int t = begin; t < next; t++)
				assert_int_equal(task_of(&m)->may_insert(&m, &s, 64, t), t == begin);
			begin = next;
		}
		for (int t = begin; t < 64; t++)
			assert_true(task_of(&m)->may_insert(&m, &s, 64, t));
		struct rng r = rng_at(1, STREAM_TUNE, k);
		int32_t filler = task_of(&m)->filler(&m, &r);
		assert_true(filler >= FILLER && filler < VOCABULARY);
	}
	sequence_free(&s);
}

/* 45 + 36 = 81: the column of 5 and 6 has no carry into it, that of 4 and 3 has one, the last is the carry. */
static void test_references_by_hand(void **state)
{
	(void)state;
	int32_t token[16], target[16];
	uint8_t group[16] = { [9] = END_GROUP };
	double p[16];
	struct method m = method_default(task_named("addition"));
	int length = write_tokens("^54+63=180;.", token);
	task_of(&m)->solve(&m, token, length, target);
	struct sequence s = { .token = token, .target = target, .group = group };
	const struct task_reference *column = reference_named(&m, "its column alone, a carry as likely as not");
	const struct task_reference *uniform = reference_named(&m, "uniform over the digits");
	for (int shift = 0; shift < 10; shift++) {
		column->probability(&m, &s, 64, length, p);
		static const int sum[] = { 5 + 6, 4 + 3, 0 };
		for (int t = 0; t < length; t++) {
			bool digit_at = t >= 6 && t < 9;
			int guess = digit_at ? (target[t] - DIGIT - sum[t - 6] + 20) % 10 : 9;
			assert_true(p[t] == (guess <= 1 ? 0.5 : 0));
		}
		uniform->probability(&m, &s, 64, length, p);
		for (int t = 0; t < length; t++)
			assert_true(p[t] == (t >= 6 && t < 9 ? 0.1 : 0));
		for (int t = 6; t < 9; t++)
			target[t] = DIGIT + (target[t] - DIGIT + 1) % 10;
	}
}

static void test_check(void **state)
{
	(void)state;
	struct method m = method_default(task_named("addition")), one = task_labelled("addition(problems=1)"), bad;
	assert_err(task_of(&m)->check(&m, 64, 21), ERR_USAGE, "need 22");
	assert_err(task_of(&m)->check(&m, 64, INT_MIN), ERR_USAGE, "--addition-problems");
	assert_err(task_of(&one)->check(&one, 64, 7), ERR_USAGE, "need 8");
	assert_ok(task_of(&m)->check(&m, 1, 22));
	assert_ok(task_of(&one)->check(&one, 1, INT_MAX));
	assert_err(method_parse("task", task_at, "addition(problems=0)", &bad), ERR_USAGE, "problems");
	assert_err(method_parse("task", task_at, "addition(reversed=some)", &bad), ERR_USAGE, "reversed");
	assert_true(task_of(&m)->floor(&m, 64, SUM_GROUP) == 1 && task_of(&m)->floor(&m, 64, END_GROUP) == 1);
	assert_int_equal(task_of(&m)->vocabulary(&m), VOCABULARY);
	assert_string_equal(task_of(&m)->groups[SUM_GROUP], "sum");
	assert_string_equal(task_of(&m)->groups[END_GROUP], "end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequences), cmocka_unit_test(test_solve),
		cmocka_unit_test(test_solve_by_hand), cmocka_unit_test(test_law),
		cmocka_unit_test(test_coupled),	  cmocka_unit_test(test_filler),
		cmocka_unit_test(test_references_by_hand), cmocka_unit_test(test_check),
	};
	return cmocka_run_group_tests_name("data addition", tests, NULL, NULL);
}
