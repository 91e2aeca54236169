#include "runs/show/decompose_tables.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/show/wrap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *label;
} forms[FORMS] = {
	[FORM_AS_IS] = { "as_is", "1 as trained (1x)" },
	[FORM_POSITIONS] = { "positions", "2 positions only: far apart, no filler" },
	[FORM_TOKENS] = { "tokens", "3 tokens only: filler, positions within training" },
	[FORM_BOTH] = { "both", "4 both: the long sequence" },
};

/* Seeds first .. first + count - 1 of a method at one length, as the arithmetic takes them. */
struct place_seeds {
	const struct decomposition **seed; /* stb_ds */
	int count;
};

static struct place_seeds seeds_at(const struct decomposed *d, int first, int count, int length)
{
	struct place_seeds s = { .count = count };
	for (int i = first; i < first + count; i++)
		arrput(s.seed, &d->result[i][length]);
	return s;
}

static const struct subject *subject_of(const struct decompose_set *set, const struct decomposed *d, int seed)
{
	return &set->subject[d->subject[seed]];
}

int decompose_group(const struct task *task, const char *name)
{
	for (int g = 0; g < TASK_GROUPS && task->groups[g]; g++)
		if (!strcmp(task->groups[g], name))
			return g;
	return -1;
}

static bool possible(const struct place_seeds *s, enum form form)
{
	return s->seed[0]->possible[form]; /* NOLINT(clang-analyzer-core.NullDereference): there is a seed */
}

/* "(1.02 - 1.31)": perplexities of the seeds. */
static void add_range(const struct place_seeds *s, int group, enum form form, struct sheet_cell *out)
{
	double least = INFINITY, greatest = 0;
	char a[SHORT_TEXT], b[SHORT_TEXT];
	for (int i = 0; i < s->count; i++) {
		double perplexity = decompose_cell(&s->seed[i], 1, group, form).perplexity;
		least = fmin(least, perplexity);
		greatest = fmax(greatest, perplexity);
	}
	snprintf(out->line[1], SHEET_TEXT, "(%s - %s)", perplexity_text(least, a), perplexity_text(greatest, b));
}

static void fill_form(const struct place_seeds *s, int group, enum form form, int V, struct sheet_cell *out)
{
	struct eval_cell cell = decompose_cell(s->seed, s->count, group, form);
	char a[SHORT_TEXT], b[SHORT_TEXT];
	if (!possible(s, form) || !cell.scored) {
		snprintf(out->line[0], SHEET_TEXT, "n/a");
		return;
	}
	snprintf(out->line[0], SHEET_TEXT, "%s / %s", perplexity_text(cell.perplexity, a),
		 accuracy_text(cell.accuracy, b));
	out->heat = cell.nll / log(V);
	if (s->count > 1)
		add_range(s, group, form, out);
}

enum part { PART_FAILURE, PART_POSITION, PART_CROWDING, PART_INTERACTION, PARTS };
static const char *const parts[PARTS] = { "failure (nats)", "  of it position", "  of it crowding", "  interaction" };

static void fill_part(const struct shares *s, enum part part, struct sheet_cell *out)
{
	const double nats[PARTS] = { s->failure, s->position, s->crowding, s->interaction };
	if (!s->known) {
		snprintf(out->line[0], SHEET_TEXT, "n/a");
	} else if (part == PART_FAILURE) {
		snprintf(out->line[0], SHEET_TEXT, "%.3f", s->failure);
		snprintf(out->line[1], SHEET_TEXT, "+- %.3f", s->failure_se);
	} else if (!s->failed) {
		snprintf(out->line[0], SHEET_TEXT, part == PART_POSITION ? "no failure" : "-");
		snprintf(out->line[1], SHEET_TEXT, part == PART_POSITION ? "to divide" : "");
	} else if (part == PART_INTERACTION) {
		snprintf(out->line[0], SHEET_TEXT, "%.3f", s->interaction);
	} else {
		snprintf(out->line[0], SHEET_TEXT, "%.3f (%.0f %%)", nats[part], 100 * nats[part] / s->failure);
	}
}

