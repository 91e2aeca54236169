#include "data/draw.h"

/* Addition. BOS, some problems a + b = c one after the other, fillers:
 *
 *	problem		digits of a, PLUS, digits of b, EQUALS, digits of c, END
 *
 * An ordinary text: a target is the next token, and those scored are the digits of c, the first at EQUALS, and END. A
 * digit of weight w (that of 10^w) follows from those of a and b of this weight and from all below; its distance goes
 * back to that of a, or, where a has none of this weight, to the highest of a. So does that of END.
 *
 * Operands are drawn digit by digit, as many as fit, N; in training any number from 1 on. Padding puts zeros in front,
 * to N digits (`width`) or to as many in a as in b, which are drawn together (`equal`), and one more in c; with `off` no
 * number starts with a zero (but the number 0).
 *
 * With `coupled` digits of one weight are at one position, higher weights before lower ones; each sign is at that of
 * the digit before the first of the number that follows, in the direction in which it is read, END at that behind the
 * last of c (position coupling: Cho et al. 2024, 2405.20671). */

enum token {
	BOS = 0,
	PLUS = 1,
	EQUALS = 2,
	END = 3,
	DIGIT = 4,
	DIGITS = 10,
	FILLER = DIGIT + DIGITS,
	FILLERS = 32,
	VOCABULARY = FILLER + FILLERS,
};
_Static_assert(FILLER == 14 && VOCABULARY == 46, "the vocabulary of files on disk");

enum group { GROUP_SUM, GROUP_END };

enum { OPTION_REVERSED, OPTION_PADDING, OPTION_PROBLEMS, OPTION_COUPLED };
enum { REVERSED_ALL, REVERSED_SUM, REVERSED_NONE };
enum { PADDING_WIDTH, PADDING_EQUAL, PADDING_OFF };

static const struct option options[] = {
	[OPTION_REVERSED] = { .name = "reversed", .kind = OPTION_CHOICE, .initial = "all", .choices = "all|sum|none",
			      .unit = "", .results = true,
			      .help = "which numbers start with their lowest digit" },
	[OPTION_PADDING] = { .name = "padding", .kind = OPTION_CHOICE, .initial = "width", .choices = "width|equal|off",
			     .unit = "", .results = true,
			     .help = "zeros in front: all operands of a length have as many digits, or both of a "
				     "problem, or none" },
	[OPTION_PROBLEMS] = { .name = "problems", .kind = OPTION_INTEGER, .initial = "3", .least = 1, .most = 16,
			      .unit = "problems", .results = true,
			      .help = "problems in a sequence, which share its length" },
	[OPTION_COUPLED] = { .name = "coupled", .kind = OPTION_SWITCH, .initial = "off", .least = 0, .most = 1,
			     .choices = "off|on", .unit = "", .results = true,
			     .help = "digits of one weight are at one position (--positions=task)" },
	{ 0 },
};

/* A number of the text: where its first token stands, how many digits, whether the lowest comes first. */
struct number {
	int at, digits;
	bool reversed;
};

struct problem {
	struct number a, b, c;
};

static int problems_of(const struct method *task)
{
	return (int)task->value[OPTION_PROBLEMS].integer;
}

static bool is_padded(const struct method *task)
{
	return task->value[OPTION_PADDING].integer != PADDING_OFF;
}

static bool addition_placed(const struct method *task)
{
	return task->value[OPTION_COUPLED].integer;
}

static bool is_digit(int32_t token)
{
	return token >= DIGIT && token < DIGIT + DIGITS;
}

/* Tokens of a problem whose operands have n digits. */
static int problem_length(int n)
{
	return 3 * n + 4;
}

static int most_digits(const struct method *task, int length)
{
	return ((length - 1) / problems_of(task) - problem_length(0)) / 3;
}

static int least_length(const struct method *task)
{
	return 1 + problems_of(task) * problem_length(1);
}

static int addition_vocabulary(const struct method *task)
{
	(void)task;
	return VOCABULARY;
}

static struct err addition_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	int least = least_length(task);
	if (length >= least)
		return OK;
	return err_usage("Give a greater length, or fewer problems (--addition-problems).", "addition: length %d is "
			 "too short: BOS and %d times a digit, PLUS, a digit, EQUALS, two digits and END need %d",
			 length, problems_of(task), least);
}

static int32_t addition_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return FILLER + (int32_t)rng_below(r, FILLERS);
}

