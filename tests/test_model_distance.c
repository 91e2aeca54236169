#include "model/position/distance_bias.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Biases by distance: a tile's logits and gradients pair by pair, wherever its positions stand, and whether or not its
 * distances make a line. */

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])

enum { ROWS = 96, DISTANCES = 4099 };

static double frac(double x)
{
	return x - floor(x);
}

/* ---- Where queries and keys stand. ---- */

/* Is a bias asked for once a distance, or once a pair? Even so where keys are seen that stand after the query. */
enum way { BY_LINE, BY_PAIR, BY_PAIR_WITH_LATER_KEYS };

struct stand {
	const char *name;
	double (*query)(int r), (*key)(int j); /* both without the offset */
	double offset;
	int rows, columns, ahead; /* the first query sees this many keys and its own */
	enum way way;
};

static double whole(int i)
{
	return i;
}
static double by_threes(int i)
{
	return 3 * i + i % 2;
}
static double far_apart(int i)
{
	return 100 * i;
}
static double in_pairs(int i)
{
	return floor(i / 2.0);
}
static double by_fractions(int i)
{
	return 0.37 * i;
}
static double after_all(int i)
{
	return 255 + i;
}
static double and_a_half(int i)
{
	return i + 0.5;
}
static double standing(int i)
{
	return 45 + 0.0 * i;
}
static double nowhere(int i)
{
	return 0.0 * i;
}
static double with_a_gap(int j)
{
	return j < 50 ? j : j + 7;
}

static const struct stand stands[] = {
	{ "diagonal", whole, whole, 0, ROWS, ROWS, 0, BY_LINE },
	{ "keys of before", after_all, whole, 0, ROWS, TILE_COLUMNS, TILE_COLUMNS, BY_LINE },
	{ "one of each", whole, whole, 0, 1, 1, 0, BY_LINE },
	{ "one query", after_all, whole, 0, 1, TILE_COLUMNS, TILE_COLUMNS, BY_LINE },
	{ "one key", whole, whole, 0, ROWS, 1, 0, BY_LINE },
	{ "far out", whole, whole, 1e6, ROWS, ROWS, 0, BY_LINE },
	{ "at a thousand million million", whole, whole, 1e15, ROWS, ROWS, 0, BY_LINE },
	{ "halves", and_a_half, whole, 0, ROWS, ROWS, 0, BY_LINE },
	{ "far halves", and_a_half, whole, 1e6, ROWS, ROWS, 0, BY_LINE },
	{ "wanted queries only", by_threes, whole, 0, 80, 240, 0, BY_LINE },
	{ "queries that repeat", in_pairs, whole, 0, ROWS, ROWS / 2, 0, BY_LINE },
	{ "longest line", after_all, whole, 0, ROWS, TILE_COLUMNS, 7, BY_LINE },
	{ "queries too far apart", far_apart, whole, 0, ROWS, TILE_COLUMNS, 0, BY_PAIR },
	{ "keys with a gap", with_a_gap, with_a_gap, 0, ROWS, ROWS, 0, BY_PAIR },
	{ "keys that repeat", in_pairs, in_pairs, 0, ROWS, ROWS, 0, BY_PAIR },
	{ "fractions", by_fractions, by_fractions, 0, ROWS, ROWS, 0, BY_PAIR },
	{ "fractions of queries", by_fractions, whole, 0, ROWS, 30, 0, BY_PAIR },
	{ "a constant distance", standing, nowhere, 0, ROWS, ROWS, 0, BY_PAIR },
	{ "keys after their queries", in_pairs, whole, 0, ROWS, ROWS, 0, BY_PAIR_WITH_LATER_KEYS },
	{ "a constant distance to one key", standing, nowhere, 0, ROWS, 1, 0, BY_LINE },
};

/* Which columns a row sees: up to its own key, all or a window or, in every fifth row, none. */
enum sight { EVERYTHING, WINDOW, HOLES, SIGHTS };

struct case_ {
	bool later;
	double query[ROWS], key[TILE_COLUMNS];
	int low[ROWS], high[ROWS];
	struct tile tile;
	int pairs, calls;
	double sum[DISTANCES];
};

static struct case_ *current;

static void place_tile(const struct stand *s, enum sight sight, struct case_ *c)
{
	memset(c, 0, sizeof *c);
	c->later = s->way == BY_PAIR_WITH_LATER_KEYS;
	for (int j = 0; j < s->columns; j++)
		c->key[j] = s->offset + s->key(j);
	for (int r = 0; r < s->rows; r++) {
		int high = 0;
		c->query[r] = s->offset + s->query(r);
		while (high < s->columns && high <= r + (s->query == by_threes ? 2 * r : s->ahead) &&
		       (c->later || c->key[high] <= c->query[r]))
			high++;
		c->high[r] = high;
		c->low[r] = sight == WINDOW && high > 20 ? high - 20 : 0;
		if (sight == HOLES && r % 5 == 4)
			c->low[r] = c->high[r] = 0;
		c->pairs += c->high[r] - c->low[r];
	}
	c->tile = (struct tile){ .rows = s->rows, .columns = s->columns, .low = c->low, .high = c->high,
				 .query_positions = c->query, .key_positions = c->key, .scale = (real)0.3 };
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	(void)p;
	assert_ptr_equal(t, &current->tile);
	assert_ptr_equal(own, current);
	assert_true(distance >= 0 || current->later);
	current->calls++;
	return (real)sin(distance);
}

