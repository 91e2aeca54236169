#include "data/task.h"

/* Associative recall with echo. After BOS comes a list of items in random order, the first being a pair:
 *
 *	pair	key value	keys are distinct, values independent
 *	query	key		of a pair already stated, each as likely; the target is its value
 *	echo	ECHO		the target is the token just before
 *	filler	filler		not scored
 *
 * The target is not the next token: answers never enter the sequence, so the one statement of a pair is the only
 * evidence for it and the distance is exact. */

enum token {
	BOS = 0,
	SEP = 1, /* not used by this task */
	KEY = 2,
	KEYS = 32,
	VALUE = KEY + KEYS,
	VALUES = 32,
	FILLER = VALUE + VALUES,
	FILLERS = 32,
	ECHO = FILLER + FILLERS,
	VOCABULARY,
};
_Static_assert(VALUE == 34 && FILLER == 66 && ECHO == 98 && VOCABULARY == 99, "the vocabulary of files on disk");

enum group { GROUP_RECALL, GROUP_ECHO };

enum { OPTION_GROW, OPTION_PAIRS };
enum { GROW_ALL, GROW_FILLER };

static const struct option options[] = {
	[OPTION_GROW] = { .name = "grow", .kind = OPTION_CHOICE, .initial = "all", .choices = "all|filler", .unit = "",
			  .help = "what a longer sequence has more of: all but the pairs, or filler alone",
			  .results = true },
	[OPTION_PAIRS] = { .name = "pairs", .kind = OPTION_INTEGER, .initial = "8", .least = 1, .most = KEYS,
			   .unit = "pairs", .help = "pairs of key and value in a sequence", .results = true },
	{ 0 },
};

enum item { PAIR_ITEM, QUERY_ITEM, ECHO_ITEM, FILLER_ITEM, ITEMS };
enum { QUERY_PERCENT = 35, ECHO_PERCENT = 25 };

/* How many items of each kind a sequence has. */
struct counts {
	int of[ITEMS];
};

static int pairs_of(const struct method *task)
{
	return (int)task->value[OPTION_PAIRS].integer;
}

static bool grows_filler(const struct method *task)
{
	return task->value[OPTION_GROW].integer == GROW_FILLER;
}

static int percent_of(int percent, int count)
{
	return (int)((int64_t)count * percent / 100);
}

static struct counts count_items(const struct method *task, int train_length, int length)
{
	int stated = 1 + 2 * pairs_of(task);
	int room = (grows_filler(task) ? train_length : length) - stated;
	struct counts n = { { pairs_of(task), percent_of(QUERY_PERCENT, room), percent_of(ECHO_PERCENT, room) } };
	n.of[FILLER_ITEM] = length - stated - n.of[QUERY_ITEM] - n.of[ECHO_ITEM];
	return n;
}

/* The least length whose counts have a query. */
static int least_length(int pairs)
{
	return 1 + 2 * pairs + (100 + QUERY_PERCENT - 1) / QUERY_PERCENT;
}

static int recall_vocabulary(const struct method *task)
{
	(void)task;
	return VOCABULARY;
}

static struct err recall_check(const struct method *task, int train_length, int length)
{
	const char *hint = "Give a greater length, or fewer pairs (--recall-pairs).";
	int pairs = pairs_of(task), least = least_length(pairs);
	if (!grows_filler(task)) {
		if (length < least)
			return err_usage(hint, "recall: length %d is too short: %d pairs and a query need at least %d",
					 length, pairs, least);
		return OK;
	}
	if (train_length < least)
		return err_usage(hint, "recall: train_length %d is too short: %d pairs and a query need at least %d",
				 train_length, pairs, least);
	struct counts n = count_items(task, train_length, train_length);
	least = train_length - n.of[FILLER_ITEM];
	if (length < least)
		return err_usage(hint, "recall(grow=filler): length %d is too short: the %d pairs, %d queries and %d "
				 "echoes of train_length %d need at least %d", length, n.of[PAIR_ITEM],
				 n.of[QUERY_ITEM], n.of[ECHO_ITEM], train_length, least);
	return OK;
}

