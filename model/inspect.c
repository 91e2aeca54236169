#include "model/inspect.h"

#include "model/base/stb.h"
#include "model/position/inspection.h"

#include <math.h>
#include <string.h>

/* Of A+B the names of all parts. */
static void report_method(struct report *to, const char *name, const char *label, const struct method *m)
{
	struct text_builder names = { 0 }, identity = { 0 };
	for (const struct method *part = m; part; part = part->plus)
		text_add(&names, "%s%s", part == m ? "" : "+", part->entry->name);
	method_identity(m, &identity);
	report_text(to, name, names.data);
	report_text(to, label, identity.data);
	text_builder_free(&names);
	text_builder_free(&identity);
}

static void report_request(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	report_method(to, "encoding", "encoding_options", p->method);
	report_method(to, "scaling", "scaling_options", in->scaling);
	report_number(to, "width", p->C);
	report_number(to, "heads", p->H);
	report_number(to, "head_dim", p->D);
	report_number(to, "train_length", p->train_length);
	report_number(to, "length", p->T);
	report_number(to, "factor", scaling_factor(&in->request));
}

/* Columns of the table of zones: what is seen by the first and the last query of each; of the last also at which
 * distances the last and the first of its keys are, and what it is multiplied by. */
static const struct {
	const char *name, *heading;
} zone_column[] = {
	{ "begin", "from query" },      { "end", "to before" },
	{ "first_low", "its keys from" },  { "first_high", "to before" },
	{ "last_low", "the last's from" }, { "last_high", "to before" },
	{ "last_nearest", "at distances" }, { "last_farthest", "to" },
	{ "last_query_scale", "query scale" }, { "attention_factor", "attention factor" },
};
enum { ZONE_COLUMNS = sizeof zone_column / sizeof *zone_column };

/* One plain zone says no more to people than the table of pairs does. */
static bool zones_matter(const struct zones *z)
{
	const struct zone *first = z->zone;
	return z->count > 1 || first->query_scale || first->low[first->end - first->begin - 1] > 0;
}

static void zone_row(const struct zone *z, double row[ZONE_COLUMNS])
{
	int last = z->end - z->begin - 1, low = z->low[last], high = z->high[last];
	double at = low < high ? z->query_position[last] : INFINITY; /* of no keys */
	const double values[ZONE_COLUMNS] = {
		z->begin, z->end, z->low[0], z->high[0], low, high,
		at - z->key_position[low < high ? high - 1 : 0], at - z->key_position[low < high ? low : 0],
		z->query_scale ? z->query_scale[last] : 1, z->attention_factor,
	};
	memcpy(row, values, sizeof values);
}

static struct err report_zones(const struct inspection *in, struct report *to)
{
	const struct zones *z = in->zones;
	int F = z->zone->inv_freq ? place_pairs(in->place) : 0;
	bool shown = zones_matter(z);
	double *value[ZONE_COLUMNS], *inv_freq = NULL;
	if (!F && !shown)
		return OK;
	report_table(to, "zones", "zone", z->count);
	for (int c = 0; c < ZONE_COLUMNS; c++)
		TRY(report_column(to, zone_column[c].name, shown ? zone_column[c].heading : "", 0, &value[c]));
	if (F)
		TRY(report_column(to, "inv_freq", "", F, &inv_freq));
	for (int i = 0; i < z->count; i++) {
		const struct zone *zone = &z->zone[i];
		double row[ZONE_COLUMNS];
		zone_row(zone, row);
		for (int c = 0; c < ZONE_COLUMNS; c++)
			value[c][i] = row[c];
		if (F)
			memcpy(inv_freq + (size_t)i * (size_t)F, zone->inv_freq, (size_t)F * sizeof(double));
	}
	return OK;
}

static struct err report_encoding(const struct inspection *in, struct report *to)
{
	const struct position *position = in->place->position;
	if (position->inspect)
		return position->inspect(in, to);
	report_note(to, "%s: %s. It has nothing more to show.", position->entry.name, position->entry.help);
	return OK;
}

/* Positions and zones, measured or placed. */
static void place_sequence(const struct inspect_request *q, struct place *p, struct arena *a, struct zones *zones)
{
	double *positions = ARENA_TAKE(a, double, (size_t)q->length);
	for (int i = 0; positions && i < q->length; i++)
		positions[i] = i;
	p->T = q->length;
	p->positions = positions;
	scaling_zones(q->scaling, q->options, p, a, zones);
}

static struct err check(const struct inspect_request *q, const struct place *p)
{
	struct layout own;
	struct err e = layout_position(q->options, &own);
	layout_free(&own);
	if (!e.code && p->position->reach)
		e = p->position->reach(p, q->length - 1);
	return e.code ? e : scaling_check(q->scaling, q->options, q->length);
}

static struct place_parameters *parameters(const struct model *m)
{
	struct place_parameters *own = NULL;
	for (int layer = 0; m && layer < m->options.layers; layer++)
		arrput(own, ((struct place_parameters){ .shared = m->value + m->layout.position,
							.layer = m->value + m->layout.layer[layer].position }));
	return own;
}

/* The frequencies that a model learned, those of its first layer, in place of those that the zones begin with. */
static void take_learned(const struct place *p, const struct place_parameters *own, struct zones *zones)
{
	bool learned = p->position->prepares_inv_freq && p->position->prepares_inv_freq(p);
	for (int i = 0; learned && own && i < zones->count; i++) {
		struct prepared to = { .inv_freq = zones->zone[i].inv_freq,
				       .attention_factor = &zones->zone[i].attention_factor };
		p->position->prepare(p, own[0], &to);
	}
}

struct err inspect(const struct inspect_request *q, struct report *to)
{
	struct arena memory, measure = { 0 };
	struct zones zones;
	struct place p = place_of(q->options);
	p.C = q->width ? q->width : p.C;
	TRY(check(q, &p));
	place_sequence(q, &p, &measure, &zones);
	TRY(arena_reserve(&memory, measure.used, "the zones"));
	place_sequence(q, &p, &memory, &zones);
	struct place_parameters *own = parameters(q->model);
	take_learned(&p, own, &zones);
	struct inspection in = { .place = &p, .scaling = q->scaling, .zones = &zones, .own = own,
				 .request = scaling_request(q->scaling, q->options, q->length) };
	report_request(&in, to);
	struct err e = report_encoding(&in, to);
	if (!e.code)
		e = report_zones(&in, to);
	arrfree(own);
	arena_free(&memory);
	return e;
}
