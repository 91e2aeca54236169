#include "model/base/blas.h"
#include "model/position/longrope_lists.h"
#include "model/position/zones.h"
#include "tests/scaling_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LongRoPE: the golden numbers, and the files that its lists come from. */

static char folder[FOLDER_PATH];

static int start(void **state)
{
	(void)state;
	return folder_make(folder);
}

static int finish(void **state)
{
	(void)state;
	return folder_remove(folder);
}

static const char *path_of(const char *name)
{
	static char path[FOLDER_PATH + 32];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(path_of(name), "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0 && !fclose(f));
}

/* "longrope(file=FOLDER/NAME" and more options. */
static const char *label_of(const char *name, const char *options)
{
	static char label[FOLDER_PATH + 128];
	snprintf(label, sizeof label, "longrope(file=%s%s)", path_of(name), options);
	return label;
}

static struct method named(const char *name, const char *options)
{
	return scaling_named(label_of(name, options));
}

/* ---- Golden files. ---- */

static void add_list(const char *name, const json_t *numbers, struct text_builder *b)
{
	text_add(b, "%s = ", name);
	for (size_t i = 0; i < json_array_size(numbers); i++)
		text_add(b, "%s%.17g", i ? ", " : "", json_at(numbers, i));
	text_add(b, "\n");
}

/* Writes the lists and asks for them. */
static struct answer ask_with(const json_t *settings, const json_t *shorts, const json_t *longs, const char *options)
{
	struct text_builder b = { 0 };
	add_list("short", shorts, &b);
	add_list("long", longs, &b);
	put("lists", b.data);
	text_builder_free(&b);
	double L = json_number(settings, "train_len");
	return ask(label_of("lists", options), json_number(settings, "base"),
			   (int)json_number(settings, "head_dim"), (int)L, number(settings, "seq_len", L));
}

static void check_case(const char *file, size_t i, const struct answer *a, const json_t *expected)
{
	assert_int_equal(json_array_size(json_object_get(expected, "inv_freq")), a->pairs);
	array_close(a->inv_freq, json_object_get(expected, "inv_freq"), 0, 1e-12, file, i, "the frequency");
	close_to(a->attention_factor, json_number(expected, "attention_factor"), 1e-12, file, i,
		 "the attention factor");
}

/* A factor of null is that of the longest length. */
static void golden_hugging_face(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_longrope_hf"), *one;
	size_t i;
	int other_lists = 0;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		double L = json_number(s, "train_len"), most = json_number(s, "max_position_embeddings");
		double given = number(s, "attention_factor", 0);
		char options[96];
		int n = snprintf(options, sizeof options, ",factor=%.17g", number(s, "factor", most / L));
		if (given > 0)
			snprintf(options + n, sizeof options - (size_t)n, ",attention_factor=%.17g", given);
		struct answer a = ask_with(s, json_object_get(s, "short_factor"), json_object_get(s, "long_factor"),
					   options);
		check_case("rope_longrope_hf", i, &a, e);
		other_lists += number(s, "seq_len", 0) > L;
	}
	assert_int_equal(i, 96);
	assert_int_equal(other_lists, 32);
	json_decref(root);
}

/* Microsoft's class has one list, and three temperatures: "su" is ours, that of yarn and a number are given. */
static void golden_microsoft(void **state)
{
	(void)state;
	json_t *root = golden_json("rope_longrope_microsoft"), *one;
	size_t i;
	json_array_foreach(json_object_get(root, "cases"), i, one) {
		const json_t *s = json_object_get(one, "settings"), *e = json_object_get(one, "expected");
		const json_t *list = json_object_get(s, "rescale_factors");
		double factor = json_number(s, "max_position_embeddings") / json_number(s, "train_len");
		const char *policy = json_string_value(json_object_get(s, "magnitude_policy"));
		char options[96];
		int n = snprintf(options, sizeof options, ",factor=%.17g", factor);
		if (strcmp(policy, "su"))
			snprintf(options + n, sizeof options - (size_t)n, ",attention_factor=%.17g",
				 strcmp(policy, "yarn") ? strtod(policy, NULL) : 0.1 * log(factor) + 1);
		struct answer a = ask_with(s, list, list, options);
		check_case("rope_longrope_microsoft", i, &a, e);
	}
	assert_int_equal(i, 72);
	json_decref(root);
}

