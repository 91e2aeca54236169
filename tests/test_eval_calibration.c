#include "eval/calibration.h"
#include "model/base/blas.h"
#include "model/base/threads.h"
#include "model/positions.h"
#include "tests/eval_case.h"

/* One temperature a model and length: the best on stream tune, used on stream report. */

static void shrink(struct setup *s, const char *name)
{
	const struct parameter *p = layout_find(&s->model.layout, name);
	for (size_t i = 0; i < p->size; i++)
		s->model.value[p->offset + i] *= (real)0.1;
}

/* A model that gives values, which queries ask for, more than the rest, `scale` times as sure of itself. */
static void know_something(struct setup *s, double scale)
{
	const struct parameter *embedding = layout_find(&s->model.layout, "model.embed_tokens.weight");
	const struct parameter *head = layout_find(&s->model.layout, "lm_head.weight");
	shrink(s, "model.layers.0.self_attn.o_proj.weight");
	shrink(s, "model.layers.0.mlp.down_proj.weight");
	const struct parameter *norm = layout_find(&s->model.layout, "model.norm.weight");
	int V = s->model.V, C = (int)s->model.options.width;
	for (int c = 0; c < C; c++)
		s->model.value[norm->offset + (size_t)c] = c ? (real)0.3 : 1;
	for (int v = 0; v < V; v++) {
		real *row = s->model.value + head->offset + (size_t)v * (size_t)C;
		s->model.value[embedding->offset + (size_t)v * (size_t)C] = 4;
		row[0] = v >= 34 && v < 66 ? 1 : 0;
		for (int c = 0; c < C; c++)
			row[c] *= (real)scale;
	}
}

struct cooled {
	double temperature, nll[2];
	int64_t scored[2];
};

static void add_cooled(void *data, const struct sequence *s, int document, int t, double nll, bool correct,
		       const real *logits)
{
	(void)document, (void)nll, (void)correct;
	struct cooled *c = data;
	double sum = 0;
	for (int v = 0; v < 99; v++)
		sum += exp(((double)logits[v] - (double)logits[s->target[t]]) / c->temperature);
	c->nll[0] += log(sum);
	c->scored[0]++;
	c->nll[1] += s->group[t] == 0 ? log(sum) : 0;
	c->scored[1] += s->group[t] == 0;
}

static struct cooled cooled(const struct setup *s, const char *protocol, enum stream stream, double temperature)
{
	struct cooled c = { .temperature = temperature };
	naively(s, protocol, SPAN - 20, stream, SEQUENCES, add_cooled, &c);
	return c;
}

/* The temperature is the best on stream tune, and what is reported is of stream report under it. `scale` makes the
 * model more certain or less. */
static void calibrated(const char *protocol, double scale)
{
	struct setup s;
	struct calibration c;
	setup_open(&s, protocol);
	know_something(&s, scale);
	struct eval_request request = request_of(&s, SPAN - 20);
	assert_ok(calibration_run(&request, NULL, NULL, &c));
	double T = c.temperature, best = cooled(&s, protocol, STREAM_TUNE, T).nll[0];
	if (T < 0.2 || T > 100)
		fail_msg("%s, %g: the temperature is %g", protocol, scale, T);
	assert_true(best <= cooled(&s, protocol, STREAM_TUNE, 1.02 * T).nll[0]);
	assert_true(best <= cooled(&s, protocol, STREAM_TUNE, T / 1.02).nll[0]);
	struct cooled reported = cooled(&s, protocol, STREAM_REPORT, T);
	assert_int_equal(c.cell[ALL].scored, reported.scored[0]);
	assert_close(c.cell[ALL].nll, reported.nll[0] / (double)reported.scored[0], TOLERANCE);
	assert_close(c.cell[RECALL].nll, reported.nll[1] / (double)reported.scored[1], TOLERANCE);
	assert_close(c.cell[RECALL].perplexity, exp(c.cell[RECALL].nll), 1e-12);
	model_close(&s.model);
}

static void test_calibration(void **state)
{
	(void)state;
	calibrated("all", 1);
	calibrated("all", 8);
	calibrated("sliding(stride=9)", 2);
	calibrated("last(tokens=12)", 4);
}

static void test_calibration_refusals(void **state)
{
	(void)state;
	struct setup s;
	setup_open(&s, "all");
	struct eval_request request = request_of(&s, SPAN);
	request.kv = EVAL_KV_ROTATED;
	assert_err(calibration_check(&request), ERR_USAGE, "calibrate: not token by token");
	request.kv = EVAL_KV_OFF;
	request.tune = true;
	assert_err(calibration_check(&request), ERR_USAGE, "chosen on stream tune");
	request.tune = false;
	s.model.options.positions = POSITIONS_RANDOMIZED;
	s.model.options.positions_most = 500;
	assert_err(calibration_check(&request), ERR_USAGE, "positions are the sequence's own");
	model_close(&s.model);
}

static void test_threads(void **state)
{
	(void)state;
	struct setup s;
	struct calibration c[2];
	setup_open(&s, "sliding(stride=1,span=270)");
	struct eval_request request = request_of(&s, SPAN);
	request.sequences = 2;
	for (int k = 0; k < 2; k++) {
		threads_start(k ? 3 : 1);
		assert_ok(calibration_run(&request, NULL, NULL, &c[k]));
	}
	threads_start(1);
	assert_memory_equal(&c[0], &c[1], sizeof c[0]);
	model_close(&s.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calibration),
		cmocka_unit_test(test_calibration_refusals),
		cmocka_unit_test(test_threads),
	};
	if (blas_start(1).code)
		return 1;
	return cmocka_run_group_tests_name("calibration", tests, NULL, NULL);
}
