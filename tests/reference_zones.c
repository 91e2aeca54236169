#include "tests/reference_parts.h"

/* The oracle: which keys a query sees under a scaling, and how far off. */

/* The cache holds `start` keys and this many recent ones before a step's own. */
static double cache_recent(const struct method *m, int train_length)
{
	double given = option(m, "recent");
	return given > 0 ? given - chosen(m, "evict", "before") : fmax(0, train_length - option(m, "start") - 1);
}

/* A key's slot is how many of those kept came before it. */
static double cached_distance(const struct method *m, int train_length, int i, int j)
{
	double start = option(m, "start"), recent = cache_recent(m, train_length);
	if (i <= start + recent || i - j <= recent)
		return i - j;
	return j < start ? start + recent - j : NAN;
}

static double leaky_distance(const struct method *m, double w, double L, double length, double r)
{
	double k = or_else(option(m, "k"), fmax(1, (length - w) / (L - w)));
	return w + (r - w) / k;
}

static double grouped_distance(const struct method *m, double w, double L, double length, double i, double j)
{
	double G = or_else(option(m, "group"), fmax(1, ceil((length - w) / (L - w))));
	if (G == 1) /* no scaling, even between whole positions */
		return i - j;
	double shift = chosen(m, "shift", "real") ? w / G : floor(w / G);
	return floor(i / G) - floor(j / G) + w - shift;
}

static double chunked_distance(const struct method *m, double L, double i, double j)
{
	double longest = or_else(option(m, "chunk"), floor(L * 3 / 4));
	double c = longest - or_else(option(m, "local"), fmax(1, floor(L / 8)));
	double chunks = floor(i / c) - floor(j / c), key = j - c * floor(j / c), query = i - c * floor(i / c);
	return (chunks == 0 ? query : fmin(chunks == 1 ? query + c : 2 * c - 1, longest)) - key;
}

double reference_distance(const struct method *scaling, int train_length, int T, const double *positions, int i, int j)
{
	const struct method *m;
	double r = positions[i] - positions[j], length = positions[T - 1] + 1, L = train_length;
	if ((m = part(scaling, "window")))
		return i - j < or_else(option(m, "size"), L) ? r : NAN;
	if ((m = part(scaling, "sinks")))
		return cached_distance(m, train_length, i, j);
	if ((m = part(scaling, "dual_chunk")))
		return chunked_distance(m, L, positions[i], positions[j]);
	m = part(scaling, "rerope");
	m = m ? m : part(scaling, "leaky_rerope");
	m = m ? m : part(scaling, "self_extend");
	double w = m ? or_else(option(m, "w"), floor(L / 2)) : INFINITY;
	if (r < w)
		return r;
	if (is(m, "rerope"))
		return w;
	return is(m, "leaky_rerope") ? leaky_distance(m, w, L, length, r)
				     : grouped_distance(m, w, L, length, positions[i], positions[j]);
}

/* Where a query stands for a bias that goes by it. */
double reference_query_position(const struct method *scaling, int train_length, const double *positions, int i)
{
	const struct method *m = part(scaling, "sinks");
	return m ? fmin(i, option(m, "start") + cache_recent(m, train_length)) : positions[i];
}
