#include "model/base/blas.h"
#include "model/base/stb.h"
#include "tests/model_case.h"

#include <stdio.h>

/* The backward pass against directional differences: every tensor, every encoding. Lists are walked
 * here in small models, with every scaling, and by test_model_selfcheck.c; and here is what a list does not have.
 * In the double build the differences themselves are good to 1e-9; in float they can only catch gross faults. */

#ifdef ROPEWALK_DOUBLE
#define LIMIT SELFCHECK_LIMIT
#else
#define LIMIT 0.3
#endif

static void check_case(const struct model_options *o, const struct method *scaling, int B, int T,
		       const double *positions, const char *what)
{
	struct model_case c;
	case_open_method(&c, o, scaling, B, T, positions);
	struct gradcheck g = gradcheck(&c.model, c.transformer, c.token, c.target, 1, 11, c.gradient);
	if (!(g.error < LIMIT))
		fail_msg("%s, T = %d: %s is off by %.3g", what, T, g.worst->name, g.error);
	assert_int_equal(g.tensors, layout_count(&c.model.layout));
	case_close(&c);
}

static void check_encoding(struct method encoding, int B, int T)
{
	struct model_options o = small_options("nope");
	struct method none = method_default(scaling_at(0));
	o.encoding = encoding;
	check_case(&o, &none, B, T, NULL, encoding.entry->name);
}

/* As little as has the encoding in it, for many tokens. */
static struct model_options attention_alone(struct method encoding, int width, int heads)
{
	struct model_options o = sized_options("nope", width, heads);
	o.layers = 1;
	o.hidden = 0;
	o.encoding = encoding;
	return o;
}

/* Over a border of the blocks of keys: what is carried along a row, and gradients of keys and tables from two tiles. */
static void check_two_tiles(struct method encoding)
{
	struct model_options o = attention_alone(encoding, 4, 1);
	struct method none = method_default(scaling_at(0));
	check_case(&o, &none, 1, TILE_COLUMNS + 3, NULL, encoding.entry->name);
}

/* The encoding with options under which it takes any length. */
static struct method any_length(const struct entry *entry)
{
	struct method m = method_default(entry);
	int overflow = method_find(entry, "overflow");
	if (overflow >= 0)
		assert_ok(method_parse("encoding", position_at, "learned(overflow=clamp)", &m));
	return m;
}

static void test_every_encoding_at_the_trained_length(void **state)
{
	(void)state;
	int count = 0;
	for (; position_at(count); count++)
		check_encoding(any_length(position_at(count)), 3, 16);
	assert_true(count >= 6);
}

static void test_tiles_of_keys(void **state)
{
	(void)state;
	for (int i = 0; position_at(i); i++)
		check_two_tiles(any_length(position_at(i)));
}

/* Each value of each switch and choice of encodings and of the scalings that they take, past the trained length where
 * there is an answer. */
static void test_choices(void **state)
{
	enum { LENGTH = 41 };
	struct selfcheck_case *all = selfcheck_cases(NULL);
	(void)state;
	for (int i = 0; i < arrlen(all); i++) {
		struct model_options o = attention_alone(all[i].encoding, 16, 2);
		struct place p = place_of(&o);
		bool reaches = !p.position->reach || !p.position->reach(&p, LENGTH - 1).code;
		check_case(&o, &all[i].scaling, 1, reaches ? LENGTH : (int)o.train_length, NULL,
			   o.encoding.entry->name);
	}
	arrfree(all);
}

static void test_options_of_encodings(void **state)
{
	static const char *const label[] = { "t5(buckets=5,max_distance=40)", "sinusoidal(scale=0.5)",
					     "rope(theta=10000)", "rope(rotary_dim=6,layout=half)",
					     "rope(p_rope=0.5,learned=on)", "rope(nope_every=2,learned=tempered)",
					     "rope(rotary_dim=10,p_rope=0.7,layout=half,learned=tempered)" };
	struct method none = method_default(scaling_at(0));
	(void)state;
	for (size_t i = 0; i < sizeof label / sizeof label[0]; i++) {
		struct model_options o = small_options(label[i]);
		check_case(&o, &none, 2, 41, NULL, label[i]);
	}
}

/* Scalable softmax: over borders of blocks of queries and of keys, with rows that are not scored, beside a hook for
 * logits, with zones and queries scaled twice. */
