#include "runs/claims/claims.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/claims/show.h"
#include "runs/command/command.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

enum { TEXT, MD, CSV, JSON };

struct own {
	const char *studies;
	int64_t format;
};

static const struct option own_rows[] = {
	{ .name = "studies", .kind = OPTION_TEXT, .initial = "runs/out", .unit = "folder",
	  .help = "where the studies' folders are", .offset = offsetof(struct own, studies) },
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|md|csv|json", .unit = "",
	  .help = "text; md: a Markdown table; csv; json", .offset = offsetof(struct own, format) },
	{ 0 },
};

static void print(const struct own *own, const struct tested *t, const struct claim_sources *from, bool full)
{
	struct text_builder b = { 0 };
	struct records records = { 0 };
	int count = (int)arrlen(t);
	text_add(&b, "%s", "");
	if (own->format == TEXT)
		claims_text(t, count, from, full, &b);
	else if (own->format == MD)
		claims_markdown(t, count, from, &b);
	else
		claims_records(t, count, from, &records);
	if (own->format == TEXT || own->format == MD)
		fputs(b.data, stdout);
	else
		records_print(&records, own->format == JSON);
	records_free(&records);
	text_builder_free(&b);
}

/* Those that are named, in the order given; all if none is. */
static struct err choose(const struct invocation *in, struct tested **t)
{
	const struct claim *c;
	int index;
	for (int i = 0; i < in->words; i++) {
		TRY(command_pick(in->command, in->word[i], &index));
		arrput(*t, ((struct tested){ .claim = claim_at(index) }));
	}
	for (int i = 0; !in->words && (c = claim_at(i)); i++)
		arrput(*t, ((struct tested){ .claim = c }));
	return OK;
}

static struct err test_all(const struct invocation *in, struct tested *t)
{
	const struct own *own = in->config.own;
	struct claim_sources from = { .folder = own->studies };
	struct err e = OK;
	for (int i = 0; i < arrlen(t) && !e.code; i++)
		e = claim_test(t[i].claim, &from, &t[i].finding);
	if (!e.code)
		print(own, t, &from, in->words > 0);
	claim_sources_free(&from);
	return e;
}

static struct err run(struct invocation *in)
{
	struct tested *t = NULL;
	static const char hint[] = "Leave it out, or name the folder that has the studies' folders.";
	TRY(config_finish(&in->config, true));
	const char *studies = ((const struct own *)in->config.own)->studies;
	if (!*studies)
		return err_usage(hint, "--studies: is empty");
	if (io_exists(studies) && !io_is_folder(studies))
		return err_usage(hint, "--studies: %.400s: is not a folder", studies);
	struct err e = choose(in, &t);
	if (!e.code)
		e = command_start(&in->config);
	if (!e.code)
		e = test_all(in, t);
	arrfree(t);
	return e;
}

const struct command command_claims = {
	.name = "claims",
	.words = "[CLAIM ...]",
	.help = "test the sentences people repeat about RoPE and its rivals",
	.more = "Each is measured anew: by computing, in a moment, or from the folder of a study. A verdict from\n"
		"a study takes six seeds and a sign test over them (two-sided, p below 0.05). Without CLAIM: all of\n"
		"them; with it also what exactly is tested. Nothing is written.\n"
		"Examples:\n"
		"  ropewalk claims\n"
		"  ropewalk claims ntk-ends norms-stay\n"
		"  ropewalk study claims && ropewalk claims --format=md",
	.least = 0,
	.most = INT_MAX,
	.word_at = claim_id_at,
	.lists = LIST_RUN | LIST_OWN,
	.without = "out|force|resume|save_every",
	.own = own_rows,
	.own_size = sizeof(struct own),
	.run = run,
};
