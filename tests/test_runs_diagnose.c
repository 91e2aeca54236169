#include "tests/program.h"
#include "tests/records_case.h"
#include "tests/support.h"

#include "model/base/text.h"
#include "runs/run/run_diagnose.h"
#include "runs/show/diagnose_tables.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `ropewalk diagnose` as users meet it, and its verdicts. */

#define SMALL "--width=16 --heads=2 --hidden=16 --layers=2 --batch=4 --train-length=32 "
#define FEW " --sequences=6"

static int start(void **state)
{
	(void)state;
	program_start();
	program_works("train " SMALL "--out=rope --steps=20 --lr=0.02 --warmup=5");
	program_works("train " SMALL "--out=alibi --steps=0 --encoding=alibi --layers=1");
	program_works("train " SMALL "--out=learned --steps=0 --encoding=learned");
	return 0;
}

static const char *field(const json_t *record, const char *name)
{
	const char *text = json_string_value(json_object_get(record, name));
	return text ? text : "";
}

static void check_head(const json_t *r, bool long_one)
{
	static const char *const shares[] = { "right", "before", "self", "bos", "alike", "rival", "filler", "rest" };
	double sum = 0;
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		char name[20];
		snprintf(name, sizeof name, "share_%s", shares[i]);
		sum += json_number(r, name);
	}
	assert_close(sum, 1, 1e-12);
	assert_close(json_number(r, "keys"), exp(json_number(r, "entropy")), 1e-12);
	assert_true(long_one ? json_number(r, "beyond") > 0 : json_number(r, "beyond") == 0);
	assert_true(json_number(r, "queries") > 0);
	assert_true((json_number(r, "layer") == 0) == (json_number(r, "sources") > 0));
	assert_true((json_number(r, "layer") == 0) == json_is_number(json_object_get(r, "link")));
}

static void test_records(void **state)
{
	(void)state;
	json_t *all = records("diagnose rope --scaling=none,ntk --multiples=1,4 --format=json" FEW);
	int heads = 0, pairs = 0, verdicts = 0;
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *r = json_array_get(all, i);
		bool long_one = json_number(r, "length") == 128;
		assert_true(long_one == (json_number(r, "multiple") == 4));
		assert_string_equal(field(r, "group"), "recall");
		if (!strcmp(field(r, "what"), "head")) {
			check_head(r, long_one);
			heads++;
		} else if (!strcmp(field(r, "what"), "pair")) {
			assert_true(long_one || json_number(r, "outside") == 0);
			pairs++;
		} else {
			assert_string_equal(field(r, "what"), "verdict");
			has(field(r, "verdict"), long_one ? "4x not learned: " : "1x not learned: ");
			verdicts++;
		}
	}
	assert_int_equal(heads, 2 * 2 * 4);
	assert_int_equal(pairs, 2 * 2 * 4);
	assert_int_equal(verdicts, 2 * 2);
	json_decref(all);
}

/* Its accuracy is what `ropewalk eval` finds. */
static void test_is_eval(void **state)
{
	(void)state;
	json_t *all = records("diagnose rope --multiples=2 --group=echo --format=json" FEW);
	json_t *rows = records("eval rope --scaling=none --multiples=1,2 --format=json" FEW);
	const json_t *verdict = json_array_get(all, json_array_size(all) - 1);
	int found = 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		if (strcmp(field(row, "group"), "echo"))
			continue;
		const char *name = json_number(row, "length") == 32 ? "accuracy_trained" : "accuracy";
		assert_true(json_equal(json_object_get(verdict, name), json_object_get(row, "accuracy")));
		found++;
	}
	assert_int_equal(found, 2);
	assert_true(json_number(verdict, "accuracy") > 0);
	json_decref(all);
	json_decref(rows);
	shell("rm rope/eval-*");
}