static void list_items(struct rng *r, const struct counts *n, int32_t *item)
{
	int count = 0;
	for (int kind = 0; kind < ITEMS; kind++)
		for (int i = 0; i < n->of[kind]; i++)
			item[count++] = kind;
	rng_shuffle(r, item, count);

	int first = 0;
	while (item[first] != PAIR_ITEM)
		first++;
	item[first] = item[0];
	item[0] = PAIR_ITEM;
}

/* The pairs in the order they are stated; `key` goes on with the keys not drawn yet. */
struct pairs {
	int stated;
	int32_t key[KEYS], value[KEYS];
	int place[KEYS]; /* of the value */
};

static void put(struct sequence *s, int t, int32_t token)
{
	s->token[t] = token;
	s->target[t] = -1;
	s->group[t] = 0;
	s->distance[t] = 0;
	s->position[t] = t;
}

static void put_scored(struct sequence *s, int t, int32_t token, int32_t target, enum group group, int distance)
{
	put(s, t, token);
	s->target[t] = target;
	s->group[t] = (uint8_t)group;
	s->distance[t] = distance;
}

static void put_pair(struct sequence *s, int t, struct pairs *p, struct rng *r)
{
	int n = p->stated++;
	int drawn = n + (int)rng_below(r, (uint32_t)(KEYS - n));
	int32_t key = p->key[drawn];
	p->key[drawn] = p->key[n];
	p->key[n] = key;
	p->value[n] = VALUE + (int32_t)rng_below(r, VALUES);
	p->place[n] = t + 1;
	put(s, t, key);
	put(s, t + 1, p->value[n]);
}

static void put_query(struct sequence *s, int t, const struct pairs *p, struct rng *r)
{
	uint32_t n = rng_below(r, (uint32_t)p->stated);
	put_scored(s, t, p->key[n], p->value[n], GROUP_RECALL, t - p->place[n]);
}

static int32_t recall_filler(const struct method *task, struct rng *r)
{
	(void)task;
	return FILLER + (int32_t)rng_below(r, FILLERS);
}

static void recall_make(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
			int length, struct sequence *out)
{
	struct counts n = count_items(task, train_length, length);
	BUG_IF(n.of[QUERY_ITEM] < 1 || n.of[FILLER_ITEM] < 0, "recall: length %d was not checked", length);

	/* The list stands at the end of the tokens it becomes. Only a pair takes two, and the list starts as many
	 * places late as there are pairs, so that no item is overwritten before it is read. */
	int items = length - 1 - n.of[PAIR_ITEM];
	int32_t *item = out->token + length - items;
	struct rng r = rng_at(seed, stream, index);
	list_items(&r, &n, item);

	struct pairs p = { .stated = 0 };
	for (int i = 0; i < KEYS; i++)
		p.key[i] = KEY + i;
	put(out, 0, BOS);
	int t = 1;
	for (int i = 0; i < items; i++, t++) {
		switch ((enum item)item[i]) {
		case PAIR_ITEM:
			put_pair(out, t++, &p, &r);
			break;
		case QUERY_ITEM:
			put_query(out, t, &p, &r);
			break;
		case ECHO_ITEM:
			put_scored(out, t, ECHO, out->token[t - 1], GROUP_ECHO, 1);
			break;
		default:
			put(out, t, recall_filler(task, &r));
		}
	}
}

static bool is_key(int32_t token)
{
	return token >= KEY && token < KEY + KEYS;
}

static bool is_value(int32_t token)
{
	return token >= VALUE && token < VALUE + VALUES;
}