/* ---- The rule. ---- */

static struct zones zones_of(const struct method *m, const struct model_options *o, int T, struct arena *memory)
{
	struct place place = place_of(o);
	struct arena measure = { 0 };
	struct zones zones;
	static double positions[256];
	assert_true(T <= 256);
	for (int t = 0; t < T; t++)
		positions[t] = t;
	place.T = T;
	place.positions = positions;
	scaling_zones(m, o, &place, &measure, &zones);
	assert_ok(arena_reserve(memory, measure.used, "zones"));
	scaling_zones(m, o, &place, memory, &zones);
	return zones;
}

static void list_and_temperature_by_length(void **state)
{
	(void)state;
	put("lists", "short = 1, 2\nlong = 4, 8\n");
	struct answer at = ask(label_of("lists", ""), 100, 4, 64, 64);
	assert_true(at.inv_freq[0] == 1 && at.inv_freq[1] == 0.05 && at.attention_factor == 1);
	struct answer past = ask(label_of("lists", ""), 100, 4, 64, 65);
	assert_true(past.inv_freq[0] == 0.25 && past.inv_freq[1] == 0.0125);
	assert_close(past.attention_factor, sqrt(1 + log(65.0 / 64) / log(64)), 1e-15);
	/* A factor that was given acts at every length, and does not choose the list. */
	at = ask(label_of("lists", ",factor=8"), 100, 4, 64, 10);
	assert_true(at.inv_freq[1] == 0.05);
	assert_close(at.attention_factor, sqrt(1.5), 1e-15);
	past = ask(label_of("lists", ",factor=1"), 100, 4, 64, 65);
	assert_true(past.inv_freq[1] == 0.0125 && past.attention_factor == 1);
	past = ask(label_of("lists", ",attention_factor=0.5"), 100, 4, 64, 65);
	assert_true(past.attention_factor == 0.5);
	/* Lists of no file are 1. */
	struct answer none = ask("none", 500, 32, 64, 64), plain = ask("longrope", 500, 32, 64, 64);
	same_bits(&plain, &none);
	plain = ask("longrope(attention_factor=1)", 500, 32, 64, 6400);
	same_bits(&plain, &none);
	struct method m = scaling_named("longrope"), given = scaling_named("longrope(attention_factor=2)");
	struct model_options o = rope_options(500, 32, 1);
	assert_ok(scaling_check(&m, &o, 1));
	assert_ok(scaling_check(&given, &o, 2));
	assert_err(scaling_check(&m, &o, 2), ERR_USAGE, "train_length");
}

/* Blocks take the list of the length that ends with them, and the temperature of the whole sequence. */
static void list_by_block(void **state)
{
	(void)state;
	put("lists", "short = 1, 2\nlong = 4, 8\n");
	struct model_options o = rope_options(100, 4, 64);
	struct method whole = named("lists", ""), blocks = named("lists", ",block=40");
	struct method of[] = { whole, blocks, scaling_by_query(&whole) };
	static const int count[] = { 1, 4, 150 }, switches[] = { 0, 1, 64 };
	assert_true(scaling_by_length(&whole));
	for (int i = 0; i < 3; i++) {
		struct arena memory;
		struct zones z = zones_of(&of[i], &o, 150, &memory);
		assert_int_equal(z.count, count[i]);
		for (int n = 0; n < z.count; n++) {
			assert_true(z.zone[n].inv_freq[0] == (n < switches[i] ? 1 : 0.25));
			assert_close(z.zone[n].attention_factor, sqrt(1 + log(150.0 / 64) / log(64)), 1e-15);
		}
		arena_free(&memory);
	}
}

/* ---- Files. ---- */

static void same_numbers(const char *one, const char *other)
{
	struct answer a = ask(label_of(one, ""), 500, 8, 64, 128);
	struct answer b = ask(label_of(other, ""), 500, 8, 64, 128);
	same_bits(&a, &b);
	struct answer within = ask(label_of(one, ""), 500, 8, 64, 64);
	b = ask(label_of(other, ""), 500, 8, 64, 64);
	same_bits(&within, &b);
	assert_true(a.inv_freq[3] != within.inv_freq[3]);
	/* The hash is of the numbers. */
	struct method m = named(one, ""), n = named(other, "");
	assert_string_equal(strrchr(m.value[1].text, '@'), strrchr(n.value[1].text, '@'));
}