static void test_text(void **state)
{
	(void)state;
	char *text = output("diagnose rope --scaling=none,linear --multiples=1,2" FEW);
	has(text, "How to read this. ");
	has(text, "rope (rope, recall, seed 101), scaling none: where attention goes from the tokens of group recall");
	has(text, "6 sequences, eval_seed 1, train_length L = 32; recall(grow=all,pairs=8); stream report; ");
	has(text, ", scaling linear: ");
	assert_int_equal(count(text, "\n1.0  2x "), 2);
	assert_int_equal(count(text, "\n1x not learned: "), 2);
	has(text, " 0 of 4 pairs turn to angles never met");
	free(text);
	text = output("diagnose rope --format=md" FEW);
	has(text, "| 1.0  8x |");
	has(text, "```\n8x ");
	free(text);
	/* One layer without pairs: no link, and nothing is said of pairs. */
	text = output("diagnose alibi --multiples=2" FEW);
	has(text, "\n0.1  2x ");
	assert_int_equal(count(text, "of 4 pairs"), 0);
	assert_int_equal(count(text, "Link"), 0);
	free(text);
}

/* A model that was trained under a scaling is asked under that one. */
static void test_trained_scaling(void **state)
{
	(void)state;
	program_works("finetune rope --scaling=linear(factor=2) --length=64 --steps=1 --batch=2 --out=tuned "
		      "--multiples=1 --sequences=2");
	json_t *all = records("diagnose tuned --multiples=2 --format=json" FEW);
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *r = json_array_get(all, i);
		assert_string_equal(field(r, "scaling"), "linear(factor=2)");
		if (!strcmp(field(r, "what"), "pair"))
			assert_true(json_number(r, "angle") == json_number(r, "trained_angle"));
	}
	json_decref(all);
}

static void test_refused(void **state)
{
	(void)state;
	program_refuses("diagnose", "DIR", NULL);
	program_refuses("diagnose nowhere", "nowhere", NULL);
	program_refuses("diagnose alibi --scaling=ntk", "ntk at length 32", "rope");
	program_refuses("diagnose learned", "none at length 256", NULL);
	program_refuses("diagnose rope --group=ecoh", "no group 'ecoh'", "Did you mean --group=echo?");
	program_refuses("diagnose rope --multiples=0.3", "not a whole length", NULL);
	program_refuses("diagnose rope --multiple=2", "--multiple: not an option of diagnose", NULL);
	program_refuses("diagnose rope --format=latex", "latex", NULL);
	program_refuses("diagnose rope --kv=rotated", "--kv", NULL);
	/* Those within its table are answered. */
	free(output("diagnose learned --multiples=1" FEW));
}

static void test_threads(void **state)
{
	(void)state;
	shell("ls -lR --time-style=full-iso > ../before.txt");
	char *a = output("diagnose rope --scaling=none,yarn,rerope --format=csv --threads=1" FEW);
	char *b = output("diagnose rope --scaling=none,yarn,rerope --format=csv --threads=3" FEW);
	assert_string_equal(a, b);
	assert_int_equal(count(a, "\n"), 1 + 3 * 2 * (4 + 4 + 1));
	free(a);
	free(b);
	shell("ls -lR --time-style=full-iso | cmp - ../before.txt && rm ../before.txt");
}

/* ---- Verdicts, by hand: two layers of two heads ---- */

struct hand {
	struct diagnosed_head trained[4], now[4];
	struct diagnose_answer answer;
	struct diagnosis d;
};

/* Head 1.1 answers, 0.0 links. */
static void hand_open(struct hand *h)
{
	static const double right[] = { 0.1, 0.2, 0.6, 0.9 }, link[] = { 0.8, 0.7, 0, 0 };
	*h = (struct hand){ 0 };
	for (int i = 0; i < 4; i++) {
		h->trained[i] = (struct diagnosed_head){ .queries = 100, .sources = i < 2 ? 50 : 0, .link = link[i],
							 .entropy = 0.5, .outside = NAN };
		h->trained[i].share[KEY_RIGHT] = right[i];
		h->trained[i].share[KEY_FILLER] = 1 - right[i];
		h->now[i] = h->trained[i];
	}
	h->d = (struct diagnosis){ .layers = 2, .heads = 2, .head = h->now };
	h->d.result.cell[0] = (struct eval_cell){ .scored = 100, .accuracy = 1 };
	h->answer.trained = h->d;
	h->answer.trained.head = h->trained;
}

