#include "data/draw.h"

/* A needle in a haystack. BOS, tokens of which about a quarter are ECHO and the others filler, a fact at a drawn place
 * among them, and at the end the question:
 *
 *	fact		key v_0 .. v_(n-1)	distinct values
 *	question	key v_0 .. v_(n-2)	the targets are v_0 .. v_(n-1)
 *	echo		ECHO			the target is the token just before
 *
 * All values of a question lie as far back, so that the distance gives the depth: the fact's key stands at
 * length - n - 1 - distance. */

enum token {
	BOS = 0,
	KEY = 1,
	KEYS = 32,
	VALUE = KEY + KEYS,
	VALUES = 32,
	FILLER = VALUE + VALUES,
	FILLERS = 32,
	ECHO = FILLER + FILLERS,
	VOCABULARY,
};
_Static_assert(VALUE == 33 && FILLER == 65 && ECHO == 97 && VOCABULARY == 98, "the vocabulary of files on disk");

enum group { GROUP_NEEDLE, GROUP_ECHO };

enum { OPTION_VALUES };
enum { MOST_VALUES = 16, ECHO_SHARE = 4 };

static const struct option options[] = {
	[OPTION_VALUES] = { .name = "values", .kind = OPTION_INTEGER, .initial = "4", .least = 1, .most = MOST_VALUES,
			    .unit = "tokens", .results = true, .help = "length of what is to be found" },
	{ 0 },
};

static int values_of(const struct method *task)
{
	return (int)task->value[OPTION_VALUES].integer;
}

static bool is_value(int32_t token)
{
	return token >= VALUE && token < VALUE + VALUES;
}

static bool is_key(int32_t token)
{
	return token >= KEY && token < KEY + KEYS;
}

/* BOS, the fact, the question. */
static int least_length(const struct method *task)
{
	return 2 + 2 * values_of(task);
}

static int needle_vocabulary(const struct method *task)
{
	(void)task;
	return VOCABULARY;
}

static struct err needle_check(const struct method *task, int train_length, int length)
{
	(void)train_length;
	int least = least_length(task);
	if (length >= least)
		return OK;
	return err_usage("Give a greater length, or fewer values (--needle-values).", "needle: length %d is too "
			 "short: BOS, a key with %d values and the question need %d", length, values_of(task), least);
}

static int32_t needle_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return FILLER + (int32_t)rng_below(r, FILLERS);
}

/* Where the fact's key and the question's key stand. */
struct places {
	int fact, question;
};

static void draw_fact(struct rng *r, int values, int32_t *token)
{
	int32_t alphabet[VALUES];
	for (int i = 0; i < VALUES; i++)
		alphabet[i] = VALUE + i;
	rng_shuffle(r, alphabet, VALUES);
	token[0] = KEY + (int32_t)rng_below(r, KEYS);
	for (int i = 0; i < values; i++)
		token[1 + i] = alphabet[i];
}

static void put_hay(const struct method *task, struct rng *r, int t, struct sequence *out)
{
	if (rng_below(r, ECHO_SHARE)) {
		put_token(out, t, needle_filler(task, r));
		return;
	}
	put_token(out, t, ECHO);
	put_target(out, t, out->token[t - 1], GROUP_ECHO, t - 1);
}

static void needle_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			int length, struct sequence *out)
{
	(void)train_length;
	BUG_IF(length < least_length(task), "needle: length %d was not checked", length);
	int n = values_of(task);
	struct rng r = rng_at(seed, stream, index);
	struct places at = { .question = length - n };
	at.fact = draw_between(&r, 1, at.question - n - 1);
	int32_t fact[1 + MOST_VALUES];
	draw_fact(&r, n, fact);
	put_token(out, 0, BOS);
	for (int t = 1; t < length; t++) {
		int stated = t - at.fact, asked = t - at.question;
		if (asked >= 0) {
			put_token(out, t, fact[asked]);
			put_target(out, t, fact[asked + 1], GROUP_NEEDLE, at.fact + asked + 1);
		} else if (stated >= 0 && stated <= n) {
			put_token(out, t, fact[stated]);
		} else {
			put_hay(task, &r, t, out);
		}
	}
}

