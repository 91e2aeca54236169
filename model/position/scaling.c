#include "model/position/scaling.h"

#include "model/position/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adding a scaling: its struct (here, or a file of its own when long), and its line here. */
#define SCALINGS(_)     \
	_(none)         \
	_(linear)       \
	_(ntk)          \
	_(dynamic)      \
	_(ntk_by_parts) \
	_(yarn)         \
	_(window)

#define DECLARE(name) extern const struct scaling scaling_##name;
SCALINGS(DECLARE)

#define ADDRESS(name) &scaling_##name,
static const struct scaling *const list[] = { SCALINGS(ADDRESS) };
enum { COUNT = sizeof list / sizeof list[0] };

const struct entry *scaling_at(int index)
{
	return index >= 0 && index < COUNT ? &list[index]->entry : NULL;
}

void scaling_base(const struct scaling_request *r, double *inv_freq)
{
	rope_frequencies(r->rope_theta, r->D, inv_freq);
}

static void none_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	scaling_base(r, inv_freq);
	*attention_factor = 1;
}

const struct scaling scaling_none = {
	.entry = { .name = "none", .help = "the trained frequencies at every length" },
	.any_encoding = true,
	.frequencies = none_frequencies,
};

/* Position interpolation (Chen et al. 2023, 2306.15595, equation 4): theta / s. */
static void linear_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	none_frequencies(r, inv_freq, attention_factor);
	for (int m = 0; m < r->D / 2; m++)
		inv_freq[m] /= r->factor;
}

static const struct option factor_options[] = { FACTOR_OPTION, { 0 } };

const struct scaling scaling_linear = {
	.entry = { .name = "linear", .help = "position interpolation: all frequencies divided by the factor",
		   .options = factor_options },
	.frequencies = linear_frequencies,
};

/* NTK-aware base change (bloc97 2023; Peng et al. 2023, 2309.00071, section 3.1): theta_m s^(-2m/(D-2)). The fastest
 * pair stays, the slowest is divided by s. */
static void ntk_by(const struct scaling_request *r, double ratio, double *inv_freq, double *attention_factor)
{
	rope_frequencies(r->rope_theta * pow(ratio, (double)r->D / (r->D - 2)), r->D, inv_freq);
	*attention_factor = 1;
}

static struct err ntk_check(const struct scaling_request *r)
{
	if (r->D > 2)
		return OK;
	return err_usage("Use a larger head_dim, or linear.",
			 "%s: needs a head_dim above 2: its exponent is D / (D - 2)", r->method->entry->name);
}

static void ntk_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	ntk_by(r, r->factor, inv_freq, attention_factor);
}

const struct scaling scaling_ntk = {
	.entry = { .name = "ntk", .help = "larger base: fast pairs kept, the slowest divided by the factor",
		   .options = factor_options },
	.check = ntk_check,
	.frequencies = ntk_frequencies,
};

/* Dynamic NTK (emozilla 2023; Peng et al. 2023, section 3.3), with the factor of Hugging Face's version as alpha: ntk
 * by max(1, alpha length / train_length - (alpha - 1)). */
enum { ALPHA, BLOCK };
static const struct option dynamic_options[] = {
	[ALPHA] = { .name = "alpha", .kind = OPTION_NUMBER, .initial = "1", .least = 1, .most = 1e9, .results = true,
		    .shared = true, .help = "ratio = max(1, alpha length / train_length - (alpha - 1))" },
	[BLOCK] = { .name = "block", .kind = OPTION_INTEGER, .initial = "0", .least = 0, .most = 16777216,
		    .unit = "queries", .results = true,
		    .help = "each block of queries takes the ratio of the length that ends with it; "
			    "0: the whole sequence" },
	{ 0 },
};

static double dynamic_ratio(const struct scaling_request *r)
{
	double alpha = r->method->value[ALPHA].number;
	return fmax(1, alpha * r->length / r->train_length - (alpha - 1));
}

static void dynamic_frequencies(const struct scaling_request *r, double *inv_freq, double *attention_factor)
{
	ntk_by(r, dynamic_ratio(r), inv_freq, attention_factor);
}

/* A zone for each block of queries, keys rotated anew for each. */
static void dynamic_zones(const struct method *scaling, const struct model_options *o, const struct place *p,
			  struct arena *a, struct zones *out)
{
	int64_t block = scaling->value[BLOCK].integer;
	if (block < 1 || block > p->T)
		block = p->T;
	int count = (int)((p->T + block - 1) / block);
	struct zone *zone = ARENA_TAKE(a, struct zone, (size_t)count);
	for (int n = 0; n < count; n++) {
		int64_t begin = n * block, end = begin + block < p->T ? begin + block : p->T;
		struct zone z = zone_plain(scaling, o, p, a, (int)begin, (int)end);
		if (zone)
			zone[n] = z;
	}
	*out = (struct zones){ .zone = zone, .count = count, .together = 1 };
}

const struct scaling scaling_dynamic = {
	.entry = { .name = "dynamic", .help = "ntk by the length reached so far", .options = dynamic_options },
	.check = ntk_check,
	.frequencies = dynamic_frequencies,
	.zones = dynamic_zones,
	.ratio = dynamic_ratio,
};

bool scaling_has_factor(const struct method *scaling)
{
	return method_find(scaling->entry, "factor") >= 0;
}