/* "rope, scaling ntk: recall, ...", and beneath it what was measured. */
static const char *title_of(const struct decompose_set *set, const struct decomposed *d, int group)
{
	const struct subject *first = subject_of(set, d, 0);
	const struct task *task = task_of(&first->config.data.task);
	struct text_builder b = { 0 };
	text_add(&b, "%s, scaling %s: %s, perplexity / accuracy in %%\n", first->label, d->scaling,
		 task->groups[group]);
	text_add(&b, "The same questions in four forms: %" PRId64 " sequences of %" PRId64 " tokens (%s, eval_seed %"
		 PRId64 "), stretched by filler to so many times their length; ", first->config.eval.sequences,
		 first->config.model.train_length, label_of(&first->config.data.task), first->config.eval.eval_seed);
	text_add(&b, arrlen(d->subject) > 1 ? "%d runs:" : "run", (int)arrlen(d->subject));
	for (int i = 0; i < arrlen(d->subject); i++)
		text_add(&b, "%s %s", i ? "," : "", run_folder_name(subject_of(set, d, i)->folder));
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static void add_columns(const struct subject *s, struct sheet *out)
{
	for (int l = 0; l < s->lengths; l++) {
		char number[NUMBER_TEXT], head[NUMBER_TEXT + 1];
		snprintf(head, sizeof head, "%sx", number_to_text(s->multiple[l], number));
		arrput(out->column, text_keep(head));
	}
}

void decompose_sheet(const struct decompose_set *set, const struct decomposed *d, int group, struct sheet *out)
{
	const struct subject *first = subject_of(set, d, 0);
	int seeds = (int)arrlen(d->subject);
	*out = (struct sheet){ .title = title_of(set, d, group) };
	add_columns(first, out);
	for (enum form form = 0; form < FORMS; form++)
		sheet_add(out, forms[form].label);
	for (enum part part = 0; part < PARTS; part++)
		sheet_add(out, parts[part])->ruled = part == PART_FAILURE;
	for (int l = 0; l < first->lengths; l++) {
		struct place_seeds s = seeds_at(d, 0, seeds, l);
		struct shares shares = decompose_shares(s.seed, seeds, group);
		for (enum form form = 0; form < FORMS; form++)
			fill_form(&s, group, form, first->model.V, &out->row[form].cell[l]);
		for (enum part part = 0; part < PARTS; part++)
			fill_part(&shares, part, &out->row[FORMS + part].cell[l]);
		arrfree(s.seed);
	}
}

void decompose_notes(struct text_builder *b)
{
	static const char *const notes[] = {
		"2: the tokens of 1 at the positions they have in 4, the filler between them taken out. 3: the tokens "
		"of 4; those of 1 keep their positions there, and filler shares the position of the token before it.",
		"failure = NLL of 4 - NLL of 1, in nats a scored token, with its standard error over sequences "
		"(paired).",
		"position = ((2 - 1) + (4 - 3)) / 2, crowding = ((3 - 1) + (4 - 2)) / 2, in NLL (Shapley's values): "
		"what each adds, alone and on top of the other; together they are the failure. Below 0 it helps.",
		"interaction = 4 - 2 - 3 + 1: what comes about only when both meet; half of it is in each part.",
		"A scaling acts on the positions: an automatic factor is 1 in 1 and 3. So what it does to attention as "
		"such (yarn's temperature) is in position: a position far below 0 beside as large a crowding is a "
		"scaling that makes up for crowding.",
		"no failure to divide: it is below 0.01 nats, or below twice its standard error.",
		"n/a: the encoding cannot take these positions, or there is no such token.",
	};
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		wrap_paragraph(b, notes[i]);
}

/* What every record begins with. One seed, or all of them where count is greater. */
static void begin(const struct decompose_set *set, const struct decomposed *d, int seed, int count, int group, int l,
		  struct records *out)
{
	const struct subject *s = subject_of(set, d, seed);
	const struct config *c = &s->config;
	records_begin(out);
	record_text(out, "model", s->label);
	record_text(out, "encoding", label_of(&c->model.encoding));
	record_text(out, "scaling", d->scaling);
	record_text(out, "task", label_of(&c->data.task));
	record_text(out, "run", count > 1 ? NULL : run_folder_name(s->folder));
	if (count > 1)
		record_text(out, "seed", NULL);
	else
		record_integer(out, "seed", c->train.seed);
	record_integer(out, "seeds", count);
	record_integer(out, "eval_seed", c->eval.eval_seed);
	record_integer(out, "sequences", c->eval.sequences);
	record_integer(out, "train_length", c->model.train_length);
	record_text(out, "group", task_of(&c->data.task)->groups[group]);
	record_number(out, "multiple", s->multiple[l]);
	record_integer(out, "length", s->length[l]);
}

/* "nll", or "nll_as_is" of a wide record. */
static void measure(struct records *out, const char *name, const char *form, bool known, double value)
{
	char column[40];
	snprintf(column, sizeof column, form ? "%s_%s" : "%s", name, form);
	record_number(out, column, known ? value : NAN);
}

static void measures(const struct place_seeds *s, int group, enum form form, const char *suffix, struct records *out)
{
	struct eval_cell c = decompose_cell(s->seed, s->count, group, form);
	bool known = possible(s, form) && c.scored;
	measure(out, "nll", suffix, known, c.nll);
	measure(out, "nll_se", suffix, known, c.nll_se);
	measure(out, "perplexity", suffix, known, c.perplexity);
	measure(out, "accuracy", suffix, known, c.accuracy);
}

static void add_shares(const struct place_seeds *s, int group, bool wanted, struct records *out)
{
	struct shares shares = decompose_shares(s->seed, s->count, group);
	bool known = wanted && shares.known, divided = known && shares.failed;
	record_number(out, "failure", known ? shares.failure : NAN);
	record_number(out, "failure_se", known ? shares.failure_se : NAN);
	record_number(out, "position", divided ? shares.position : NAN);
	record_number(out, "crowding", divided ? shares.crowding : NAN);
	record_number(out, "interaction", divided ? shares.interaction : NAN);
}

/* One place of the records: count seeds from `seed` on, a group, a length. */
typedef void add_place(const struct decompose_set *set, const struct decomposed *d, int seed, int count, int group,
		       int l, struct records *out);

static void add_long(const struct decompose_set *set, const struct decomposed *d, int seed, int count, int group, int l,
		     struct records *out)
{
	struct place_seeds s = seeds_at(d, seed, count, l);
	for (enum form form = 0; form < FORMS; form++) {
		begin(set, d, seed, count, group, l, out);
		record_text(out, "form", forms[form].name);
		record_integer(out, "scored", decompose_cell(s.seed, count, group, form).scored);
		measures(&s, group, form, NULL, out);
		add_shares(&s, group, form == FORM_BOTH, out);
	}
	arrfree(s.seed);
}

static void add_wide(const struct decompose_set *set, const struct decomposed *d, int seed, int count, int group, int l,
		     struct records *out)
{
	struct place_seeds s = seeds_at(d, seed, count, l);
	begin(set, d, seed, count, group, l, out);
	record_integer(out, "scored", decompose_cell(s.seed, count, group, FORM_AS_IS).scored);
	for (enum form form = 0; form < FORMS; form++)
		measures(&s, group, form, forms[form].name, out);
	add_shares(&s, group, true, out);
	arrfree(s.seed);
}

static void each_place(const struct decompose_set *set, const struct decomposed *d, const char *wanted,
		       add_place *add, struct records *out)
{
	const struct subject *first = subject_of(set, d, 0);
	const struct task *task = task_of(&first->config.data.task);
	int seeds = (int)arrlen(d->subject);
	for (int g = 0; g < TASK_GROUPS && task->groups[g]; g++) {
		if (wanted && strcmp(wanted, task->groups[g]))
			continue;
		for (int l = 0; l < first->lengths; l++) {
			for (int seed = 0; seed < seeds; seed++)
				add(set, d, seed, 1, g, l, out);
			if (seeds > 1)
				add(set, d, 0, seeds, g, l, out);
		}
	}
}

void decompose_long(const struct decompose_set *set, const char *group, struct records *out)
{
	for (int i = 0; i < arrlen(set->decomposed); i++)
		each_place(set, &set->decomposed[i], group, add_long, out);
}

void decompose_wide(const struct decompose_set *set, const char *group, struct records *out)
{
	for (int i = 0; i < arrlen(set->decomposed); i++)
		each_place(set, &set->decomposed[i], group, add_wide, out);
}