static void forms(void **state)
{
	(void)state;
	put("plain", "short = 1, 1.05, 1.1, 1.15\nlong = 1.75, 3.1213, 4.8971, 7\n");
	put("spaced", "# found by search\n\n  long_factor=1.75,3.1213 , 4.8971,7.0\t\r\n"
		      " short-factor = 1,105e-2,1.1,1.15 # s");
	put("object.json", "{\"type\": \"longrope\", \"short_factor\": [1, 1.05, 1.1, 1.15], "
			   "\"long_factor\": [1.75, 3.1213, 4.8971, 7.0]}");
	put("config.json", "\n {\"rope_theta\": 10000.0, \"rope_scaling\": {\n"
			   "\"long_factor\": [1.75, 3.1213, 4.8971, 7],\n\"short_factor\": [1.0, 1.05, 1.1, 1.15]}}\n");
	put("new.json", "{\"rope_parameters\": {\"long_factor\": [1.75, 3.1213, 4.8971, 7],"
			"\"short_factor\": [1.0, 1.05, 1.1, 1.15]}}");
	same_numbers("plain", "spaced");
	same_numbers("plain", "object.json");
	same_numbers("plain", "config.json");
	same_numbers("plain", "new.json");
}

static void refused(const char *text, const char *part)
{
	struct method m;
	put("bad", text);
	assert_err(method_parse("scaling", scaling_at, label_of("bad", ""), &m), ERR_USAGE, part);
	assert_err(method_parse("scaling", scaling_at, label_of("bad", ""), &m), ERR_USAGE, path_of("bad"));
}

/* A path that cannot be read back from a label is refused before it gets into one. */
static void names_of_files(void **state)
{
	(void)state;
	static const char *const bad[] = { "a,b", "a)b", "a(b", "a#b", "a\nb" };
	const char *out;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_err(longrope_load(bad[i], &out), ERR_USAGE, "a label cannot hold");
	struct method m;
	put("plain(1)+b@c", "short = 1, 2\nlong = 4, 8\n");
	assert_ok(method_parse("scaling", scaling_at, label_of("plain(1)+b@c", ""), &m));
	struct text_builder b = { 0 };
	method_identity(&m, &b);
	assert_ok(method_parse("scaling", scaling_at, b.data, &m));
	text_builder_free(&b);
}

static void damaged_files(void **state)
{
	(void)state;
	struct method m;
	refused("", "no numbers of the list short");
	refused("short = 1, 2\n", "no numbers of the list long");
	refused("short = 1, 2\nlong =\n", "no numbers of the list long");
	refused("short = 1, 2\nlong = 1, 2, 3\n", "short has 2 numbers and long has 3");
	refused("short = 1, 2\nlong = 1, x\n", "line 2: long: 'x' is not a number");
	refused("short = 1,, 2\nlong = 1, 2\n", "line 1: short: '' is not a number");
	refused("short = 1, 2\nlong = 1, nan\n", "'nan' is not a number");
	refused("short = 1, 2\nlong = 1, 0\n", "long: number 2 is 0, out of range 1e-06 to 1e+09");
	refused("short = -1, 2\nlong = 1, 2\n", "short: number 1 is -1");
	refused("short = 1, 2\nlong = 1, 1e10\n", "long: number 2 is 1e+10");
	refused("short = 1\nshort = 2\nlong = 1", "line 2: short stands there twice");
	refused("shrot = 1\n", "'shrot' is neither short nor long");
	refused("1, 2\n", "'1, 2' is not NAME = NUMBERS");
	refused("{\"short_factor\": [1, 2], \"long_factor\": [1, 2]", "not JSON");
	refused("{\"short_factor\": [1, 2]}", "long_factor is missing");
	refused("{\"short_factor\": 1, \"long_factor\": [1]}", "short_factor is missing, or no list");
	refused("{\"short_factor\": [1, \"2\"], \"long_factor\": [1, 2]}", "short_factor: entry 2 is not a number");
	refused("{\"short_factor\": [1, null], \"long_factor\": [1, 2]}", "short_factor: entry 2 is not a number");
	refused("{\"short_factor\": [1, -2], \"long_factor\": [1, 2]}", "short: number 2 is -2");
	assert_err(method_parse("scaling", scaling_at, label_of("nowhere", ""), &m), ERR_USAGE, "nowhere");
	assert_err(method_parse("scaling", scaling_at, label_of("nowhere@01234567", ""), &m), ERR_USAGE, "nowhere");
	assert_int_equal(method_parse("scaling", scaling_at, label_of(".", ""), &m).code, ERR_USAGE);
	put("lists", "short = 1, 2\nlong = 4, 8\n");
	m = named("lists", "");
	struct model_options o = rope_options(500, 8, 64);
	assert_err(scaling_check(&m, &o, 64), ERR_USAGE, "lists have 2 numbers, and there are 4 pairs");
	o = rope_options(500, 4, 64);
	assert_ok(scaling_check(&m, &o, 64));
}