static void test_verdict(void **state)
{
	(void)state;
	struct hand h;
	hand_open(&h);
	struct verdict v = diagnose_verdict(&h.answer, &h.d);
	assert_true(v.scored && v.grade == VERDICT_HOLDS);
	assert_int_equal(v.answers, 3);
	assert_int_equal(v.links, 0);
	assert_true(v.match == VERDICT_KEPT && v.link == VERDICT_KEPT && !v.spread);
	h.d.result.cell[0].accuracy = 0.95;
	h.now[3].share[KEY_RIGHT] = 0.7;
	h.now[3].share[KEY_FILLER] = 0.12;
	h.now[3].share[KEY_ALIKE] = 0.18;
	h.now[3].entropy = 1.01;
	h.now[0].link = 0.39;
	v = diagnose_verdict(&h.answer, &h.d);
	assert_int_equal(v.grade, VERDICT_SLIPS);
	assert_int_equal(v.match, VERDICT_WEAKER);
	assert_int_equal(v.link, VERDICT_LOST);
	assert_int_equal(v.gainer, KEY_ALIKE);
	assert_close(v.gain, 0.18, 1e-12);
	assert_true(v.spread);
	h.d.result.cell[0].accuracy = 0.85;
	h.now[3].entropy = 0.9;
	h.now[0].link = 0.71;
	v = diagnose_verdict(&h.answer, &h.d);
	assert_int_equal(v.grade, VERDICT_FAILS);
	assert_int_equal(v.link, VERDICT_KEPT);
	assert_false(v.spread);
	/* No head answers by itself, and links are then not told. */
	h.trained[2].share[KEY_RIGHT] = h.trained[3].share[KEY_RIGHT] = 0.4;
	v = diagnose_verdict(&h.answer, &h.d);
	assert_true(v.answers == -1 && v.links == -1);
	/* One of the first layer answers: nothing stands below it. */
	h.trained[1].share[KEY_RIGHT] = 0.95;
	v = diagnose_verdict(&h.answer, &h.d);
	assert_true(v.answers == 1 && v.links == -1);
	h.answer.trained.result.cell[0].accuracy = 0.89;
	assert_int_equal(diagnose_verdict(&h.answer, &h.d).grade, VERDICT_UNLEARNED);
	h.d.result.cell[0].scored = 0;
	assert_false(diagnose_verdict(&h.answer, &h.d).scored);
}

/* What is said of them. */
static void test_words(void **state)
{
	(void)state;
	struct hand h;
	struct diagnosed_pair pair[5] = { [1] = { .outside = true }, [3] = { .outside = true } };
	double multiple[] = { 8 };
	struct config c = { 0 };
	struct examined x = { .config = &c };
	struct diagnose_question q = { .run = &x, .multiple = multiple, .scalings = 1, .lengths = 1 };
	struct text_builder b = { 0 };
	c.data.task = method_default(task_at(0));
	hand_open(&h);
	h.answer.at = &h.d;
	h.d.result.cell[0].accuracy = 0.35;
	h.now[0].link = 0.3;
	h.now[2].outside = 0.12;
	pair[4].outside = true;
	h.d.pair = pair;
	h.d.pairs = 5;
	h.d.outside = 3;
	diagnose_words(&q, &h.answer, 0, 0, &b);
	assert_string_equal(b.data,
			    "8x fails: 35.0 % of recall right (as trained 100 %). Link lost: head 0.0 gives 30 % of a "
			    "right token's attention to the one before it (80 %). Match kept: head 1.1 gives the right "
			    "token 90 % (90 %); as sharp: entropy 0.50 -> 0.50 nats, 1.65 -> 1.65 keys. 3 of 5 pairs "
			    "(1, 3-4) turn to angles never met in training, with this share of the variance of q.k: "
			    "1.0 12 %.");
	text_builder_free(&b);
	b = (struct text_builder){ 0 };
	h.now[0].link = 0.8;
	h.d.pairs = 0;
	diagnose_words(&q, &h.answer, 0, 0, &b);
	has(b.data, "Attention is much as trained: what fails is small everywhere, or behind it.");
	text_builder_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_is_eval),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_trained_scaling),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests_name("runs diagnose", tests, start, program_teardown);
}