static void test_scalable_softmax(void **state)
{
	static const struct {
		const char *encoding, *scaling;
		int T;
	} cases[] = { { "nope", "none", 9 },		    { "rope", "none", 100 },
		      { "alibi", "none", 70 },		    { "rope", "dynamic(block=24)", 50 },
		      { "rope(learned=tempered)", "none", 70 }, { "rope(nope_every=2,layout=half)", "yarn", 70 } };
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct model_options o = small_options(cases[i].encoding);
		struct method scaling = scaling_named(cases[i].scaling);
		o.ssmax = 1;
		check_case(&o, &scaling, 2, cases[i].T, NULL, "ssmax");
	}
	struct model_options o = sized_options("rope", 4, 1);
	struct method clipped = scaling_named("rerope(w=5)"), none = scaling_named("none");
	o.ssmax = 1;
	o.layers = 1;
	o.hidden = 0;
	check_case(&o, &none, 1, TILE_COLUMNS + 3, NULL, "ssmax, two tiles");
	check_case(&o, &clipped, 2, 40, NULL, "ssmax, two zones");
}

static void test_scalings_with_several_zones(void **state)
{
	struct model_options o = small_options("rope");
	struct method blocks;
	(void)state;
	assert_ok(method_parse("scaling", scaling_at, "dynamic(block=24)", &blocks));
	check_case(&o, &blocks, 2, 150, NULL, "dynamic(block=24)");
	struct method clipped = scaling_named("rerope(w=5)");
	check_case(&o, &clipped, 2, 150, NULL, "two zones");
}

/* What is carried along a row, summed along a sequence, added to values or counted from a block's centre, over a
 * border of the blocks of queries, where rows begin at other keys than the first. */
static void test_encodings_in_a_window(void **state)
{
	struct method window = scaling_named("window(size=20)");
	(void)state;
	for (int i = 0; position_at(i); i++) {
		const struct position *p = (const struct position *)position_at(i);
		struct model_options o = attention_alone(any_length(&p->entry), 8, 2);
		if (p->gate || p->values || p->carry_reals || p->centred)
			check_case(&o, &window, 2, 130, NULL, p->entry.name);
	}
}

static void test_strange_positions(void **state)
{
	double positions[70];
	struct method none = method_default(scaling_at(0));
	(void)state;
	/* They repeat, skip and are not whole. */
	for (int t = 0; t < 70; t++)
		positions[t] = t / 3 * 2 + (t % 3 == 2) * 0.75;
	for (int i = 0; position_at(i); i++) {
		struct model_options o = attention_alone(any_length(position_at(i)), 8, 2);
		check_case(&o, &none, 1, 70, positions, o.encoding.entry->name);
	}
}

static void test_shapes(void **state)
{
	struct model_options o = small_options("rope");
	struct method none = method_default(scaling_at(0));
	(void)state;
	o.tied = 1;
	check_case(&o, &none, 3, 9, NULL, "tied");
	o.hidden = 0;
	check_case(&o, &none, 3, 9, NULL, "tied, no MLP");
	o.tied = 0;
	check_case(&o, &none, 1, 7, NULL, "no MLP");
	o = small_options("rope");
	o.width = 30;
	o.heads = 3;
	o.hidden = 17;
	o.layers = 1;
	check_case(&o, &none, 5, 67, NULL, "odd sizes");
	o.width = 2;
	o.heads = 1;
	check_case(&o, &none, 2, 1, NULL, "one token");
	/* The gradients of such matrices are made in parts. */
	o = small_options("rope");
	o.hidden = 140;
	o.layers = 1;
	check_case(&o, &none, 1, 5, NULL, "more than 256 rows of a matrix");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_encoding_at_the_trained_length),
		cmocka_unit_test(test_tiles_of_keys),
		cmocka_unit_test(test_choices), cmocka_unit_test(test_options_of_encodings),
		cmocka_unit_test(test_scalable_softmax),
		cmocka_unit_test(test_scalings_with_several_zones),
		cmocka_unit_test(test_encodings_in_a_window),
		cmocka_unit_test(test_strange_positions), cmocka_unit_test(test_shapes),
	};
	/* The batches are too small to share out. */
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model gradients", tests, NULL, NULL);
}
