#include "data/task.h"

/* PosGen (Wang et al. 2024, 2403.00071, section 5). After BOS come x_0, x_1 ..., numbers modulo m, of which the first
 * j + k are drawn and each other is the sum of k tokens near and j tokens far (a = j + k, i >= a):
 *
 *	recursive	x_i = x_(i-a) + ... + x_(i-1)
 *	cot		x_i = x_0 + ... + x_(j-1)  +  x_(i-k) + ... + x_(i-1)
 *	semi_recursive	x_i = x_p + ... + x_(p+j-1)  +  x_(i-k) + ... + x_(i-1),  p = floor((i - a) / 2)
 *
 * so that what is asked stays the same at every length, and how far away it is does not: the far tokens are a - 1 away,
 * at the start, or half as far as the sequence is long. A text: the target is the next number, from x_a on scored. */

enum group { GROUP_SUM };

enum { OPTION_KIND, OPTION_FAR, OPTION_NEAR, OPTION_MODULUS };
enum { RECURSIVE, COT, SEMI_RECURSIVE };

static const struct option options[] = {
	[OPTION_KIND] = { .name = "kind", .kind = OPTION_CHOICE, .initial = "semi_recursive",
			  .choices = "recursive|cot|semi_recursive", .unit = "", .results = true,
			  .help = "where the far tokens are: right before the near ones, at the start, half way" },
	[OPTION_FAR] = { .name = "far", .kind = OPTION_INTEGER, .initial = "1", .least = 1, .most = 64,
			 .unit = "tokens", .results = true, .help = "the paper's j: far tokens in a sum" },
	[OPTION_NEAR] = { .name = "near", .kind = OPTION_INTEGER, .initial = "3", .least = 1, .most = 64,
			  .unit = "tokens", .results = true, .help = "the paper's k: tokens just before, in a sum" },
	[OPTION_MODULUS] = { .name = "modulus", .kind = OPTION_INTEGER, .initial = "17", .least = 10, .most = 65536,
			     .unit = "", .results = true, .help = "the paper's m: numbers there are" },
	{ 0 },
};

static int far_of(const struct method *task)
{
	return (int)task->value[OPTION_FAR].integer;
}

static int near_of(const struct method *task)
{
	return (int)task->value[OPTION_NEAR].integer;
}

static int drawn_of(const struct method *task)
{
	return far_of(task) + near_of(task);
}

static int32_t modulus_of(const struct method *task)
{
	return (int32_t)task->value[OPTION_MODULUS].integer;
}

/* BOS is the number past the last. */
static int posgen_vocabulary(const struct method *task)
{
	return modulus_of(task) + 1;
}

static struct err posgen_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	if (length > drawn_of(task))
		return OK;
	return err_usage("Give a greater length, or fewer numbers in a sum (--posgen-far, --posgen-near).",
			 "posgen: length %d is too short: BOS and the %d numbers drawn need %d", length, drawn_of(task),
			 drawn_of(task) + 1);
}

/* The first of the far numbers of x_i. */
static int far_place(const struct method *task, int i)
{
	switch (task->value[OPTION_KIND].integer) {
	case COT:
		return 0;
	case RECURSIVE:
		return i - drawn_of(task);
	default:
		return (i - drawn_of(task)) / 2;
	}
}

static int32_t next_number(const struct method *task, const int32_t *x, int i)
{
	int far = far_place(task, i);
	int64_t sum = 0;
	for (int n = 0; n < far_of(task); n++)
		sum += x[far + n];
	for (int n = 1; n <= near_of(task); n++)
		sum += x[i - n];
	return (int32_t)(sum % modulus_of(task));
}

static void posgen_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			int length, struct sequence *out)
{
	(void)train_length;
	int drawn = drawn_of(task);
	int32_t *x = out->token + 1;
	struct rng r = rng_at(seed, stream, index);
	BUG_IF(length <= drawn, "posgen: length %d was not checked", length);
	out->token[0] = modulus_of(task);
	for (int i = 0; i < length; i++) {
		bool scored = i >= drawn;
		int32_t number = scored ? next_number(task, x, i) : (int32_t)rng_below(&r, (uint32_t)modulus_of(task));
		if (i + 1 < length)
			x[i] = number;
		/* x_i is the target of x_(i-1), which is token i. */
		out->target[i] = scored ? number : -1;
		out->group[i] = GROUP_SUM;
		out->distance[i] = scored ? i - 1 - far_place(task, i) : 0;
		out->position[i] = i;
	}
}

/* The sum of numbers x_first .. x_(last-1), which are tokens first + 1 .. last. */
static int32_t between(const int32_t *token, int first, int last, int32_t modulus)
{
	int32_t sum = 0;
	for (int t = first + 1; t <= last; t++)
		sum = (sum + token[t]) % modulus;
	return sum;
}

/* Token by token, the far numbers walking on beside it as the paper has them. */
static void posgen_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	int j = far_of(task), k = near_of(task), pointer = 0;
	int32_t m = modulus_of(task);
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		if (t < j + k)
			continue;
		target[t] = (between(token, pointer, pointer + j, m) + between(token, t - k, t, m)) % m;
		bool moves = task->value[OPTION_KIND].integer == RECURSIVE ||
			     (task->value[OPTION_KIND].integer == SEMI_RECURSIVE && (t - j - k) % 2 == 1);
		pointer += moves;
	}
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = s->target[t] >= 0 && s->target[t] < modulus_of(task) ? 1.0 / modulus_of(task) : 0;
}

static const struct task_reference references[] = {
	{ "uniform over the numbers", GROUP_SUM, uniform_probability },
	{ 0 },
};

/* Every scored number is a sum of those before it. */
static double posgen_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

const struct task task_posgen = {
	.entry = { .name = "posgen", .help = "sums of near and far numbers, at any length equally hard",
		   .paper = "Wang et al. 2024, 2403.00071", .options = options },
	.groups = { [GROUP_SUM] = "sum" },
	.references = references,
	.vocabulary = posgen_vocabulary,
	.check = posgen_check,
	.make = posgen_make,
	.solve = posgen_solve,
	.floor = posgen_floor,
};
