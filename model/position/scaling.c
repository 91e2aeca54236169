#include "model/position/scaling.h"

#include "model/position/rope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adding a scaling: its file (or its struct in that of its family), and its line here. */
#define SCALINGS(_)       \
	_(none)           \
	_(linear)         \
	_(dynamic_linear) \
	_(ntk)            \
	_(dynamic)        \
	_(dynamic_qwen)   \
	_(ntk_mixed)      \
	_(ntk_by_parts)   \
	_(yarn)           \
	_(dynamic_yarn)   \
	_(llama3)         \
	_(longrope)       \
	_(abf)            \
	_(giraffe)        \
	_(resonance)      \
	_(window)         \
	_(sinks)          \
	_(rerope)         \
	_(leaky_rerope)   \
	_(self_extend)    \
	_(dual_chunk)     \
	_(logn)           \
	_(temperature)

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

/* ---- parts ---- */

static const char *name_of(const struct method *m)
{
	return m->entry->name;
}

static bool zoned(const struct method *part)
{
	const struct scaling *s = scaling_of(part);
	return s->zones && (!s->zoned || s->zoned(part));
}

const struct method *scaling_zoned(const struct method *scaling)
{
	const struct method *part = scaling;
	while (part && !zoned(part))
		part = part->plus;
	return part;
}

static bool tempered(const struct method *part)
{
	const struct scaling *s = scaling_of(part);
	return s->tempers && (!s->tempered || s->tempered(part));
}

static struct err pair_joins(const struct method *a, const struct method *b)
{
	const struct scaling *x = scaling_of(a), *y = scaling_of(b);
	if (x == y)
		return err_usage("Name it once.", "%s stands twice in one combination", name_of(a));
	if (!x->entry.joins || !y->entry.joins)
		return err_usage("Leave it out.", "%s stands alone: beside another part it would do nothing",
				 x->entry.joins ? name_of(b) : name_of(a));
	if (x->frequencies && y->frequencies)
		return err_usage("Choose one of them.", "%s+%s: both set all frequencies, so that one would undo the "
				 "other", name_of(a), name_of(b));
	if (zoned(a) && zoned(b))
		return err_usage("Choose one of them.", "%s+%s: both decide which keys a query sees, and where",
				 name_of(a), name_of(b));
	if (tempered(a) && tempered(b))
		return err_usage("Choose one of them, or ntk_by_parts, which is yarn without one.",
				 "%s+%s: each has a temperature, and logits would take both", name_of(a), name_of(b));
	return OK;
}

struct err scaling_joins(const struct method *first)
{
	for (const struct method *a = first; a; a = a->plus)
		for (const struct method *b = a->plus; b; b = b->plus)
			TRY(pair_joins(a, b));
	return OK;
}

/* ---- requests ---- */

double scaling_length_ratio(const struct scaling_request *r)
{
	return fmax(1, r->length / r->train_length);
}

const char *scaling_length_rule(const struct method *own)
{
	(void)own;
	return "ratio max(1, length / train_length)" BLOCK_RULE;
}

/* The base after all parts that set one. */
static double theta_of(const struct method *scaling, struct scaling_request r)
{
	for (const struct method *part = scaling; part; part = part->plus) {
		r.method = part;
		if (scaling_of(part)->base)
			r.rope_theta = scaling_of(part)->base(&r);
	}
	return r.rope_theta;
}

/* A factor auto is that of the whole sequence, however far of it is reached. */
static struct scaling_request part_within(const struct method *part, const struct model_options *o, double length,
					  double whole)
{
	struct place p = place_of(o);
	struct scaling_request r = {
		.method = part, .rope_theta = p.position->rope_theta ? p.position->rope_theta(&p) : 0,
		.D = place_rotary_dim(&p), .train_length = p.train_length, .length = length, .factor = 1,
	};
	int factor = method_find(part->entry, "factor");
	if (factor >= 0) {
		double given = part->value[factor].number;
		r.factor = given > 0 ? given : fmax(1, whole / r.train_length);
	}
	return r;
}

struct scaling_request scaling_part_request(const struct method *part, const struct model_options *o, double length)
{
	return part_within(part, o, length, length);
}

bool scaling_heeds_factor(const struct method *part)
{
	const struct scaling *s = scaling_of(part);
	return method_find(part->entry, "factor") >= 0 && !(s->settled && s->settled(part));
}

static const struct method *leading(const struct method *scaling)
{
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->frequencies)
			return part;
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->ratio || scaling_heeds_factor(part))
			return part;
	return scaling;
}

static struct scaling_request request_within(const struct method *scaling, const struct model_options *o, double length,
					     double whole)
{
	struct scaling_request r = part_within(leading(scaling), o, length, whole);
	r.rope_theta = theta_of(scaling, r);
	return r;
}

struct scaling_request scaling_request(const struct method *scaling, const struct model_options *o, double length)
{
	return request_within(scaling, o, length, length);
}

struct method scaling_resolved(const struct method *scaling, const struct model_options *o, double length)
{
	struct method part[METHOD_PARTS];
	int count = method_split(scaling, part);
	bool changed = false;
	for (int i = 0; i < count; i++) {
		int factor = method_find(part[i].entry, "factor");
		if (factor < 0 || part[i].value[factor].number != 0)
			continue;
		double resolved = scaling_part_request(&part[i], o, length).factor;
		method_set(&part[i], factor, (union option_value){ .number = resolved });
		changed = true;
	}
	return changed ? method_join(part, count) : *scaling;
}