static size_t slot(double distance)
{
	return (size_t)(frac(distance * 0.61803398875) * DISTANCES);
}

static void bias_back(const struct place *p, const struct tile *t, double distance, double d_bias,
		      struct tile_gradient g)
{
	(void)p, (void)t, (void)g;
	assert_true(distance >= 0 || current->later);
	current->calls++;
	current->sum[slot(distance)] += d_bias;
}

/* One call a pair, or at most one a distance of the line. */
static void assert_calls(const struct stand *s, const struct case_ *c)
{
	if (s->way == BY_LINE ? c->calls > 2 * TILE_COLUMNS : c->calls != c->pairs)
		fail_msg("%s: %d calls for %d pairs", s->name, c->calls, c->pairs);
}

static void check_logits(const struct stand *s, struct case_ *c)
{
	enum { SIZE = ROWS * TILE_STRIDE };
	real *logits = TAKE(real, SIZE), *before = TAKE(real, SIZE);
	fill_normal(1, logits, SIZE);
	memcpy(before, logits, SIZE * sizeof *logits);
	c->calls = 0;
	distance_bias(NULL, &c->tile, bias, c, logits);
	assert_calls(s, c);
	for (int i = 0; i < SIZE; i++) {
		int r = i / TILE_STRIDE, j = i % TILE_STRIDE;
		real expected = before[i];
		if (r < s->rows && j >= c->low[r] && j < c->high[r])
			expected = before[i] * c->tile.scale + (real)sin(c->query[r] - c->key[j]);
		if (logits[i] != expected)
			fail_msg("%s: row %d, column %d: %.9g, not %.9g", s->name, r, j, (double)logits[i],
				 (double)expected);
	}
	free(logits), free(before);
}

static void check_gradients(const struct stand *s, struct case_ *c, bool learned)
{
	enum { SIZE = ROWS * TILE_STRIDE };
	static double sum[DISTANCES];
	real *d = TAKE(real, SIZE), *before = TAKE(real, SIZE);
	fill_normal(2, d, SIZE);
	memcpy(before, d, SIZE * sizeof *d);
	memset(sum, 0, sizeof sum);
	memset(c->sum, 0, sizeof c->sum);
	c->calls = 0;
	distance_bias_back(NULL, &c->tile, learned ? bias_back : NULL, d, (struct tile_gradient){ 0 });
	if (learned)
		assert_calls(s, c);
	for (int i = 0; i < SIZE; i++) {
		int r = i / TILE_STRIDE, j = i % TILE_STRIDE;
		bool seen = r < s->rows && j >= c->low[r] && j < c->high[r];
		if (d[i] != (seen ? before[i] * c->tile.scale : before[i]))
			fail_msg("%s: gradient of row %d, column %d: %.9g", s->name, r, j, (double)d[i]);
		if (seen && learned)
			sum[slot(c->query[r] - c->key[j])] += (double)before[i];
	}
	for (int i = 0; i < DISTANCES; i++)
		assert_close(c->sum[i], sum[i], 1e-12);
	free(d), free(before);
}

static void test_every_stand(void **state)
{
	static struct case_ c;
	(void)state;
	current = &c;
	for (int i = 0; i < COUNT(stands); i++)
		for (enum sight sight = EVERYTHING; sight < SIGHTS; sight++) {
			place_tile(&stands[i], sight, &c);
			assert_true(c.pairs > 0);
			check_logits(&stands[i], &c);
			check_gradients(&stands[i], &c, true);
			check_gradients(&stands[i], &c, false);
		}
}

/* Nothing to do, and nothing done: no row, or none that sees anything. */
static void test_nothing_is_seen(void **state)
{
	static struct case_ c;
	(void)state;
	current = &c;
	for (int rows = 0; rows < 3; rows++) {
		struct stand s = stands[0];
		place_tile(&s, EVERYTHING, &c);
		memset(c.high, 0, sizeof c.high);
		c.tile.rows = s.rows = rows;
		s.way = BY_LINE;
		check_logits(&s, &c);
		check_gradients(&s, &c, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_stand),
		cmocka_unit_test(test_nothing_is_seen),
	};
	return cmocka_run_group_tests_name("model biases by distance", tests, NULL, NULL);
}
