#include "runs/show/diagnose_tables.h"

#include "model/base/stb.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/show/parts_tables.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum column {
	COLUMN_RIGHT, COLUMN_BEFORE, COLUMN_ALIKE, COLUMN_RIVAL, COLUMN_FILLER, COLUMN_BOS, COLUMN_OTHER, COLUMN_BEYOND,
	COLUMN_LINK, COLUMN_NATS, COLUMN_SPREAD, COLUMNS
};
static const char *const columns[COLUMNS] = { "right", "before", "alike", "rival", "filler", "BOS", "other",
					      "beyond", "link", "nats", "sd/peak" };

/* In columns of records, in sentences, and where it counts in a sheet. */
static const struct {
	const char *name, *words;
	enum column column;
} classes[KEY_CLASSES] = {
	[KEY_RIGHT] = { "right", "the right token", COLUMN_RIGHT },
	[KEY_BEFORE] = { "before", "the token before the right one", COLUMN_BEFORE },
	[KEY_SELF] = { "self", "the query itself", COLUMN_OTHER },
	[KEY_BOS] = { "bos", "BOS", COLUMN_BOS },
	[KEY_ALIKE] = { "alike", "look-alikes", COLUMN_ALIKE },
	[KEY_RIVAL] = { "rival", "what is right for other queries", COLUMN_RIVAL },
	[KEY_FILLER] = { "filler", "filler", COLUMN_FILLER },
	[KEY_REST] = { "rest", "other tokens", COLUMN_OTHER },
};

static const char *group_of(const struct diagnose_question *q)
{
	return task_of(&q->run->config->data.task)->groups[q->group];
}

/* "1.0": layer and head. */
static const char *head_name(const struct diagnosis *d, int head, char text[SHEET_TEXT])
{
	snprintf(text, SHEET_TEXT, "%d.%d", head / d->heads, head % d->heads);
	return text;
}

/* ---- the sheet ---- */

static void fill_share(double share, struct sheet_cell *out)
{
	snprintf(out->line[0], SHEET_TEXT, "%.1f", 100 * share);
}

static void fill_head(const struct diagnosed_head *h, struct sheet_cell *cell)
{
	if (!h->queries) {
		snprintf(cell[0].line[0], SHEET_TEXT, "n/a");
		return;
	}
	double share[COLUMNS] = { 0 };
	for (int c = 0; c < KEY_CLASSES; c++)
		share[classes[c].column] += h->share[c];
	for (int c = 0; c < COLUMN_BEYOND; c++)
		fill_share(share[c], &cell[c]);
	cell[COLUMN_RIGHT].heat = 1 - h->share[KEY_RIGHT];
	fill_share(h->beyond, &cell[COLUMN_BEYOND]);
	if (h->sources) {
		fill_share(h->link, &cell[COLUMN_LINK]);
		cell[COLUMN_LINK].heat = 1 - h->link;
	} else {
		snprintf(cell[COLUMN_LINK].line[0], SHEET_TEXT, "-");
	}
	snprintf(cell[COLUMN_NATS].line[0], SHEET_TEXT, "%.2f", h->entropy);
	/* No wider than the other columns. */
	snprintf(cell[COLUMN_SPREAD].line[0], SHEET_TEXT, "%.*f/%.*f", h->deviation < 10, h->deviation, h->peak < 10,
		 h->peak);
}

