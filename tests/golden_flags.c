#include "tests/golden_flags.h"

#include "tests/support.h"

#include <stdio.h>

void flags_add(char flags[FLAGS_TEXT], const char *format, ...)
{
	size_t used = strlen(flags);
	va_list list;
	va_start(list, format);
	assert_true(vsnprintf(flags + used, FLAGS_TEXT - used, format, list) < (int)(FLAGS_TEXT - used));
	va_end(list);
}

/* "--flag=number" where the settings have one by that name. */
static void add_number(const json_t *settings, const char *name, const char *flag, char flags[FLAGS_TEXT])
{
	const json_t *value = json_object_get(settings, name);
	if (json_is_number(value))
		flags_add(flags, " --%s=%.17g", flag, json_number_value(value));
}

static double number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

/* attn_factor multiplies the attention factor that the scaling implies; ours is given as it is. */
static void add_yarn(const json_t *s, const json_t *e, char flags[FLAGS_TEXT])
{
	add_number(s, "factor", "factor", flags);
	add_number(s, "beta_fast", "beta-fast", flags);
	add_number(s, "beta_slow", "beta-slow", flags);
	if (json_object_get(s, "truncate"))
		flags_add(flags, " --truncate=%s", json_is_true(json_object_get(s, "truncate")) ? "on" : "off");
	add_number(s, "attention_factor", "attention-factor", flags);
	add_number(s, "mscale", "mscale", flags);
	add_number(s, "mscale_all_dim", "mscale-all-dim", flags);
	if (json_object_get(s, "attn_factor"))
		add_number(e, "attention_factor", "attention-factor", flags);
}

bool golden_flags(const json_t *s, const json_t *e, char flags[FLAGS_TEXT], int *length)
{
	const char *method = json_string_value(json_object_get(s, "method"));
	flags[0] = 0;
	flags_add(flags, "--encoding=rope");
	add_number(s, "base", "rope-theta", flags);
	add_number(s, "train_len", "train-length", flags);
	if (length)
		*length = (int)number(s, "seq_len");
	if (!strcmp(method, "none") || !strcmp(method, "linear") || !strcmp(method, "ntk")) {
		flags_add(flags, " --scaling=%s", method);
		add_number(s, "factor", "factor", flags);
	} else if (!strcmp(method, "rotary_pct")) {
		add_number(e, "rotary_dim", "rotary-dim", flags);
	} else if (!strcmp(method, "proportional")) { /* linear, with the share of pairs that turn */
		flags_add(flags, " --scaling=linear");
		add_number(s, "factor", "factor", flags);
		add_number(s, "partial_rotary_factor", "p-rope", flags);
	} else if (!strcmp(method, "dynamic_ntk")) { /* Hugging Face's factor is alpha */
		flags_add(flags, " --scaling=dynamic");
		add_number(s, "factor", "alpha", flags);
	} else if (!strcmp(method, "dynamic_ntk_alpha")) {
		flags_add(flags, " --scaling=dynamic");
		add_number(s, "alpha", "alpha", flags);
	} else if (!strcmp(method, "dynamic_linear")) {
		flags_add(flags, " --scaling=dynamic_linear");
	} else if (!strcmp(method, "ntk_by_parts_paper")) {
		flags_add(flags, " --scaling=ntk_by_parts --ramp=rotations");
		add_number(s, "factor", "factor", flags);
		add_number(s, "alpha", "beta-slow", flags);
		add_number(s, "beta", "beta-fast", flags);
	} else if (!strcmp(method, "llama3")) {
		flags_add(flags, " --scaling=llama3");
		add_number(s, "factor", "factor", flags);
		add_number(s, "low_freq_factor", "low-freq-factor", flags);
		add_number(s, "high_freq_factor", "high-freq-factor", flags);
	} else if (!strcmp(method, "dynamic_yarn")) {
		flags_add(flags, " --scaling=dynamic_yarn");
	} else if (!strcmp(method, "ntk_mixed")) {
		flags_add(flags, " --scaling=ntk_mixed");
		add_number(s, "k", "factor", flags);
		add_number(s, "b", "ntk-mixed-exponent", flags);
	} else {
		flags_add(flags, " --scaling=yarn");
		add_yarn(s, e, flags);
	}
	/* Of an odd number of components the pairs would break. */
	return !json_object_get(s, "extrapolation_factor") && (int)number(e, "rotary_dim") % 2 == 0;
}