struct scaling_request scaling_request(const struct method *scaling, const struct model_options *o, double length)
{
	struct place p = place_of(o);
	struct scaling_request r = {
		.method = scaling, .rope_theta = p.position->rope_theta ? p.position->rope_theta(&p) : 0, .D = p.D,
		.train_length = p.train_length, .length = length, .factor = 1,
	};
	int factor = method_find(scaling->entry, "factor");
	if (factor >= 0) {
		double given = scaling->value[factor].number;
		r.factor = given > 0 ? given : fmax(1, length / p.train_length);
	}
	return r;
}

double scaling_factor(const struct scaling_request *r)
{
	const struct scaling *s = scaling_of(r->method);
	return s->ratio ? s->ratio(r) : r->factor;
}

bool scaling_same(const struct method *a, const struct method *b, const struct model_options *o, double length)
{
	const struct method *both[2] = { a, b };
	size_t F = (size_t)(o->width / o->heads) / 2;
	double factor[2], *inv_freq[2] = { malloc((F + 1) * sizeof(double)), malloc((F + 1) * sizeof(double)) };
	bool same = inv_freq[0] && inv_freq[1];
	for (int i = 0; i < 2 && same; i++) {
		struct scaling_request r = scaling_request(both[i], o, length);
		same = !scaling_of(both[i])->zones && !scaling_check(both[i], o, length).code && r.rope_theta > 0;
		if (same)
			scaling_of(both[i])->frequencies(&r, inv_freq[i], &factor[i]);
	}
	same = same && factor[0] == factor[1] && !memcmp(inv_freq[0], inv_freq[1], F * sizeof(double));
	free(inv_freq[0]);
	free(inv_freq[1]);
	return same;
}

struct err scaling_check(const struct method *scaling, const struct model_options *o, double length)
{
	const struct scaling *s = scaling_of(scaling);
	if (!s->any_encoding && !position_of(&o->encoding)->rope_theta)
		return err_usage("Use scaling none, or an encoding with fixed frequencies such as rope.",
				 "scaling: %s changes RoPE's frequencies, and the encoding %s has none", s->entry.name,
				 o->encoding.entry->name);
	struct scaling_request r = scaling_request(scaling, o, length);
	return s->check ? s->check(&r) : OK;
}

struct zone zone_plain(const struct method *scaling, const struct model_options *o, const struct place *p,
		       struct arena *a, int begin, int end)
{
	struct zone z = { .begin = begin, .end = end, .attention_factor = 1 };
	int *low = ARENA_TAKE(a, int, (size_t)(end - begin)), *high = ARENA_TAKE(a, int, (size_t)(end - begin));
	if (p->position->rotate)
		z.inv_freq = ARENA_TAKE(a, double, (size_t)p->D / 2);
	if (!a->base)
		return z;
	for (int i = begin; i < end; i++) {
		low[i - begin] = 0;
		high[i - begin] = i + 1;
	}
	z.low = low;
	z.high = high;
	z.query_position = p->positions + begin;
	z.key_position = p->positions;
	if (p->position->rope_theta) {
		struct scaling_request r = scaling_request(scaling, o, p->positions[end - 1] + 1);
		scaling_of(scaling)->frequencies(&r, z.inv_freq, &z.attention_factor);
	}
	return z;
}

/* Keys that a query sees in a zone; one past its own would be the future. */
static int keys_seen(const struct zone *z, int i, const char *name)
{
	int low = z->low[i - z->begin], high = z->high[i - z->begin];
	BUG_IF(low < 0 || high > i + 1, "%s: query %d sees keys %d to %d", name, i, low, high - 1);
	return high > low ? high - low : 0;
}

/* A query that sees no key has no softmax. */
static void verify(const struct zones *z, const char *name)
{
	for (int first = 0, last; first < z->count; first = last) {
		for (last = first; last < z->count && z->zone[last].begin == z->zone[first].begin;)
			last++;
		for (int i = z->zone[first].begin; i < z->zone[first].end; i++) {
			int seen = 0;
			for (int n = first; n < last; n++)
				seen += keys_seen(&z->zone[n], i, name);
			BUG_IF(!seen, "%s: query %d sees no key", name, i);
		}
	}
}

static void make_zones(const struct method *scaling, const struct model_options *o, const struct place *p,
		       struct arena *a, struct zones *out)
{
	if (scaling_of(scaling)->zones) {
		scaling_of(scaling)->zones(scaling, o, p, a, out);
		return;
	}
	struct zone *zone = ARENA_TAKE(a, struct zone, 1), z = zone_plain(scaling, o, p, a, 0, p->T);
	if (zone)
		*zone = z;
	*out = (struct zones){ .zone = zone, .count = 1, .together = 1 };
}

void scaling_zones(const struct method *scaling, const struct model_options *o, const struct place *p, struct arena *a,
		   struct zones *out)
{
	make_zones(scaling, o, p, a, out);
	if (a->base)
		verify(out, scaling->entry->name);
}

double zones_longest_distance(const struct zones *z)
{
	double longest = 0;
	for (const struct zone *zone = z->zone; zone < z->zone + z->count; zone++)
		for (int i = 0; i < zone->end - zone->begin; i++)
			if (zone->low[i] < zone->high[i])
				longest = fmax(longest, zone->query_position[i] - zone->key_position[zone->low[i]]);
	return longest;
}
