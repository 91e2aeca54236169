#include "model/position/inspection.h"
#include "model/position/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Arrays of F, one number a pair. */
struct pairs {
	double *trained_wavelength, *rotations, *trained, *inv_freq, *ratio, *kept, *angle, *trained_angle, *wavelength;
	char (*met)[REPORT_WORD];
};

static struct err add_columns(const struct inspection *in, struct report *to, struct pairs *a)
{
	report_table(to, NULL, "pair", place_pairs(in->place));
	TRY(report_column(to, "trained_wavelengths", "wavelength", 0, &a->trained_wavelength));
	TRY(report_column(to, "rotations", "rotations", 0, &a->rotations));
	TRY(report_column(to, "trained_inv_freq", "trained inv_freq", 0, &a->trained));
	TRY(report_column(to, "inv_freq", "inv_freq", 0, &a->inv_freq));
	TRY(report_column(to, "ratios", "ratio", 0, &a->ratio));
	if (scaling_of(in->request.method)->ramp)
		TRY(report_column(to, "kept", "kept", 0, &a->kept));
	TRY(report_column(to, "trained_angles", "trained angle", 0, &a->trained_angle));
	TRY(report_column(to, "angles", "angle", 0, &a->angle));
	TRY(report_words(to, NULL, "in training", &a->met));
	return report_column(to, "wavelengths", "", 0, &a->wavelength);
}

bool rope_angle_is_new(double trained, double angle, double step)
{
	return trained < 2 * M_PI && angle - trained > step * (1 - 1e-9);
}

static bool meet(double trained, double angle, double step, char word[REPORT_WORD])
{
	bool round = trained >= 2 * M_PI, new = rope_angle_is_new(trained, angle, step);
	if (step == 0)
		snprintf(word, REPORT_WORD, "still");
	else if (round)
		snprintf(word, REPORT_WORD, "seen");
	else if (new)
		snprintf(word, REPORT_WORD, "new %.3g", trained > 0 ? angle / trained : angle);
	else
		snprintf(word, REPORT_WORD, "%.3g", trained > 0 ? angle / trained : 1);
	return new;
}

/* How many pairs were left as they are, divided by the whole factor, or something between; slowed by more than that
 * (anything where there is no factor), or quickened; never turn; and meet new angles. */
struct counts {
	int kept, between, interpolated, slowed, quickened, still, new;
};

static void count(struct counts *n, double inv_freq, double ratio, double factor)
{
	const double rounding = 1e-9;
	if (inv_freq == 0)
		n->still++;
	else if (fabs(ratio - 1) < rounding)
		n->kept++;
	else if (fabs(ratio * factor - 1) < rounding)
		n->interpolated++;
	else if (ratio > 1)
		n->quickened++;
	else if (ratio * factor < 1)
		n->slowed++;
	else
		n->between++;
}

static bool learns(const struct place *p)
{
	return p->position->prepares_inv_freq && p->position->prepares_inv_freq(p);
}

/* Those of training: of a model that learned them the ones it has now. */
static void trained_inv_freq(const struct inspection *in, double *inv_freq)
{
	const struct place *p = in->place;
	if (learns(p)) {
		memcpy(inv_freq, in->zones->zone->inv_freq, (size_t)place_pairs(p) * sizeof *inv_freq);
		return;
	}
	struct scaling_request trained = in->request;
	trained.rope_theta = p->position->rope_theta(p);
	scaling_base(&trained, inv_freq);
	if (p->position->limit_inv_freq)
		p->position->limit_inv_freq(p, inv_freq);
}

static void fill_pairs(const struct inspection *in, const struct zone *last, struct pairs *a, struct counts *n)
{
	const struct place *p = in->place;
	double distance = zones_longest_distance(in->zones), trained_distance = p->train_length - 1;
	trained_inv_freq(in, a->trained);
	if (a->kept)
		scaling_of(in->request.method)->ramp(&in->request, a->kept);
	for (int m = 0; m < place_pairs(p); m++) {
		a->inv_freq[m] = last->inv_freq[m];
		a->ratio[m] = a->inv_freq[m] / a->trained[m];
		a->wavelength[m] = 2 * M_PI / a->inv_freq[m];
		a->trained_wavelength[m] = 2 * M_PI / a->trained[m];
		a->rotations[m] = p->train_length * a->trained[m] / (2 * M_PI);
		a->angle[m] = distance * a->inv_freq[m];
		a->trained_angle[m] = trained_distance * a->trained[m];
		n->new += meet(a->trained_angle[m], a->angle[m], a->inv_freq[m] > 0 ? a->trained[m] : 0, a->met[m]);
		count(n, a->inv_freq[m], a->ratio[m], scaling_factor(&in->request));
	}
}

/* Layers that go without rotation, where there are any. */
static struct err report_layers(const struct place *p, struct report *to)
{
	double *rotates;
	int still = 0;
	struct text_builder b = { 0 };
	for (int layer = 0; layer < p->layers; layer++)
		if (!place_rotates(p, layer))
			text_add(&b, "%s%d", still++ ? ", " : "", layer);
	if (still)
		report_note(to, "Of the %d layers these do not rotate: %s.", p->layers, b.data);
	text_builder_free(&b);
	if (!still)
		return OK;
	report_table(to, NULL, "layer", p->layers);
	TRY(report_column(to, "layer_rotates", "", 0, &rotates));
	for (int layer = 0; layer < p->layers; layer++)
		rotates[layer] = place_rotates(p, layer);
	return OK;
}

static void report_counts(const struct inspection *in, const struct pairs *a, const struct counts *n, struct report *to)
{
	bool factor = scaling_factor(&in->request) > 1, others = n->slowed + n->quickened > 0;
	struct text_builder b = { 0 };
	text_add(&b, "Of %d pairs %d are kept", place_pairs(in->place), n->kept);
	if (factor || !others)
		text_add(&b, ", %d %s, %d interpolated by the whole factor", n->between,
			 a->kept ? "on the ramp" : "between", n->interpolated);
	if (others)
		text_add(&b, ", %d slowed%s, %d quickened", n->slowed, factor ? " by more" : "", n->quickened);
	report_note(to, "%s; %d meet angles that training did not.", b.data, n->new);
	text_builder_free(&b);
	if (n->still)
		report_note(to, "%d pairs stand still: they carry content alone.", n->still);
	if (learns(in->place))
		report_note(to, "Frequencies are learned: these are the ones %s.",
			    in->own ? "of the model" : "that training begins with");
}

struct err rope_inspect(const struct inspection *in, struct report *to)
{
	const struct zone *last = &in->zones->zone[in->zones->count - 1];
	struct pairs a = { 0 };
	struct counts n = { 0 };
	report_number(to, "rope_theta", in->request.rope_theta);
	report_number(to, "rotary_dim", 2 * place_pairs(in->place));
	report_number(to, "attention_factor", last->attention_factor);
	TRY(add_columns(in, to, &a));
	fill_pairs(in, last, &a, &n);
	report_note(to,
		    "Wavelengths are in tokens, rotations those within the trained length, angles (rad) those at the "
		    "longest distance of training and of this length; seen: training went round the circle; else angle "
		    "/ trained angle, new where it met no such angle.");
	report_counts(in, &a, &n, to);
	return report_layers(in->place, to);
}
