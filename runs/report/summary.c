#include "runs/report/report.h"

#include "model/base/stb.h"
#include "runs/plot/methods.h"
#include "runs/report/html.h"
#include "runs/run/run_folder.h"
#include "runs/show/once.h"
#include "runs/show/table.h"

#include <math.h>
#include <string.h>

/* What a reader wants to know first, in words. */

static int encodings(const struct results *r)
{
	const char **seen = NULL;
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		once(&seen, label_of(&r->grid->cell[i].config.model.encoding));
	int count = (int)arrlen(seen);
	arrfree(seen);
	return count;
}

static int scalings(const struct results *r)
{
	int most = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		int own = r->grid->cell[i].scalings - r->grid->cell[i].references;
		most = own > most ? own : most;
	}
	return most;
}

void report_question(const struct results *r, struct text_builder *b)
{
	const char *encoding = r->grid->cell[0].config.model.encoding.entry->name;
	int length = methods_train_length(r);
	struct text_builder text = { 0 };
	if (encodings(r) > 1)
		text_add(&text, "A Transformer is given sequences longer than any it was trained on. Which "
				"positional encoding keeps it working%s?", scalings(r) > 1 ? ", by itself or under "
											     "which scaling" : "");
	else if (scalings(r) > 1)
		text_add(&text, "A Transformer with the positional encoding %s is given sequences longer than any it "
				"was trained on. Which way to scale the positions keeps it working?", encoding);
	else
		text_add(&text, "A Transformer with the positional encoding %s is given sequences longer than any it "
				"was trained on. What happens?", encoding);
	if (length)
		text_add(&text, " Training saw %d tokens; the columns go to %g times as many.", length,
			 arrlast(r->grid->multiple));
	text_add(b, "<p class=\"lede\">");
	html_text(b, text.data);
	text_add(b, "</p>\n");
	text_builder_free(&text);
}

static void item(struct text_builder *text, struct text_builder *b)
{
	html_element(b, "li", text->data);
	text_builder_free(text);
}

static void progress_item(const struct results *r, struct text_builder *b)
{
	int count[CELL_DIVERGED + 1] = { 0 }, models = (int)arrlen(r->cell);
	struct text_builder text = { 0 };
	for (int i = 0; i < models; i++)
		count[r->cell[i].status]++;
	if (count[CELL_FINISHED] == models)
		text_add(&text, "%d model%s trained and finished.", models, models > 1 ? "s were" : " was");
	else
		text_add(&text, "Not complete: of %d model%s finished %d", models, models > 1 ? "s" : "",
			 count[CELL_FINISHED]);
	if (count[CELL_UNFINISHED])
		text_add(&text, ", being trained or interrupted %d", count[CELL_UNFINISHED]);
	if (count[CELL_DIVERGED])
		text_add(&text, ", diverged %d", count[CELL_DIVERGED]);
	if (count[CELL_ABSENT])
		text_add(&text, ", not begun %d", count[CELL_ABSENT]);
	if (count[CELL_FINISHED] != models)
		text_add(&text, ".");
	item(&text, b);
}

static void floor_item(const struct results *r, struct text_builder *b)
{
	int known = 0, reached = 0;
	struct text_builder text = { 0 };
	for (int cells = 0; cells < r->grid->groups; cells++) {
		struct reached n = results_reached(r, cells);
		known += n.known;
		reached += n.reached;
	}
	if (!known)
		return;
	if (reached)
		text_add(&text, "At the trained length %d of %d model%s as well as is possible (perplexity within %g "
				"times the floor).%s", reached, known, known > 1 ? "s do" : " does", FLOOR_REACHED,
			 reached < known ? " The others have not learned the task: their rows say nothing about length."
					 : "");
	else
		text_add(&text, "Nothing has learned the task: at the trained length no model comes within %g times "
				"the best possible perplexity, the floor. What follows says nothing about length.",
			 FLOOR_REACHED);
	item(&text, b);
}

/* Of one multiple: the row of least mean NLL, -1 if there is none, and how many others are not to be told from it. */
struct leader {
	int row, others, seeds;
};

static struct leader leader_at(const struct results *r, const struct methods *m, double multiple, const char *group)
{
	struct leader l = { .row = -1 };
	int count = (int)arrlen(m->method);
	double least = INFINITY;
	bool *best = NULL;
	arrsetlen(best, (size_t)count);
	contenders_best(r, m->method, count, multiple, group, best);
	for (int i = 0; i < count; i++) {
		struct summary s = results_summary(r, m->method[i].cells, m->method[i].scaling, multiple, group);
		if (s.state != SUMMARY_FOUND || s.nll.mean >= least)
			continue;
		least = s.nll.mean;
		l.row = i;
		l.seeds = s.done;
	}
	for (int i = 0; i < count; i++)
		l.others += best[i] && i != l.row;
	arrfree(best);
	return l;
}

static void add_numbers(const struct results *r, const struct contender *who, double multiple, const char *group,
			struct text_builder *text)
{
	struct summary s = results_summary(r, who->cells, who->scaling, multiple, group);
	char loss[SHORT_TEXT], accuracy[SHORT_TEXT];
	if (task_of(&r->grid->cell[0].config.data.task)->bytes)
		text_add(text, "%s bits per byte", bits_text(s.nll.mean, loss));
	else
		text_add(text, "perplexity %s", perplexity_text(s.perplexity, loss));
	text_add(text, ", accuracy %s %%", accuracy_text(s.accuracy, accuracy));
}

/* With the first row beside it, which is a study's point of departure. */
static void best_item(const struct results *r, const struct methods *m, double multiple, const char *group,
		      struct text_builder *b)
{
	struct leader l = leader_at(r, m, multiple, group);
	struct text_builder text = { 0 };
	if (l.row < 0)
		return;
	text_add(&text, "At %gx in %s%s%s: ", multiple, group, arrlen(m->method) > 1 ?
		" the best by the mean is " : ", ",
		 methods_label(r, &m->method[l.row]));
	add_numbers(r, &m->method[l.row], multiple, group, &text);
	if (l.others)
		text_add(&text, " (%d other%s cannot be told from it over %d seeds)", l.others, l.others > 1 ? "s" : "",
			 l.seeds);
	if (l.row > 0 && results_summary(r, m->method[0].cells, m->method[0].scaling, multiple, group).done) {
		text_add(&text, "; %s: ", methods_label(r, &m->method[0]));
		add_numbers(r, &m->method[0], multiple, group, &text);
	}
	text_add(&text, ".");
	item(&text, b);
}

void report_summary(const struct results *r, struct text_builder *b)
{
	struct methods m = methods_of(r);
	const char **group = table_groups(r);
	progress_item(r, b);
	floor_item(r, b);
	for (int i = 0; i < arrlen(r->grid->multiple); i++)
		if (r->grid->multiple[i] > 1)
			best_item(r, &m, r->grid->multiple[i], group[0], b);
	arrfree(group);
	methods_free(&m);
}
