#include "runs/claims/pairs.h"

#include "eval/parts.h"
#include "model/base/stb.h"
#include "runs/claims/compared.h"
#include "runs/run/run_examine.h"

#include <math.h>
#include <string.h>

/* Enough for a share of thousands of questions, and asked within a second. */
#define SEQUENCES 32
#define MOST_PAIRS 1024
#define MOST_HEADS 4096

enum { INTACT, FAST_STILL, SLOW_STILL, SETTINGS };
enum { ECHO, RECALL, GROUPS };
static const char *const groups[GROUPS] = { "echo", "recall" };

/* Accuracies of one model. */
struct measured {
	double accuracy[SETTINGS][GROUPS];
	int fast, pairs;
};

/* A pair's kind by setting; returns how many turn fully within the trained length. */
static int set_kinds(const struct model *m, int setting, int F, uint8_t *kind)
{
	double inv_freq[MOST_PAIRS];
	int fast = 0;
	parts_frequencies(m, &m->options.trained_scaling, (double)m->options.train_length, inv_freq);
	for (int i = 0; i < F; i++) {
		bool turns = inv_freq[i] * (double)m->options.train_length >= 2 * M_PI;
		fast += turns;
		kind[i] = setting == (turns ? FAST_STILL : SLOW_STILL) ? PAIR_STILL : PAIR_SCALED;
	}
	return fast;
}

static double accuracy_in(const struct eval_result *r, const char *group)
{
	for (int g = 0; g < r->groups; g++)
		if (!strcmp(r->group[g], group))
			return r->cell[g].accuracy;
	return NAN;
}

static struct err measure_setting(const struct examined *x, int setting, struct measured *out)
{
	struct place p = place_of(&x->model.options);
	uint8_t kind[MOST_PAIRS], set[MOST_HEADS] = { 0 };
	int F = place_pairs(&p);
	if (F < 1 || F > MOST_PAIRS || p.layers * p.H > MOST_HEADS)
		return err_usage(NULL, "%s: %d pairs in %d heads", x->folder, F, p.layers * p.H);
	out->pairs = F;
	out->fast = set_kinds(&x->model, setting, F, kind);
	struct pair_sets sets = { .count = 1, .kind = kind, .set = set };
	struct eval_request q = examined_request(x, &x->model.options.trained_scaling, x->length);
	struct eval_result r = { 0 };
	q.pairs = &sets;
	TRY(eval_check(&q));
	struct err e = eval_run(&q, NULL, NULL, &r);
	for (int g = 0; g < GROUPS && !e.code; g++)
		out->accuracy[setting][g] = accuracy_in(&r, groups[g]);
	eval_result_free(&r);
	return e;
}

static struct err measure_run(const char *folder, struct measured *out)
{
	static const struct scope scope = { .command = "claims", .lists = LIST_TRAINING | LIST_EVAL };
	struct config c;
	struct examined x;
	config_init(&c, &scope, NULL);
	c.eval.sequences = SEQUENCES;
	TRY(examined_open(folder, &c, 1, &x));
	struct err e = OK;
	for (int setting = 0; setting < SETTINGS && !e.code; setting++)
		e = measure_setting(&x, setting, out);
	examined_close(&x);
	return e;
}

/* What holding these pairs still costs a group. */
static double cost(const struct measured *m, int setting, int group)
{
	return m->accuracy[INTACT][group] - m->accuracy[setting][group];
}

struct sums {
	int seeds, wins[GROUPS], losses[GROUPS]; /* seeds in which the group's own pairs cost it more, and less */
	double accuracy[SETTINGS][GROUPS];
	struct measured last;
};

static void add_run(const struct measured *m, struct sums *s)
{
	static const int own[GROUPS] = { [ECHO] = FAST_STILL, [RECALL] = SLOW_STILL };
	s->seeds++;
	s->last = *m;
	for (int g = 0; g < GROUPS; g++) {
		double more = cost(m, own[g], g) - cost(m, FAST_STILL + SLOW_STILL - own[g], g);
		s->wins[g] += more > 0;
		s->losses[g] += more < 0;
		for (int i = 0; i < SETTINGS; i++)
			s->accuracy[i][g] += m->accuracy[i][g];
	}
}

static void judge_group(const struct sums *s, int g, struct finding *out)
{
	static const char *const more[GROUPS] = { [ECHO] = "fast pairs cost more", [RECALL] = "slow pairs cost more" };
	struct finding one = { .p = NAN };
	finding_judge(&one, s->wins[g], s->losses[g], s->seeds - s->wins[g] - s->losses[g]);
	double mean[SETTINGS];
	for (int i = 0; i < SETTINGS; i++)
		mean[i] = 100 * s->accuracy[i][g] / s->seeds;
	finding_add(&one, "%s: %.1f %% intact, %.1f with the %d fast pairs still, %.1f with the %d slow ones still; "
		    "%s in %d of %d seeds, p=%.2g", groups[g], mean[INTACT], mean[FAST_STILL], s->last.fast,
		    mean[SLOW_STILL], s->last.pairs - s->last.fast, more[g], s->wins[g], s->seeds, one.p);
	finding_join(out, &one);
}

struct err claim_fast_pairs(const struct results *r, struct finding *out)
{
	struct sums sums = { 0 };
	int cells = cells_of(r, "rope");
	for (int g = 0; g < GROUPS && cells >= 0 && !out->reason; g++)
		out->reason = group_lacking(r, cells, groups[g]);
	if (out->reason) {
		out->verdict = CLAIM_UNMEASURED;
		return OK;
	}
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		struct measured m;
		if (r->grid->cell[i].group != cells || r->cell[i].status != CELL_FINISHED)
			continue;
		TRY(measure_run(r->cell[i].folder, &m));
		add_run(&m, &sums);
	}
	if (!sums.seeds) {
		out->verdict = CLAIM_UNMEASURED;
		out->reason = "the study has trained no rope";
		return OK;
	}
	for (int g = 0; g < GROUPS; g++)
		judge_group(&sums, g, out);
	const char *why = not_learned(r, cells);
	if (why) {
		out->verdict = CLAIM_UNTESTABLE;
		out->reason = why;
	}
	return *r->late;
}
