#include "model/position/inspection.h"

#include "model/base/rng.h"

#include <math.h>

/* Learned absolute positions (Gehring et al. 2017, 1705.03122, section 3.1): x_t += table[t], table [train_length][C],
 * N(0, 1). What a position past the table gets is the option `overflow`. A position between two rows takes them in
 * proportion. */

enum { OVERFLOW };
enum { REFUSE, CLAMP, RANDOM, INTERPOLATE };
static const struct option options[] = {
	[OVERFLOW] = { .name = "overflow", .kind = OPTION_CHOICE, .initial = "refuse",
		       .choices = "refuse|clamp|random|interpolate", .results = true, .untrained = true,
		       .help = "positions past the table: refused, the last row, untrained N(0, 1) rows, or all "
			       "positions shrunk to fit the table" },
	{ 0 },
};

/* Seed of the untrained rows: the same in every run, so that runs differ by their weights alone. */
#define RANDOM_ROWS_SEED 0

static int64_t overflow(const struct place *p)
{
	return p->method->value[OVERFLOW].integer;
}

static struct err reach(const struct place *p, double largest)
{
	if (largest <= p->train_length - 1 || overflow(p) != REFUSE)
		return OK;
	return err_usage("A model with --learned-overflow=clamp, random or interpolate takes longer ones.",
			 "length %.0f: the learned table has %d rows (train_length) and takes no position past them",
			 largest + 1, p->train_length);
}

static void declare(const struct model_options *o, struct layout *l, int layer)
{
	if (layer < 0)
		layout_add(l, INIT_NORMAL, 1, false, (int)o->train_length, (int)o->width, "model.position.table");
}

/* The two rows a position lies between and the share of the upper one. */
struct rows {
	int lower, upper;
	double share;
};

static struct rows rows_of(const struct place *p, int t)
{
	double last = p->train_length - 1, position = p->positions[t];
	if (overflow(p) == INTERPOLATE)
		position *= fmin(1, last / (place_length(p, p->T) - 1));
	if (position > last)
		position = last;
	struct rows r = { .lower = (int)floor(position) };
	r.share = position - r.lower;
	r.upper = r.share > 0 ? r.lower + 1 : r.lower;
	return r;
}

static bool untrained(const struct place *p, int t)
{
	return overflow(p) == RANDOM && p->positions[t] > p->train_length - 1;
}

static void embed(const struct place *p, struct place_parameters own, int first, int last, real *vector)
{
	size_t C = (size_t)p->C;
	for (int t = first; t < last; t++) {
		real *to = vector + (size_t)t * C;
		if (untrained(p, t)) {
			struct rng rng = rng_at(RANDOM_ROWS_SEED, STREAM_INIT, (uint64_t)ceil(p->positions[t]));
			for (size_t c = 0; c < C; c++)
				to[c] = (real)rng_normal(&rng);
			continue;
		}
		struct rows r = rows_of(p, t);
		const real *lower = own.shared + (size_t)r.lower * C, *upper = own.shared + (size_t)r.upper * C;
		for (size_t c = 0; c < C; c++)
			to[c] = r.share > 0 ? (real)(1 - r.share) * lower[c] + (real)r.share * upper[c] : lower[c];
	}
}

static void embed_back(const struct place *p, struct place_parameters own, const real *d_vector,
		       struct place_gradients to)
{
	size_t C = (size_t)p->C;
	(void)own;
	for (int t = 0; t < p->T; t++) {
		if (untrained(p, t))
			continue;
		const real *from = d_vector + (size_t)t * C;
		struct rows r = rows_of(p, t);
		real *lower = to.shared + (size_t)r.lower * C, *upper = to.shared + (size_t)r.upper * C;
		for (size_t c = 0; c < C; c++)
			lower[c] += (real)(1 - r.share) * from[c];
		for (size_t c = 0; c < C && r.share > 0; c++)
			upper[c] += (real)r.share * from[c];
	}
}

static void note_overflow(const struct place *p, struct report *to)
{
	static const char *const text[] = {
		[REFUSE] = "are refused", [CLAMP] = "take the last row", [RANDOM] = "take untrained N(0, 1) rows",
		[INTERPOLATE] = "shrink all positions of their sequence to fit the table",
	};
	report_note(to, "Positions past %d %s.", p->train_length - 1, text[overflow(p)]);
}

static struct err report_rows(const struct place *p, const real *own, struct report *to)
{
	size_t C = (size_t)p->C;
	double *table, *rms, *cosine;
	report_table(to, NULL, "position", p->train_length);
	TRY(report_column(to, "table", "", p->C, &table));
	TRY(report_column(to, "rms", "RMS of the row", 0, &rms));
	TRY(report_column(to, "cosines", "cosine with the row before", 0, &cosine));
	for (int t = 0; t < p->train_length; t++) {
		double squares = 0, product = 0, *row = table + (size_t)t * C;
		for (size_t c = 0; c < C; c++) {
			row[c] = (double)own[(size_t)t * C + c];
			squares += row[c] * row[c];
			product += t ? row[c] * row[c - C] : 0;
		}
		rms[t] = sqrt(squares / p->C);
		cosine[t] = t ? product / (p->C * rms[t] * rms[t - 1]) : NAN;
	}
	return OK;
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *shape;
	if (in->own) {
		TRY(report_rows(p, in->own->shared, to));
		note_overflow(p, to);
		return OK;
	}
	report_table(to, NULL, "axis", 2);
	TRY(report_column(to, "shape", "", 0, &shape));
	shape[0] = p->train_length;
	shape[1] = p->C;
	report_note(to, "A learned table of %d rows (train_length) of %d: give a model to see it.", p->train_length,
		    p->C);
	note_overflow(p, to);
	return OK;
}

const struct position position_learned = {
	.entry = { .name = "learned", .help = "a learned vector a position, added to the token embedding",
		   .paper = "Gehring et al. 2017, 1705.03122, section 3.1", .options = options },
	.any_order = true,
	.reach = reach,
	.declare = declare,
	.inspect = inspect,
	.embed = embed,
	.embed_back = embed_back,
};