/* From the fact alone: after the second key, a value a token. */
static void needle_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int32_t value[MOST_VALUES];
	int stated = 0, keys = 0, asked = 0;
	for (int t = 0; t < length; t++) {
		keys += is_key(token[t]);
		if (keys == 1 && is_value(token[t]) && stated < MOST_VALUES)
			value[stated++] = token[t];
		target[t] = token[t] == ECHO && t > 0 ? token[t - 1] : -1;
		if (keys == 2 && asked < stated)
			target[t] = value[asked++];
	}
}

static struct places find_places(const int32_t *token, int length)
{
	struct places at = { .fact = 1 };
	while (at.fact < length && !is_key(token[at.fact]))
		at.fact++;
	at.question = at.fact + 1;
	while (at.question < length && !is_key(token[at.question]))
		at.question++;
	return at;
}

static bool asks(const struct sequence *s, int t)
{
	return s->target[t] >= 0 && s->group[t] == GROUP_NEEDLE;
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)task, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = asks(s, t) && is_value(s->target[t]) ? 1.0 / VALUES : 0;
}

static void stated_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)train_length;
	struct places at = find_places(s->token, length);
	int n = values_of(task);
	bool stated[VOCABULARY] = { false };
	for (int i = 1; i <= n; i++)
		stated[s->token[at.fact + i]] = true;
	for (int t = 0; t < length; t++)
		p[t] = asks(s, t) && stated[s->target[t]] ? 1.0 / n : 0;
}

/* A value in sight is known. Of another the reader knows that it is none of those in sight, in the fact or in the
 * question; the rest are as likely. */
static double window_guess(const struct sequence *s, const struct places *at, int n, int t, int seen)
{
	int k = t - at->question, left = VALUES;
	if (at->fact + 1 + k >= seen)
		return s->token[at->fact + 1 + k] == s->target[t];
	bool known[VOCABULARY] = { false };
	for (int i = 0; i < n; i++) {
		bool answered = i < k && at->question + 1 + i >= seen;
		if (i == k || !(answered || at->fact + 1 + i >= seen))
			continue;
		known[s->token[at->fact + 1 + i]] = true;
		left--;
	}
	return is_value(s->target[t]) && !known[s->target[t]] ? 1.0 / left : 0;
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	struct places at = find_places(s->token, length);
	for (int t = 0; t < length; t++)
		p[t] = asks(s, t) ? window_guess(s, &at, values_of(task), t, t - train_length + 1) : 0;
}

static const struct task_reference references[] = {
	{ "uniform over the values", GROUP_NEEDLE, uniform_probability },
	{ "guessing among the stated values", GROUP_NEEDLE, stated_probability },
	{ "the ideal reader of the last train_length tokens", GROUP_NEEDLE, window_probability },
	{ 0 },
};

/* Neither fact nor question is torn, and ECHO asks for the token before it. */
static bool needle_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return !is_value(s->token[t]) && s->token[t] != ECHO;
}

static double needle_floor(const struct method *task, int length, int group)
{
	(void)task, (void)length, (void)group;
	return 1;
}

const struct task task_needle = {
	.entry = { .name = "needle", .help = "a fact anywhere in filler, asked for at the end; echo the token before",
		   .paper = "Hsieh et al. 2024, 2404.06654", .options = options },
	.groups = { [GROUP_NEEDLE] = "needle", [GROUP_ECHO] = "echo" },
	.references = references,
	.vocabulary = needle_vocabulary,
	.check = needle_check,
	.make = needle_make,
	.solve = needle_solve,
	.floor = needle_floor,
	.may_insert = needle_may_insert,
	.filler = needle_filler,
};
