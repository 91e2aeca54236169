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
		text_add(&text, "A Transformer is given sequences longer than any it was trained on. Which positional encoding "
				"keeps it working%s?", scalings(r) > 1 ? ", by itself or under which scaling" : "");
	else if (scalings(r) > 1)
		text_add(&text, "A Transformer with the positional encoding %s is given sequences longer than any it was trained "
				"on. Which way to scale the positions keeps it working?", encoding);
	else
		text_add(&text, "A Transformer with the positional encoding %s is given sequences longer than any it was trained "
				"on. What happens?", encoding);
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
		text_add(&text, "Not complete: of %d models %d are finished, %d are being trained or were interrupted, %d "
				"diverged.", models, count[CELL_FINISHED], count[CELL_UNFINISHED], count[CELL_DIVERGED]);
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
	text_add(&text, "At the trained length %d of %d models do as well as is possible (perplexity within %g times the "
			"floor).%s", reached, known, FLOOR_REACHED,
		 reached < known ? " The others have not learned the task: their rows say nothing about length." : "");
	item(&text, b);
}

/* Of one multiple: the row without scaling or the first, against those that are not to be told from the best. */
struct leaders {
	const struct contender *who;
	int count;
	bool *best; /* stb_ds */
	double accuracy; /* of the best mean */
};

static struct leaders leaders_at(const struct results *r, const struct methods *m, double multiple, const char *group)
{
	struct leaders l = { .who = m->method, .count = (int)arrlen(m->method) };
	int first = -1;
	double least = INFINITY;
	arrsetlen(l.best, (size_t)l.count);
	contenders_best(r, l.who, l.count, multiple, group, l.best);
	bool any = false;
	for (int i = 0; i < l.count; i++) {
		struct summary s = results_summary(r, l.who[i].cells, l.who[i].scaling, multiple, group);
		any |= l.best[i];
		if (s.state == SUMMARY_FOUND && s.nll.mean < least) {
			least = s.nll.mean;
			first = i;
			l.accuracy = s.accuracy;
		}
	}
	if (!any && first >= 0)
		l.best[first] = true;
	if (first < 0)
		l.count = 0;
	return l;
}

enum { NAMED = 4 };

static void add_leaders(const struct results *r, const struct leaders *l, struct text_builder *text)
{
	int shown = 0, all = 0;
	for (int i = 0; i < l->count; i++)
		all += l->best[i];
	for (int i = 0; i < l->count && shown < NAMED; i++)
		if (l->best[i])
			text_add(text, "%s%s", shown++ ? "; " : "", methods_label(r, &l->who[i]));
	if (all > shown)
		text_add(text, "; and %d more", all - shown);
}

static void best_item(const struct results *r, const struct methods *m, double multiple, const char *group,
		      struct text_builder *b)
{
	struct leaders l = leaders_at(r, m, multiple, group);
	struct text_builder text = { 0 };
	char accuracy[SHORT_TEXT];
	if (l.count > 1) {
		text_add(&text, "Best in %s at %gx (accuracy up to %s %%): ", group, multiple,
			 accuracy_text(l.accuracy, accuracy));
		add_leaders(r, &l, &text);
		text_add(&text, ".");
	} else if (l.count) {
		text_add(&text, "At %gx its accuracy in %s is %s %%.", multiple, group, accuracy_text(l.accuracy, accuracy));
	}
	if (text.data)
		item(&text, b);
	arrfree(l.best);
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
