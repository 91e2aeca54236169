#include "tests/model_case.h"

#include "model/layout.h"
#include "model/position/scaling.h"

#include <stdio.h>
#include <string.h>

/* What can be chosen can be read back: a model's file names every option of its methods, so that whatever is taken by
 * its label has to be taken by its identity, with the same values. */

#define LABEL 128

static struct err encoding_taken(const struct method *m)
{
	struct model_options o = model_case_options(m);
	struct layout l;
	struct err e = layout_position(&o, &l);
	layout_free(&l);
	return e;
}

static struct err scaling_taken(const struct method *m)
{
	struct model_options o = small_options("rope");
	return scaling_check(m, &o, 4 * (double)o.train_length);
}

struct family {
	const char *what;
	family_at at;
	struct err (*taken)(const struct method *m);
	int seen;
};

static void reads_back(struct family *f, const char *label)
{
	struct method m, again;
	assert_ok(method_parse(f->what, f->at, label, &m));
	if (f->taken(&m).code)
		return;
	struct text_builder identity = { 0 }, second = { 0 };
	method_identity(&m, &identity);
	assert_ok(method_parse(f->what, f->at, identity.data, &again));
	struct err e = f->taken(&again);
	if (e.code)
		fail_msg("%s is taken, and %s is not: %s", label, identity.data, e.text);
	method_identity(&again, &second);
	assert_string_equal(second.data, identity.data);
	text_builder_free(&identity);
	text_builder_free(&second);
	f->seen++;
}

/* One of "a|b|c", by index; false past the last. */
static bool choice(const char *choices, int index, char word[LABEL])
{
	for (; index > 0 && choices; index--) {
		choices = strchr(choices, '|');
		choices = choices ? choices + 1 : NULL;
	}
	if (choices)
		snprintf(word, LABEL, "%.*s", (int)strcspn(choices, "|"), choices);
	return choices;
}

/* Each value of a choice or a switch, some of a number. */
static void try_option(struct family *f, const struct entry *e, const struct option *o)
{
	static const char *const number[] = { "2", "3", "4", "16", "0.5", "1" };
	char word[LABEL], label[2 * LABEL];
	struct method m;
	bool words = o->kind == OPTION_CHOICE || o->kind == OPTION_SWITCH;
	if (o->kind == OPTION_TEXT)
		return;
	for (int i = 0; words ? choice(o->choices ? o->choices : "off|on", i, word) : i < 6; i++) {
		snprintf(label, sizeof label, "%s(%s=%s)", e->name, o->name, words ? word : number[i]);
		if (!method_parse(f->what, f->at, label, &m).code)
			reads_back(f, label);
	}
}

static void walk(struct family *f)
{
	int methods = 0;
	for (const struct entry *e; (e = f->at(methods)); methods++) {
		reads_back(f, e->name);
		for (const struct option *o = e->options; o && o->name; o++)
			try_option(f, e, o);
	}
	assert_true(f->seen > 2 * methods);
}

static void test_encodings(void **state)
{
	(void)state;
	struct family f = { "encoding", position_at, encoding_taken, 0 };
	walk(&f);
	int before = f.seen;
	reads_back(&f, "deberta(buckets=8,max_distance=16)");
	reads_back(&f, "rope(learned=tempered,p_rope=0.5,rotary_dim=8)");
	assert_int_equal(f.seen, before + 2);
}

static void test_scalings(void **state)
{
	(void)state;
	struct family f = { "scaling", scaling_at, scaling_taken, 0 };
	walk(&f);
	int before = f.seen;
	reads_back(&f, "giraffe(kind=both,power=2,cut=8)");
	reads_back(&f, "abf(theta=9)+yarn(truncate=off)+dual_chunk(local=4)+logn");
	assert_int_equal(f.seen, before + 2);
}

/* Of options without effect, what stands at its default may be named. */
static void test_without_effect(void **state)
{
	(void)state;
	struct method m;
	assert_ok(method_parse("encoding", position_at, "deberta(max_distance=16)", &m));
	assert_err(encoding_taken(&m), ERR_USAGE, "has no effect without buckets");
	assert_ok(method_parse("encoding", position_at, "deberta(buckets=8,span=16)", &m));
	assert_err(encoding_taken(&m), ERR_USAGE, "has no effect on 8 buckets");
	assert_ok(method_parse("encoding", position_at, "deberta(terms=c2p,p2c=paper)", &m));
	assert_err(encoding_taken(&m), ERR_USAGE, "has no effect without that term");
	assert_ok(method_parse("scaling", scaling_at, "logn+giraffe(cut=8)", &m));
	assert_err(scaling_taken(&m), ERR_USAGE, "cut has no effect");
	assert_ok(method_parse("scaling", scaling_at, "giraffe(kind=truncation,power=2)", &m));
	assert_err(scaling_taken(&m), ERR_USAGE, "power has no effect");
	assert_ok(method_parse("scaling", scaling_at, "giraffe(kind=truncation,power=0.5)", &m));
	assert_ok(scaling_taken(&m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encodings),
		cmocka_unit_test(test_scalings),
		cmocka_unit_test(test_without_effect),
	};
	return cmocka_run_group_tests_name("identities", tests, NULL, NULL);
}