static const char *title_of(const struct diagnose_question *q, int scaling)
{
	struct text_builder b = { 0 };
	examined_name(q->run, &b);
	text_add(&b, ", scaling %s: where attention goes from the tokens of group %s, in %%\n",
		 label_of(&q->scaling[scaling]), group_of(q));
	examined_protocol(q->run, &b);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static const char *row_label(const struct diagnose_question *q, const struct diagnosis *d, int head, int length)
{
	char name[SHEET_TEXT], number[NUMBER_TEXT], label[SHEET_TEXT + NUMBER_TEXT + 8];
	snprintf(label, sizeof label, "%s  %sx", head_name(d, head, name),
		 number_to_text(q->multiple[length], number));
	return text_keep(label);
}

void diagnose_sheet(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, struct sheet *out)
{
	const struct diagnosis *first = diagnose_at(q, a, scaling, 0);
	*out = (struct sheet){ .title = title_of(q, scaling) };
	for (int c = 0; c < COLUMNS; c++)
		arrput(out->column, columns[c]);
	for (int i = 0; i < first->layers * first->heads; i++)
		for (int l = 0; l < q->lengths; l++) {
			struct sheet_row *row = sheet_add(out, row_label(q, first, i, l));
			row->ruled = i > 0 && l == 0;
			fill_head(&diagnose_at(q, a, scaling, l)->head[i], row->cell);
		}
}

/* ---- in words ---- */

/* "0, 3-5" */
static void add_outside(const struct diagnosis *d, struct text_builder *b)
{
	const char *between = "";
	for (int m = 0, last; m < d->pairs; m = last + 1) {
		for (last = m; last + 1 < d->pairs && d->pair[m].outside && d->pair[last + 1].outside;)
			last++;
		if (!d->pair[m].outside)
			continue;
		text_add(b, last > m ? "%s%d-%d" : "%s%d", between, m, last);
		between = ", ";
	}
}

static void add_pairs(const struct diagnosis *d, struct text_builder *b)
{
	char name[SHEET_TEXT];
	const char *between = ", with this share of the variance of q.k: ";
	if (!d->pairs)
		return;
	text_add(b, " %d of %d pairs", d->outside, d->pairs);
	if (d->outside) {
		text_add(b, " (");
		add_outside(d, b);
		text_add(b, ")");
	}
	text_add(b, " turn to angles never met in training");
	for (int i = 0; i < d->layers * d->heads && d->outside; i++) {
		if (isnan(d->head[i].outside))
			continue;
		text_add(b, "%s%s %.0f %%", between, head_name(d, i, name), 100 * d->head[i].outside);
		between = ", ";
	}
	text_add(b, ".");
}

static const char *const shares[] = {
	[VERDICT_KEPT] = "kept", [VERDICT_WEAKER] = "weaker", [VERDICT_LOST] = "lost"
};

static void add_link(const struct diagnose_answer *a, const struct diagnosis *d, const struct verdict *v,
		     struct text_builder *b)
{
	char name[SHEET_TEXT];
	if (v->links < 0)
		return;
	text_add(b, " Link %s: head %s gives %.0f %% of a right token's attention to the one before it (%.0f %%).",
		 shares[v->link], head_name(d, v->links, name), 100 * d->head[v->links].link,
		 100 * a->trained.head[v->links].link);
}

static void add_match(const struct diagnose_answer *a, const struct diagnosis *d, const struct verdict *v,
		      struct text_builder *b)
{
	char name[SHEET_TEXT], now[SHORT_TEXT], then[SHORT_TEXT];
	if (v->answers < 0) {
		text_add(b, " No head gives the right token %.0f %%, even as trained: it is read in another way.",
			 100 * VERDICT_ROLE);
		return;
	}
	const struct diagnosed_head *h = &d->head[v->answers], *t = &a->trained.head[v->answers];
	text_add(b, " Match %s: head %s gives the right token %.0f %% (%.0f %%)", shares[v->match],
		 head_name(d, v->answers, name), 100 * h->share[KEY_RIGHT], 100 * t->share[KEY_RIGHT]);
	if (v->match != VERDICT_KEPT)
		text_add(b, ", most of the loss to %s (%+.0f points)", classes[v->gainer].words, 100 * v->gain);
	text_add(b, "; %s: entropy %.2f -> %.2f nats, %s -> %s keys.",
		 v->spread ? "spread thin" : v->match == VERDICT_LOST ? "sure of the wrong ones" : "as sharp",
		 t->entropy, h->entropy, perplexity_text(exp(t->entropy), then), perplexity_text(exp(h->entropy), now));
}

static const char *const grades[] = {
	[VERDICT_UNLEARNED] = "not learned", [VERDICT_HOLDS] = "holds", [VERDICT_SLIPS] = "slips",
	[VERDICT_FAILS] = "fails"
};

void diagnose_words(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, int length,
		    struct text_builder *b)
{
	const struct diagnosis *d = diagnose_at(q, a, scaling, length);
	struct verdict v = diagnose_verdict(a, d);
	char number[NUMBER_TEXT], now[SHORT_TEXT], then[SHORT_TEXT];
	text_add(b, "%sx", number_to_text(q->multiple[length], number));
	if (!v.scored) {
		text_add(b, ": no token of group %s is scored.", group_of(q));
		return;
	}
	text_add(b, " %s: %s %% of %s right (as trained %s %%).", grades[v.grade],
		 accuracy_text(v.cell->accuracy, now), group_of(q), accuracy_text(v.trained_cell->accuracy, then));
	add_link(a, d, &v, b);
	add_match(a, d, &v, b);
	if (v.grade > VERDICT_HOLDS && v.answers >= 0 && v.link == VERDICT_KEPT && v.match == VERDICT_KEPT)
		text_add(b, " Attention is much as trained: what fails is small everywhere, or behind it.");
	add_pairs(d, b);
}

static const char *const reading[] = {
	"How to read this. Rows are layer.head; numbers are means over the tokens that are asked for an answer "
	"(queries), each of which has its evidence at the token that is right for it. right, before (the token just "
	"before the right one), alike (look-alikes: the same token as the right one, or as the query, such as "
	"earlier queries of the same key), rival (right for another query), filler, BOS (token 0) and other (the "
	"query itself, and the rest) are shares of attention that add up to 100 %. beyond: what of all this lies "
	"train_length or more tokens back.",
	"link: what the right tokens themselves give the token before them. A value knows its key by the link, made "
	"in a lower layer, and a query finds the value by it, in a higher one (the match): so look for right in the "
	"last layers and for link below; the last layer has none, as nobody reads what its right tokens gather.",
	("nats: entropy of attention; exp of it is the number of keys it is as if spread over. sd/peak: standard "
	 "deviation of a row's logits over the keys it sees / their maximum less their mean."),
};

static void add_thresholds(struct text_builder *lines)
{
	struct text_builder b = { 0 };
	text_add(&b, "The verdicts beneath compare with the model as trained, in brackets (1x, its own scaling). It "
		 "slips where accuracy is at least %g point lower, fails from %g points on; not learned: it had less "
		 "than %g %% as trained. ", 100 * VERDICT_SLIP, 100 * VERDICT_FAIL, 100 * VERDICT_LEARNED);
	text_add(&b, "Of link and match the head is named that was strongest as trained: weaker where it gives at "
		 "least %g points less, lost where less than half. It is spread thin where its entropy rose by at "
		 "least %g nats. ", 100 * VERDICT_SHARE, VERDICT_ENTROPY);
	text_add(&b, "A pair meets new angles if training did not take it round the circle, and its largest is a "
		 "token's step or more beyond training's.");
	wrap_paragraph(lines, b.data);
	text_builder_free(&b);
}

static void add_note(const char *text, enum format format, struct text_builder *b)
{
	struct text_builder lines = { 0 };
	wrap_paragraph(&lines, text);
	format_notes(format, lines.data, b);
	text_builder_free(&lines);
}

static void add_reading(enum format format, struct text_builder *b)
{
	struct text_builder lines = { 0 };
	for (size_t i = 0; i < sizeof reading / sizeof *reading; i++)
		wrap_paragraph(&lines, reading[i]);
	add_thresholds(&lines);
	format_notes(format, lines.data, b);
	text_builder_free(&lines);
}

void diagnose_page(const struct diagnose_question *q, const struct diagnose_answer *a, enum format format,
		   struct text_builder *b)
{
	add_reading(format, b);
	for (int s = 0; s < q->scalings; s++) {
		struct sheet sheet;
		text_add(b, "\n");
		diagnose_sheet(q, a, s, &sheet);
		format_sheet(format, &sheet, b);
		sheet_free(&sheet);
		for (int l = 0; l < q->lengths; l++) {
			struct text_builder words = { 0 };
			diagnose_words(q, a, s, l, &words);
			add_note(words.data, format, b);
			text_builder_free(&words);
		}
	}
}

/* ---- records ---- */

static void begin(const struct diagnose_question *q, const struct diagnosis *d, int scaling, int length,
		  const char *what, struct records *out)
{
	examined_begin(q->run, label_of(&q->scaling[scaling]), out);
	record_number(out, "factor", d->result.factor);
	record_number(out, "multiple", q->multiple[length]);
	record_integer(out, "length", q->length[length]);
	record_text(out, "what", what);
	record_text(out, "group", group_of(q));
}

static void add_head(const struct diagnosed_head *h, struct records *out)
{
	bool known = h->queries > 0;
	record_integer(out, "queries", h->queries);
	for (int c = 0; c < KEY_CLASSES; c++) {
		char name[40];
		snprintf(name, sizeof name, "share_%s", classes[c].name);
		record_number(out, name, known ? h->share[c] : NAN);
	}
	record_number(out, "beyond", known ? h->beyond : NAN);
	record_number(out, "entropy", known ? h->entropy : NAN);
	record_number(out, "keys", known ? exp(h->entropy) : NAN);
	record_number(out, "logit_sd", known ? h->deviation : NAN);
	record_number(out, "logit_peak", known ? h->peak : NAN);
	record_number(out, "outside_variance", h->outside);
	record_integer(out, "sources", h->sources);
	record_number(out, "link", h->sources ? h->link : NAN);
}

static void add_pair(const struct diagnosed_pair *p, struct records *out)
{
	record_number(out, "trained_inv_freq", p->trained_inv_freq);
	record_number(out, "inv_freq", p->inv_freq);
	record_number(out, "trained_angle", p->trained_angle);
	record_number(out, "angle", p->angle);
	record_integer(out, "outside", p->outside);
}

static void add_verdict(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, int length,
			struct records *out)
{
	const struct diagnosis *d = diagnose_at(q, a, scaling, length);
	struct verdict v = diagnose_verdict(a, d);
	struct text_builder words = { 0 };
	char name[SHEET_TEXT];
	begin(q, d, scaling, length, "verdict", out);
	record_number(out, "accuracy", v.scored ? v.cell->accuracy : NAN);
	record_number(out, "accuracy_trained", v.scored ? v.trained_cell->accuracy : NAN);
	record_text(out, "grade", grades[v.grade]);
	record_text(out, "match_head", v.answers < 0 ? NULL : head_name(d, v.answers, name));
	record_text(out, "match_change", v.answers < 0 ? NULL : shares[v.match]);
	record_text(out, "link_head", v.links < 0 ? NULL : head_name(d, v.links, name));
	record_text(out, "link_change", v.links < 0 ? NULL : shares[v.link]);
	record_integer(out, "spread", v.spread);
	record_integer(out, "pairs_outside", d->outside);
	diagnose_words(q, a, scaling, length, &words);
	record_text(out, "verdict", words.data);
	record_text(out, "protocol", run_protocol(q->run->config));
	text_builder_free(&words);
}

static void add_place(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, int length,
		      struct records *out)
{
	const struct diagnosis *d = diagnose_at(q, a, scaling, length);
	for (int i = 0; i < d->layers * d->heads; i++) {
		begin(q, d, scaling, length, "head", out);
		record_integer(out, "layer", i / d->heads);
		record_integer(out, "head", i % d->heads);
		add_head(&d->head[i], out);
	}
	for (int m = 0; m < d->pairs; m++) {
		begin(q, d, scaling, length, "pair", out);
		record_integer(out, "pair", m);
		add_pair(&d->pair[m], out);
	}
	add_verdict(q, a, scaling, length, out);
}

void diagnose_records(const struct diagnose_question *q, const struct diagnose_answer *a, struct records *out)
{
	for (int s = 0; s < q->scalings; s++)
		for (int l = 0; l < q->lengths; l++)
			add_place(q, a, s, l, out);
}