/* Where a number has its digit of weight w. */
static int place_of(const struct number *x, int w)
{
	return x->at + (x->reversed ? w : x->digits - 1 - w);
}

/* That digit, 0 where the number has none. */
static int digit_of(const struct number *x, const int32_t *token, int w)
{
	return w < x->digits ? token[place_of(x, w)] - DIGIT : 0;
}

static int longer(const struct problem *p)
{
	return p->a.digits > p->b.digits ? p->a.digits : p->b.digits;
}

/* `drawn` digits, zeros before them. */
static void draw_number(const struct method *task, struct rng *r, const struct number *x, int drawn,
			struct sequence *out)
{
	for (int w = 0; w < x->digits; w++) {
		bool no_zero = !is_padded(task) && drawn > 1 && w == drawn - 1;
		int digit = no_zero ? draw_between(r, 1, 9) : draw_between(r, 0, 9);
		put_token(out, place_of(x, w), w < drawn ? DIGIT + digit : DIGIT);
	}
}

/* The first problem that starts at `at`, its operands written. */
static struct problem draw_problem(const struct method *task, enum stream stream, int most, int at, struct rng *r,
				   struct sequence *out)
{
	int64_t reversed = task->value[OPTION_REVERSED].integer, padding = task->value[OPTION_PADDING].integer;
	struct problem p = { .a = { at, most, reversed == REVERSED_ALL }, .b = { 0, most, reversed == REVERSED_ALL },
			     .c = { 0, 0, reversed != REVERSED_NONE } };
	int a = most, b = most;
	if (stream == STREAM_TRAIN) {
		a = draw_between(r, 1, most);
		b = padding == PADDING_EQUAL ? a : draw_between(r, 1, most);
	}
	if (padding != PADDING_WIDTH) {
		p.a.digits = a;
		p.b.digits = b;
	}
	p.b.at = at + p.a.digits + 1;
	p.c.at = p.b.at + p.b.digits + 1;
	draw_number(task, r, &p.a, a, out);
	draw_number(task, r, &p.b, b, out);
	put_token(out, p.b.at - 1, PLUS);
	put_token(out, p.c.at - 1, EQUALS);
	return p;
}

static void add(const struct method *task, struct problem *p, struct sequence *out)
{
	int carry = 0, n = longer(p);
	for (int w = 0; w < n; w++)
		carry = (digit_of(&p->a, out->token, w) + digit_of(&p->b, out->token, w) + carry) / 10;
	p->c.digits = n + (is_padded(task) || carry);
	carry = 0;
	for (int w = 0; w < p->c.digits; w++) {
		int sum = digit_of(&p->a, out->token, w) + digit_of(&p->b, out->token, w) + carry;
		put_token(out, place_of(&p->c, w), DIGIT + sum % 10);
		carry = sum / 10;
	}
	put_token(out, p->c.at + p->c.digits, END);
}

static void score(const struct problem *p, struct sequence *out)
{
	for (int w = 0; w <= p->c.digits; w++) {
		int top = p->a.digits - 1, evidence = place_of(&p->a, w < top ? w : top);
		int next = w < p->c.digits ? place_of(&p->c, w) : p->c.at + p->c.digits;
		put_target(out, next - 1, out->token[next], w < p->c.digits ? GROUP_SUM : GROUP_END, evidence);
	}
}

/* Weight w is at position `zero` - w, those of -1 to n + 1 within the problem. EQUALS does not tell how many digits c
 * has. */
static void couple(const struct problem *p, struct sequence *out)
{
	const struct number *number[] = { &p->a, &p->b, &p->c };
	int n = longer(p), zero = p->a.at + n;
	for (int i = 0; i < 3; i++)
		for (int w = 0; w < number[i]->digits; w++)
			out->position[place_of(number[i], w)] = zero - w;
	out->position[p->b.at - 1] = p->b.reversed ? zero + 1 : zero - p->b.digits;
	out->position[p->c.at - 1] = p->c.reversed ? zero + 1 : zero - n - 1;
	out->position[p->c.at + p->c.digits] = p->c.reversed ? zero - p->c.digits : zero + 1;
}