static void recall_solve(const struct method *task, const int32_t *token, int length, int32_t *target)
{
	(void)task;
	int32_t remembered[KEYS];
	for (int i = 0; i < KEYS; i++)
		remembered[i] = -1;
	for (int t = 0; t < length; t++) {
		target[t] = -1;
		if (token[t] == ECHO && t > 0)
			target[t] = token[t - 1];
		if (!is_key(token[t]))
			continue;
		int32_t *memory = &remembered[token[t] - KEY];
		if (t + 1 < length && is_value(token[t + 1]))
			*memory = token[t + 1];
		else
			target[t] = *memory;
	}
}

static bool is_query(const struct sequence *s, int t)
{
	return s->target[t] >= 0 && s->group[t] == GROUP_RECALL;
}

static void uniform_probability(const struct method *task, const struct sequence *s, int train_length, int length,
				double *p)
{
	(void)task, (void)train_length;
	for (int t = 0; t < length; t++)
		p[t] = is_query(s, t) && is_value(s->target[t]) ? 1.0 / VALUES : 0;
}

static void stated_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task, (void)train_length;
	int count[VOCABULARY] = { 0 }, stated = 0;
	for (int t = 0; t < length; t++) {
		if (is_value(s->token[t])) {
			count[s->token[t]]++;
			stated++;
		}
		p[t] = is_query(s, t) ? (double)count[s->target[t]] / stated : 0;
	}
}

/* What the reader who sees tokens `seen` and behind gives the target of a query. A pair torn by the edge shows its
 * value alone, which is as likely the queried one's as that of any other pair not wholly seen (the reader knows how
 * many those are). place [KEYS]: where each key's pair is stated, -1 if it is not yet. */
static double window_guess(const int32_t *token, const int *place, int seen, int32_t key, int32_t target)
{
	int own = place[key - KEY], hidden = 0;
	if (own >= seen)
		return token[own + 1] == target;
	for (int i = 0; i < KEYS; i++)
		hidden += place[i] >= 0 && place[i] < seen;
	if (!is_value(target))
		return 0;
	double torn = is_value(token[seen]) ? 1.0 / hidden : 0;
	return torn * (token[seen] == target) + (1 - torn) / VALUES;
}

static void window_probability(const struct method *task, const struct sequence *s, int train_length, int length,
			       double *p)
{
	(void)task;
	int place[KEYS];
	for (int i = 0; i < KEYS; i++)
		place[i] = -1;
	for (int t = 0; t < length; t++) {
		if (is_value(s->token[t]))
			place[s->token[t - 1] - KEY] = t - 1;
		int seen = t < train_length ? 0 : t - train_length + 1;
		p[t] = is_query(s, t) ? window_guess(s->token, place, seen, s->token[t], s->target[t]) : 0;
	}
}

static const struct task_reference references[] = {
	{ "uniform over the values", GROUP_RECALL, uniform_probability },
	{ "guessing among the stated values", GROUP_RECALL, stated_probability },
	{ "the ideal reader of the last train_length tokens", GROUP_RECALL, window_probability },
	{ 0 },
};

/* A key makes a pair with the token after it alone, and ECHO asks for the token before it. */
static bool recall_may_insert(const struct method *task, const struct sequence *s, int length, int t)
{
	(void)task, (void)length;
	return !is_value(s->token[t]) && s->token[t] != ECHO;
}

/* Every target is determined by the tokens before it. */
static double recall_floor(const struct method *task, int length, int group)
{
	(void)task;
	(void)length;
	(void)group;
	return 1;
}

const struct task task_recall = {
	.entry = { .name = "recall", .help = "recall the value stated with a key; echo the token before", .options = options },
	.groups = { [GROUP_RECALL] = "recall", [GROUP_ECHO] = "echo" },
	.references = references,
	.vocabulary = recall_vocabulary,
	.check = recall_check,
	.make = recall_make,
	.solve = recall_solve,
	.floor = recall_floor,
	.may_insert = recall_may_insert,
	.filler = recall_filler,
};