static void identity_of(const struct method *m, char text[2 * FOLDER_PATH])
{
	struct text_builder b = { 0 };
	method_identity(m, &b);
	snprintf(text, 2 * FOLDER_PATH, "%s", b.data);
	text_builder_free(&b);
}

static void label_again(const struct method *m, char text[2 * FOLDER_PATH])
{
	struct text_builder b = { 0 };
	method_label(m, &b);
	snprintf(text, 2 * FOLDER_PATH, "%s", b.data);
	text_builder_free(&b);
}

/* Other numbers in the same file are another method, by identity and by label; what was read before stays. */
static void content_is_identity(void **state)
{
	(void)state;
	char first[2 * FOLDER_PATH], second[2 * FOLDER_PATH], label[2 * FOLDER_PATH];
	put("lists", "short = 1, 2\nlong = 4, 8\n");
	struct method m = named("lists", ",factor=4"), again = named("lists", ",factor=4");
	assert_ptr_equal(m.value[1].text, again.value[1].text);
	identity_of(&m, first);
	label_again(&m, label);
	assert_non_null(strstr(label, "lists@"));
	struct method same = scaling_named(label);
	identity_of(&same, second);
	assert_string_equal(first, second);
	put("lists", "short = 1, 2\nlong = 4, 8.5\n");
	struct method changed = named("lists", ",factor=4");
	identity_of(&changed, second);
	assert_string_not_equal(first, second);
	assert_err(method_parse("scaling", scaling_at, label, &same), ERR_USAGE, "it has changed");
	/* The lists change places. */
	put("lists", "short = 4, 8\nlong = 1, 2\n");
	struct method swapped = named("lists", ",factor=4");
	identity_of(&swapped, second);
	assert_string_not_equal(first, second);
	assert_int_equal(unlink(path_of("lists")), 0);
	struct model_options o = rope_options(100, 4, 64);
	double old[2], new[2], attention_factor;
	assert_ok(scaling_check(&m, &o, 128));
	scaling_frequencies(&m, &o, 128, old, &attention_factor);
	scaling_frequencies(&changed, &o, 128, new, &attention_factor);
	assert_true(old[0] == 0.25 && old[1] == 0.1 / 8 && new[1] == 0.1 / 8.5);
	assert_err(method_parse("scaling", scaling_at, label, &same), ERR_USAGE, "lists");
}

/* A file whose name looks like one with a hash is that file. */
static void names_with_a_hash(void **state)
{
	(void)state;
	put("lists@01234567", "short = 1, 2\nlong = 3, 4\n");
	struct answer a = ask(label_of("lists@01234567", ""), 100, 4, 64, 128);
	assert_true(a.inv_freq[0] == 1 / 3.0);
	char label[2 * FOLDER_PATH];
	struct method m = named("lists@01234567", "");
	label_again(&m, label);
	a = ask(label, 100, 4, 64, 128);
	assert_true(a.inv_freq[0] == 1 / 3.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_hugging_face), cmocka_unit_test(golden_microsoft),
		cmocka_unit_test(list_and_temperature_by_length), cmocka_unit_test(list_by_block),
		cmocka_unit_test(forms), cmocka_unit_test(names_of_files),
		cmocka_unit_test(damaged_files), cmocka_unit_test(content_is_identity),
		cmocka_unit_test(names_with_a_hash),
	};
	struct err e = blas_start(1);
	if (e.code) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	return cmocka_run_group_tests_name("model longrope", tests, start, finish);
}