static void addition_make(const struct method *task, int train_length, uint64_t seed, enum stream stream,
			  uint64_t index, int length, struct sequence *out)
{
	(void)train_length;
	BUG_IF(length < least_length(task), "addition: length %d was not checked", length);
	struct rng r = rng_at(seed, stream, index);
	int t = 1, most = most_digits(task, length);
	put_token(out, 0, BOS);
	for (int i = 0; i < problems_of(task); i++) {
		struct problem p = draw_problem(task, stream, most, t, &r, out);
		add(task, &p, out);
		score(&p, out);
		if (addition_placed(task))
			couple(&p, out);
		t = p.c.at + p.c.digits + 1;
	}
	for (; t < length; t++)
		put_token(out, t, addition_filler(task, &r));
}

/* The operands of the problem whose EQUALS stands at t, read backwards; `c` has its place and direction alone. */
static struct problem read_problem(const struct method *task, const int32_t *token, int t)
{
	int64_t reversed = task->value[OPTION_REVERSED].integer;
	struct problem p = { .a = { t, 0, reversed == REVERSED_ALL }, .b = { t, 0, reversed == REVERSED_ALL },
			     .c = { t + 1, 0, reversed != REVERSED_NONE } };
	for (; p.b.at > 1 && is_digit(token[p.b.at - 1]); p.b.digits++)
		p.b.at--;
	for (p.a.at = p.b.at - 1; p.a.at > 1 && is_digit(token[p.a.at - 1]); p.a.digits++)
		p.a.at--;
	return p;
}

static int column(const struct problem *p, const int32_t *token, int w)
{
	return digit_of(&p->a, token, w) + digit_of(&p->b, token, w);
}

/* The carry into weight w: columns below that make 9 hand on what the next lower one makes. */
static int carry_into(const struct problem *p, const int32_t *token, int w)
{
	while (--w >= 0)
		if (column(p, token, w) != 9)
			return column(p, token, w) > 9;
	return 0;
}

/* From the operands alone: after EQUALS, a digit of the sum a token, and END. */
static void addition_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	for (int t = 0; t < length; t++)
		target[t] = -1;
	for (int t = 0; t < length; t++) {
		if (token[t] != EQUALS)
			continue;
		struct problem p = read_problem(task, token, t);
		int n = longer(&p);
		n += is_padded(task) || carry_into(&p, token, n);
		for (int i = 0; i < n && t + i < length; i++) {
			int w = p.c.reversed ? i : n - 1 - i;
			target[t + i] = DIGIT + (column(&p, token, w) + carry_into(&p, token, w)) % 10;
		}
		if (t + n < length)
			target[t + n] = END;
	}
}

static bool is_sum(const struct sequence *s, int t)
{
	return s->target[t] >= 0 && s->group[t] == GROUP_SUM;
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)task, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = is_sum(s, t) && is_digit(s->target[t]) ? 1.0 / DIGITS : 0;
}

static double column_guess(int sum, int32_t target)
{
	return 0.5 * (target - DIGIT == sum % 10) + 0.5 * (target - DIGIT == (sum + 1) % 10);
}

static void column_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = 0;
	for (int t = 0; t < length; t++) {
		if (s->token[t] != EQUALS)
			continue;
		struct problem q = read_problem(task, s->token, t);
		while (t + 1 + q.c.digits < length && is_digit(s->token[t + 1 + q.c.digits]))
			q.c.digits++;
		for (int w = 0; w < q.c.digits; w++) {
			int at = place_of(&q.c, w) - 1;
			p[at] = is_sum(s, at) ? column_guess(column(&q, s->token, w), s->target[at]) : 0;
		}
	}
}

static const struct task_reference references[] = {
	{ "uniform over the digits", GROUP_SUM, uniform_probability },
	{ "its column alone, a carry as likely as not", GROUP_SUM, column_probability },
	{ 0 },
};

/* Before and behind problems. */
static bool addition_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	int32_t before = s->token[t - 1];
	return before == BOS || before == END || before >= FILLER;
}

static double addition_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

const struct task task_addition = {
	.entry = { .name = "addition", .help = "digits of a, PLUS, digits of b, EQUALS, digits of the sum",
		   .paper = "Lee et al. 2023, 2307.03381", .options = options },
	.groups = { [GROUP_SUM] = "sum", [GROUP_END] = "end" },
	.references = references,
	.vocabulary = addition_vocabulary,
	.check = addition_check,
	.make = addition_make,
	.solve = addition_solve,
	.floor = addition_floor,
	.placed = addition_placed,
	.may_insert = addition_may_insert,
	.filler = addition_filler,
};
