#include "model/base/stb.h"
#include "model/selfcheck.h"
#include "runs/command/command.h"
#include "runs/executable.h"
#include "runs/run/run_folder.h"
#include "runs/version.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* Differences of losses are too coarse in float, so the float program has the double one do the work. */

enum { TEXT, JSON };
struct check_options {
	int64_t format;
	struct method encoding;
};

/* "all", then the encodings. */
static const struct entry *all_or_encoding(int index)
{
	static const struct entry all = { .name = "all", .help = "every encoding" };
	return index ? position_at(index - 1) : &all;
}

static const struct option own_rows[] = {
	{ .name = "encoding", .kind = OPTION_METHOD, .initial = "all", .family = all_or_encoding,
	  .help = "the encoding to check, with the scalings that it takes",
	  .offset = offsetof(struct check_options, encoding) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|json",
	  .help = "how the findings are printed", .offset = offsetof(struct check_options, format) },
	{ 0 },
};

static void print_heading(void)
{
	printf("%-36s %6s %7s %8s  %-6s  %s\n", "encoding, scaling", "length", "tensors", "error", "", "worst tensor");
}

static void print_line(const struct selfcheck_case *c, const struct selfcheck *found)
{
	char label[160];
	const char *fault = selfcheck_fault(found);
	snprintf(label, sizeof label, "%s, %s", label_of(&c->encoding), label_of(&c->scaling));
	printf("%-36s %6d %7d %8.1e  %-6s  %s%s%s\n", label, found->T, found->tensors, found->error,
	       fault ? "FAILED" : "ok", found->worst, fault ? ": " : "", fault ? fault : "");
	fflush(stdout);
}

static json_t *case_json(const struct selfcheck_case *c, const struct selfcheck *found)
{
	json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:s, s:b, s:b, s:b}", "encoding", label_of(&c->encoding), "scaling",
			      label_of(&c->scaling), "length", found->T, "tensors", found->tensors, "worst",
			      found->worst, "causal", found->causal, "same_bits", found->same_bits, "ok",
			      !selfcheck_fault(found));
	BUG_IF(!o, "a finding is not UTF-8");
	/* JSON has no NaN. */
	json_object_set_new(o, "error", isfinite(found->error) ? json_real(found->error) : json_null());
	return o;
}

static void print_json(json_t *cases, int failed)
{
	json_t *o = json_pack("{s:o, s:f, s:o, s:i}", "version", version_json(), "limit", SELFCHECK_LIMIT, "cases",
			      cases, "failed", failed);
	BUG_IF(!o, "findings make no JSON");
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	putchar('\n');
	json_decref(o);
}

static struct err check_all(const struct selfcheck_case *all, bool text, json_t *cases, int *failed)
{
	if (text)
		print_heading();
	for (int i = 0; i < arrlen(all); i++) {
		struct selfcheck found;
		TRY(selfcheck(&all[i], &found));
		*failed += selfcheck_fault(&found) != NULL;
		if (text)
			print_line(&all[i], &found);
		else
			json_array_append_new(cases, case_json(&all[i], &found));
	}
	return OK;
}

static struct err check(const struct check_options *o)
{
	bool text = o->format == TEXT;
	bool every = o->encoding.entry == all_or_encoding(0);
	struct selfcheck_case *all = selfcheck_cases(every ? NULL : &o->encoding);
	json_t *cases = json_array();
	int failed = 0, count = (int)arrlen(all);
	struct err e = check_all(all, text, cases, &failed);
	arrfree(all);
	if (!e.code && text)
		printf("%d of %d are right: gradients within %g of differences, nothing sees what comes later, "
		       "the same bits for any number of threads\n", count - failed, count, SELFCHECK_LIMIT);
	if (!e.code && !text)
		print_json(json_incref(cases), failed);
	json_decref(cases);
	if (!e.code && failed)
		e = err_failed("Do not trust results of this program on this machine; report the lines above, and "
			       "what `ropewalk --version` prints.", "check: %d of %d failed", failed, count);
	return e;
}

/* The double program tells its errors itself: its exit code alone is passed on. */
static struct err have_double_check(struct invocation *in)
{
	int code;
	fprintf(stderr, "gradients are checked in double: running ropewalk-double\n");
	TRY(executable_run("ropewalk-double", in->argv, "Build it: `make build/ropewalk-double`.", &code));
	return (struct err){ .code = (enum err_code)code };
}

static struct err run(struct invocation *in)
{
	TRY(config_finish(&in->config, true));
	if (sizeof(real) < sizeof(double))
		return have_double_check(in);
	TRY(command_start(&in->config));
	return check(in->config.own);
}

const struct command command_check = {
	.name = "check",
	.words = "",
	.help = "check gradients, causality and bits of every encoding on this machine",
	.more = "Prints a line for each encoding and scaling: the greatest difference between its gradients and those\n"
		"found by moving the weights, and the tensor that has it. Takes some seconds and writes no file. Exit\n"
		"code 1 if one is wrong.\n"
		"Examples:\n"
		"  ropewalk check\n"
		"  ropewalk check --encoding='alibi(slopes=spread)'",
	.lists = LIST_OWN,
	.own = own_rows,
	.own_size = sizeof(struct check_options),
	.run = run,
};
