#include "runs/claims/show.h"

#include "model/base/stb.h"
#include "runs/options.h"
#include "runs/show/sheet.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <string.h>

/* "; run `ropewalk study claims` (about 20 min)" */
static void add_remedy(const char *study, const struct claim_sources *from, struct text_builder *b)
{
	double minutes = claim_study_minutes(study);
	text_add(b, "; run `%s`", claim_study_command(from, study));
	if (minutes > 0)
		text_add(b, " (about %g min on two cores)", minutes);
}

/* What a claim that has no verdict lacks, or how it got it. */
static const char *verdict_text(const struct tested *t, const struct claim_sources *from)
{
	struct text_builder b = { 0 };
	const struct finding *f = &t->finding;
	text_add(&b, "%s", claim_verdict_name(f->verdict));
	if (f->verdict == CLAIM_HOLDS || f->verdict == CLAIM_FAILS)
		text_add(&b, " here");
	if (f->verdict == CLAIM_UNTESTABLE)
		text_add(&b, " at this scale");
	if (f->reason)
		text_add(&b, ": %s", f->reason);
	if (f->verdict == CLAIM_UNMEASURED)
		add_remedy(t->claim->study, from, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

#define INDENT 4

/* "  name: text", cut at spaces. */
static void add_line(struct text_builder *b, const char *name, const char *text)
{
	struct text_builder whole = { 0 };
	if (!text)
		return;
	text_add(&whole, "  %s%s%s", name, *name ? ": " : "", text);
	const char **line = wrap(whole.data, PAGE_WIDTH, " ", INDENT);
	for (int i = 0; i < arrlen(line); i++)
		text_add(b, "%s\n", line[i]);
	arrfree(line);
	text_builder_free(&whole);
}

/* Each line of numbers by itself. */
static void add_measured(struct text_builder *b, const char *measured)
{
	for (const char *at = measured; at && *at;) {
		int length = (int)strcspn(at, "\n");
		struct text_builder line = { 0 };
		text_add(&line, "%.*s", length, at);
		add_line(b, "measured", line.data);
		text_builder_free(&line);
		at += length + (at[length] == '\n');
	}
}

void claims_text(const struct tested *t, int count, const struct claim_sources *from, bool full,
		 struct text_builder *b)
{
	for (int i = 0; i < count; i++) {
		const struct claim *c = t[i].claim;
		text_add(b, "%s%s\n  \"%s\"\n", i ? "\n" : "", c->id, c->words);
		add_line(b, "", verdict_text(&t[i], from));
		if (full) {
			add_line(b, "tested", c->statement);
			add_line(b, "source", c->source);
		}
		add_measured(b, t[i].finding.measured);
		if (full || t[i].finding.verdict != CLAIM_UNMEASURED)
			add_line(b, "again", claim_command(c, from));
	}
}

/* Lines as one, "; " between; kept, NULL for none. */
static const char *one_line(const char *lines)
{
	struct text_builder b = { 0 };
	for (const char *at = lines; at && *at; at++)
		text_add(&b, *at == '\n' ? "; " : "%c", *at);
	const char *kept = b.data ? text_keep(b.data) : NULL;
	text_builder_free(&b);
	return kept;
}

static void add_cell(struct text_builder *b, const char *text)
{
	text_add(b, "| ");
	markdown_escape(text ? text : "", b);
	text_add(b, " ");
}

void claims_markdown(const struct tested *t, int count, const struct claim_sources *from, struct text_builder *b)
{
	text_add(b, "| claim | sentence | measured | verdict | again |\n|---|---|---|---|---|\n");
	for (int i = 0; i < count; i++) {
		text_add(b, "| `%s` ", t[i].claim->id);
		add_cell(b, t[i].claim->words);
		add_cell(b, one_line(t[i].finding.measured));
		add_cell(b, verdict_text(&t[i], from));
		text_add(b, "| `%s` |\n", claim_command(t[i].claim, from));
	}
}

static void add_count(struct records *to, const char *column, int count, bool there)
{
	if (there)
		record_integer(to, column, count);
	else
		record_text(to, column, NULL);
}

void claims_records(const struct tested *t, int count, const struct claim_sources *from, struct records *to)
{
	for (int i = 0; i < count; i++) {
		const struct claim *c = t[i].claim;
		const struct finding *f = &t[i].finding;
		records_begin(to);
		record_text(to, "claim", c->id);
		record_text(to, "sentence", c->words);
		record_text(to, "statement", c->statement);
		record_text(to, "source", c->source);
		record_text(to, "study", c->study);
		record_text(to, "verdict", claim_verdict_name(f->verdict));
		record_text(to, "reason", f->reason);
		record_text(to, "measured", one_line(f->measured));
		add_count(to, "seeds", f->seeds, f->seeds > 0);
		add_count(to, "wins", f->wins, f->seeds > 0);
		record_number(to, "p", f->seeds ? f->p : (double)NAN);
		record_text(to, "again", claim_command(c, from));
	}
}