bool scaling_has_factor(const struct method *scaling)
{
	return scaling_heeds_factor(leading(scaling));
}

double scaling_factor(const struct scaling_request *r)
{
	const struct scaling *s = scaling_of(r->method);
	if (s->ratio)
		return s->ratio(r);
	return scaling_heeds_factor(r->method) ? r->factor : 1;
}

static struct err check_part(const struct method *part, const struct model_options *o, double length)
{
	const struct scaling *s = scaling_of(part);
	const struct position *position = position_of(&o->encoding);
	struct place p = place_of(o);
	bool changes = s->base || s->frequencies || s->after;
	if (!s->any_encoding && !position->rope_theta && !changes)
		return err_usage("Use scaling none, or an encoding that rotates, such as rope.",
				 "scaling: %s moves positions that are rotated, and the encoding %s rotates none",
				 s->entry.name, o->encoding.entry->name);
	if (!s->any_encoding && !position->rope_theta)
		return err_usage("Use scaling none, or an encoding with fixed frequencies such as rope.",
				 "scaling: %s changes RoPE's frequencies, and the encoding %s has none", s->entry.name,
				 o->encoding.entry->name);
	if (changes && position->prepares_inv_freq && position->prepares_inv_freq(&p))
		return err_usage("Use scaling none, or a model whose frequencies are fixed.",
				 "scaling: %s changes fixed frequencies, and those of this model are learned",
				 s->entry.name);
	if (o->ssmax && s->query_scale && !s->tempers)
		return err_usage("Leave one of them out.", "scaling: %s and ssmax both make logits grow with a query's "
				 "number of keys, and they would take both", s->entry.name);
	struct scaling_request r = scaling_part_request(part, o, length);
	return s->check ? s->check(&r) : OK;
}

struct err scaling_check(const struct method *scaling, const struct model_options *o, double length)
{
	TRY(err_at(scaling_joins(scaling), "scaling"));
	for (const struct method *part = scaling; part; part = part->plus)
		TRY(check_part(part, o, length));
	return OK;
}

/* ---- what the parts make together ---- */

void scaling_frequencies_within(const struct method *scaling, const struct model_options *o, double length,
				double whole, double *inv_freq, double *attention_factor)
{
	struct scaling_request r = request_within(scaling, o, length, whole);
	struct place p = place_of(o);
	*attention_factor = 1;
	if (scaling_of(r.method)->frequencies)
		scaling_of(r.method)->frequencies(&r, inv_freq, attention_factor);
	else
		scaling_base(&r, inv_freq);
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->after) {
			struct scaling_request own = part_within(part, o, length, whole);
			scaling_of(part)->after(&own, inv_freq);
		}
	if (p.position->limit_inv_freq)
		p.position->limit_inv_freq(&p, inv_freq);
}

void scaling_frequencies(const struct method *scaling, const struct model_options *o, double length, double *inv_freq,
			 double *attention_factor)
{
	scaling_frequencies_within(scaling, o, length, length, inv_freq, attention_factor);
}

bool scaling_has_query_scale(const struct method *scaling)
{
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->query_scale)
			return true;
	return false;
}

double scaling_query_scale(const struct method *scaling, const struct model_options *o, double length, double position)
{
	double scale = 1;
	for (const struct method *part = scaling; part; part = part->plus)
		if (scaling_of(part)->query_scale) {
			struct scaling_request r = scaling_part_request(part, o, length);
			scale *= scaling_of(part)->query_scale(&r, position);
		}
	return scale;
}

bool scaling_by_length(const struct method *scaling)
{
	for (const struct method *part = scaling; part; part = part->plus)
		if (method_find(part->entry, BLOCK_NAME) >= 0)
			return true;
	return false;
}

struct method scaling_by_query(const struct method *scaling)
{
	struct method part[METHOD_PARTS];
	int parts = method_split(scaling, part);
	bool changed = false;
	for (int i = 0; i < parts; i++) {
		int block = method_find(part[i].entry, BLOCK_NAME);
		if (block < 0 || part[i].value[block].integer > 0)
			continue;
		method_set(&part[i], block, (union option_value){ .integer = 1 });
		changed = true;
	}
	return changed ? method_join(part, parts) : *scaling;
}

bool scaling_same(const struct method *a, const struct method *b, const struct model_options *o, double length)
{
	const struct method *both[2] = { a, b };
	struct place p = place_of(o);
	size_t F = (size_t)place_rotary_dim(&p) / 2;
	double factor[2], *inv_freq[2] = { malloc((F + 1) * sizeof(double)), malloc((F + 1) * sizeof(double)) };
	bool same = inv_freq[0] && inv_freq[1] && p.position->rope_theta;
	for (int i = 0; i < 2 && same; i++) {
		same = !scaling_of(both[i])->zones && !scaling_has_query_scale(both[i]) && !scaling_zoned(both[i]) &&
		       !scaling_check(both[i], o, length).code;
		if (same)
			scaling_frequencies(both[i], o, length, inv_freq[i], &factor[i]);
	}
	same = same && factor[0] == factor[1] && !memcmp(inv_freq[0], inv_freq[1], F * sizeof(double));
	free(inv_freq[0]);
	free(inv_freq[1]);
	return same;
}
