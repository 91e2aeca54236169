#include "model/selfcheck.h"

#include "model/base/stb.h"
#include "model/base/threads.h"

#include <stdio.h>
#include <string.h>

#define SEQUENCES 2
#define LENGTH 150
#define DIRECTIONS 1
#define SEED 11
#define THREADS 3

/* How many values a switch or a choice has; 0 for other options. */
static int values_of(const struct option *o)
{
	int count = 1;
	if (o->kind == OPTION_SWITCH)
		return 2;
	if (o->kind != OPTION_CHOICE)
		return 0;
	for (const char *s = o->choices; *s; s++)
		count += *s == '|';
	return count;
}

/* The method at its defaults, then with each other value of each switch and choice; an stb_ds array. */
static struct method *variants(const struct entry *entry)
{
	struct method *all = NULL, initial = method_default(entry);
	arrput(all, initial);
	for (int i = 0; entry->options && entry->options[i].name; i++)
		for (int v = 0; v < values_of(&entry->options[i]); v++) {
			struct method other = initial;
			if (v == initial.value[i].integer)
				continue;
			method_set(&other, i, (union option_value){ .integer = v });
			arrput(all, other);
		}
	return all;
}

static bool reaches(const struct method *encoding, int T)
{
	struct model_options o = model_case_options(encoding);
	struct place p = place_of(&o);
	return !p.position->reach || !p.position->reach(&p, T - 1).code;
}

static struct selfcheck_case *add_scalings(struct selfcheck_case *all, const struct method *encoding)
{
	for (int i = 1; scaling_at(i); i++) {
		struct method *scaling = variants(scaling_at(i));
		if (scaling_of(scaling)->any_encoding || position_of(encoding)->rope_theta)
			for (int j = 0; j < arrlen(scaling); j++)
				arrput(all, ((struct selfcheck_case){ *encoding, scaling[j] }));
		arrfree(scaling);
	}
	return all;
}

/* Scalings are for lengths past the trained one: the first variant that goes there takes them. */
static const struct method *longest(const struct method *variant)
{
	for (int i = 0; i < arrlen(variant); i++)
		if (reaches(&variant[i], LENGTH))
			return &variant[i];
	return variant;
}

static struct selfcheck_case *add_encodings(struct selfcheck_case *all, bool scaled)
{
	for (int i = 0; position_at(i); i++) {
		struct method *variant = variants(position_at(i)), none = method_default(scaling_at(0));
		for (int j = 0; j < arrlen(variant) && !scaled; j++)
			arrput(all, ((struct selfcheck_case){ variant[j], none }));
		if (scaled)
			all = add_scalings(all, longest(variant));
		arrfree(variant);
	}
	return all;
}

struct selfcheck_case *selfcheck_cases(const struct method *encoding)
{
	struct selfcheck_case *all = NULL;
	if (!encoding)
		return add_encodings(add_encodings(all, false), true);
	arrput(all, ((struct selfcheck_case){ *encoding, method_default(scaling_at(0)) }));
	return add_scalings(all, encoding);
}

/* Logits before and after tokens change, [SEQUENCES][T][V] each. */
struct logits {
	real *before, *after;
	struct arena memory;
};

static void place_logits(struct logits *l, struct arena *a, int T)
{
	l->before = ARENA_TAKE(a, real, (size_t)SEQUENCES * (size_t)T * CASE_V);
	l->after = ARENA_TAKE(a, real, (size_t)SEQUENCES * (size_t)T * CASE_V);
}

static struct err open_logits(struct logits *l, int T)
{
	struct arena measure = { 0 };
	place_logits(l, &measure, T);
	TRY(arena_reserve(&l->memory, measure.used, "logits"));
	place_logits(l, &l->memory, T);
	return OK;
}

/* Changes the first sequence from ever earlier tokens on, beside the borders of blocks and elsewhere. */
static bool is_causal(struct model_case *c, const struct logits *l)
{
	static const int cuts[] = { LENGTH - 1, 129, 128, 127, 65, 64, 63, 17, 15, 1 };
	size_t row = (size_t)c->T * CASE_V;
	bool causal = true;
	transformer_forward(c->transformer, c->token, c->target, l->before);
	for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
		if (cuts[i] >= c->T)
			continue;
		size_t cut = (size_t)cuts[i] * CASE_V;
		for (int t = cuts[i]; t < c->T; t++)
			c->token[t] = (c->token[t] + 1 + t % 5) % CASE_V;
		transformer_forward(c->transformer, c->token, c->target, l->after);
		causal &= !memcmp(l->before, l->after, cut * sizeof(real));
		causal &= !memcmp(l->before + row, l->after + row, row * sizeof(real));
		/* Logits that nothing changes would prove nothing. */
		causal &= memcmp(l->before + cut, l->after + cut, (row - cut) * sizeof(real)) != 0;
	}
	return causal;
}

static struct err check_causal(struct model_case *c, struct selfcheck *found)
{
	struct logits l = { 0 };
	TRY(open_logits(&l, c->T));
	found->causal = is_causal(c, &l);
	arena_free(&l.memory);
	return OK;
}

static struct err open_case(const struct selfcheck_case *c, int T, struct model_case *m)
{
	struct model_options o = model_case_options(&c->encoding);
	return model_case_open(&o, &c->scaling, SEQUENCES, T, NULL, m);
}

static double loss_and_gradient(struct model_case *m)
{
	double sum = transformer_forward(m->transformer, m->token, m->target, NULL).nll_sum;
	transformer_backward(m->transformer, m->gradient);
	return sum;
}

/* `one` was opened with one thread. */
static struct err check_threads(const struct selfcheck_case *c, struct model_case *one, struct selfcheck *found)
{
	struct model_case several;
	double loss = loss_and_gradient(one);
	threads_start(THREADS);
	TRY(open_case(c, one->T, &several));
	found->same_bits = loss_and_gradient(&several) == loss &&
			   !memcmp(several.gradient, one->gradient, one->model.layout.size * sizeof(real));
	model_case_close(&several);
	return OK;
}

static void check_gradient(struct model_case *m, struct selfcheck *found)
{
	struct gradcheck g = gradcheck(&m->model, m->transformer, m->token, m->target, DIRECTIONS, SEED, m->gradient);
	found->tensors = g.tensors;
	found->error = g.error;
	snprintf(found->worst, sizeof found->worst, "%s", g.worst ? g.worst->name : "-");
}

struct err selfcheck(const struct selfcheck_case *c, struct selfcheck *found)
{
	struct model_case m;
	int threads = threads_count();
	int trained = (int)model_case_options(&c->encoding).train_length;
	*found = (struct selfcheck){ .T = reaches(&c->encoding, LENGTH) ? LENGTH : trained };
	/* The batch is too small to be worth sharing out. */
	threads_start(1);
	struct err e = open_case(c, found->T, &m);
	if (!e.code) {
		check_gradient(&m, found);
		e = check_threads(c, &m, found);
	}
	threads_start(1);
	if (!e.code)
		e = check_causal(&m, found);
	model_case_close(&m);
	threads_start(threads);
	return e;
}

const char *selfcheck_fault(const struct selfcheck *found)
{
	if (!(found->error < SELFCHECK_LIMIT))
		return "gradient";
	if (!found->causal)
		return "not causal";
	return found->same_bits ? NULL : "other bits with more threads";
}
