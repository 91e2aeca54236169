#include "runs/bench/random_tokens.h"

enum { VOCABULARY };

static const struct option options[] = {
	{ .name = "vocabulary", .kind = OPTION_INTEGER, .initial = "99", .least = 1, .most = RANDOM_VOCABULARY_MOST,
	  .unit = "tokens", .help = "how many tokens there are" },
	{ 0 },
};

static int random_vocabulary(const struct method *task)
{
	return (int)task->value[VOCABULARY].integer;
}

static struct err random_check(const struct method *task, int train_length, int length)
{
	(void)task, (void)train_length, (void)length;
	return OK;
}

static void random_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			int length, struct sequence *out)
{
	struct rng rng = rng_at(seed, stream, index);
	uint32_t limit = (uint32_t)random_vocabulary(task);
	(void)train_length;
	out->token[0] = (int32_t)rng_below(&rng, limit);
	for (int t = 0; t < length; t++) {
		out->target[t] = (int32_t)rng_below(&rng, limit);
		if (t + 1 < length)
			out->token[t + 1] = out->target[t];
		out->group[t] = 0;
		out->distance[t] = 1;
		out->position[t] = t;
	}
}

/* Nothing foretells the next token. */
static double random_floor(const struct method *task, int length, int group)
{
	(void)length, (void)group;
	return random_vocabulary(task);
}

static const struct task task_random = {
	.entry = { .name = "random", .help = "tokens drawn uniformly", .options = options },
	.groups = { "next" },
	.vocabulary = random_vocabulary,
	.check = random_check,
	.make = random_make,
	.floor = random_floor,
};

struct method random_tokens(int vocabulary)
{
	struct method m = method_default(&task_random.entry);
	method_set(&m, VOCABULARY, (union option_value){ .integer = vocabulary });
	return m;
}
