#include "model/positions.h"

#include "model/base/rng.h"
#include "model/position/scaling.h"

static bool randomized(const struct numbering *n)
{
	return n->options->positions == POSITIONS_RANDOMIZED;
}

static bool offset(const struct numbering *n)
{
	return n->options->positions == POSITIONS_OFFSET && n->training;
}

static bool by_task(const struct numbering *n)
{
	return n->options->positions == POSITIONS_TASK;
}

bool positions_move(const struct numbering *n)
{
	return randomized(n) || offset(n) || by_task(n);
}

bool positions_each(const struct numbering *n)
{
	return offset(n) || by_task(n) || (randomized(n) && !n->training);
}

double positions_reach(const struct numbering *n, int T)
{
	return randomized(n) || offset(n) ? (double)n->options->positions_most : T;
}

double positions_reach_least(const struct numbering *n, int T)
{
	return by_task(n) ? 1 : T;
}

static struct err check_task(const struct numbering *n)
{
	const struct position *position = position_of(&n->options->encoding);
	if (by_task(n) && !n->placed)
		return err_usage("Choose a task with positions of its own, as copy(coupled=on), or "
				 "--positions=consecutive.",
				 "positions: the task %s supplies none but 0, 1, 2 ...", n->task);
	if (n->placed && !by_task(n))
		return err_usage("Give --positions=task.", "positions: the task %s supplies its own, which the model "
				 "would not use", n->task);
	if (by_task(n) && !position->any_order)
		return err_usage("Choose rope, learned, sinusoidal or nope.",
				 "positions: those of the task decrease along a sequence, which %s does not take: it "
				 "goes by the distance back to a key", position->entry.name);
	return OK;
}

static struct err check_reach(const struct numbering *n, int T)
{
	const struct position *position = position_of(&n->options->encoding);
	struct place place = place_of(n->options);
	double reach = positions_reach(n, T);
	struct err e = position->reach && reach > T ? position->reach(&place, reach - 1) : OK;
	if (!e.code)
		return OK;
	return err_usage("Choose an encoding without a table, or --positions-most of at most train_length.",
			 "positions: %s are drawn up to %.0f: %s", randomized(n) ? "randomized ones" : "offsets",
			 reach - 1, e.text);
}

struct err positions_check(const struct numbering *n, int T)
{
	TRY(check_task(n));
	int64_t most = n->options->positions_most;
	if ((randomized(n) || offset(n)) && T > most)
		return err_usage("A model trained with a greater --positions-most takes longer ones.",
				 "positions: a sequence of %d tokens has more than the %lld positions of "
				 "positions_most", T, (long long)most);
	return check_reach(n, T);
}

struct err positions_check_scaling(const struct numbering *n, const struct method *scaling, int T)
{
	double least = positions_reach_least(n, T), most = positions_reach(n, T);
	struct scaling_request low = scaling_request(scaling, n->options, least);
	struct scaling_request high = scaling_request(scaling, n->options, most);
	if (scaling_factor(&low) == scaling_factor(&high))
		return OK;
	return err_usage("Give a factor, as in ntk(factor=8).",
			 "scaling: %s takes its factor from the largest position, which differs from sequence to "
			 "sequence here (anything from %.0f to %.0f)", scaling->entry->name, least - 1, most - 1);
}

/* Selection sampling: each number in turn is among those still wanted with their share of what is left (Knuth, TAOCP 2,
 * 3.4.2, algorithm S). */
static void draw_sorted(uint64_t seed, uint64_t index, int64_t most, int T, double *to)
{
	struct rng r = rng_at(seed, STREAM_POSITION, index);
	int taken = 0;
	for (int64_t p = 0; taken < T; p++)
		if (rng_below(&r, (uint32_t)(most - p)) < (uint32_t)(T - taken))
			to[taken++] = (double)p;
}

static void draw_offset(uint64_t seed, uint64_t index, int64_t most, int T, double *to)
{
	struct rng r = rng_at(seed, STREAM_POSITION, index);
	uint32_t start = rng_below(&r, (uint32_t)(most - T + 1));
	for (int t = 0; t < T; t++)
		to[t] = (double)start + t;
}

void positions_draw(const struct numbering *n, uint64_t seed, uint64_t first, int B, int T, double *to)
{
	int64_t most = n->options->positions_most;
	BUG_IF(by_task(n) || !positions_move(n) || T > most, "positions of %d tokens are not drawn", T);
	/* Lengths differ in all their draws. */
	uint64_t index = n->training ? first : first | (uint64_t)T << 32;
	int count = positions_each(n) ? B : 1;
	for (int b = 0; b < count; b++)
		(randomized(n) ? draw_sorted : draw_offset)(seed, index + (uint64_t)b, most, T,
							    to + (size_t)b * (size_t)T);
}
