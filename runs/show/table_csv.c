#include "runs/show/table.h"

#include "runs/run_folder.h"

#include <inttypes.h>

static const char *const state_word[] = {
	[SUMMARY_FOUND] = "found",         [SUMMARY_EMPTY] = "empty",       [SUMMARY_ABSENT] = "absent",
	[SUMMARY_IMPOSSIBLE] = "n/a",      [SUMMARY_DIVERGED] = "diverged",
};

void table_csv_header(struct text_builder *b)
{
	text_add(b, "encoding,scaling,group,multiple,length,seeds,seeds_done,perplexity,perplexity_least,"
		    "perplexity_greatest,accuracy,floor,scored,sequences,state,axes\n");
}

static void add_number(struct text_builder *b, bool there, double value)
{
	char number[NUMBER_TEXT];
	text_add(b, "%s,", there ? number_to_text(value, number) : "");
}

static void add_place(const struct results *r, int cells, int scaling, double multiple, const char *group,
		      struct text_builder *b)
{
	const struct cell *c = &r->grid->cell[results_first(r, cells)];
	struct summary s = results_summary(r, cells, scaling, multiple, group);
	bool found = s.state == SUMMARY_FOUND;
	csv_field(b, label_of(&c->config.model.encoding));
	text_add(b, ",");
	csv_field(b, c->scaling_label[scaling]);
	text_add(b, ",%s,", group);
	add_number(b, true, multiple);
	add_number(b, s.length, s.length);
	text_add(b, "%d,%d,", s.seeds, s.done);
	add_number(b, found, s.perplexity);
	add_number(b, found, s.least);
	add_number(b, found, s.greatest);
	add_number(b, found, s.accuracy);
	add_number(b, found, s.floor);
	text_add(b, "%" PRId64 ",%" PRId64 ",%s,", s.scored, s.sequences, state_word[s.state]);
	csv_field(b, c->axes);
	text_add(b, "\n");
}

void table_csv(const struct results *r, struct text_builder *b)
{
	for (int cells = 0; cells < r->grid->groups; cells++) {
		const struct cell *c = &r->grid->cell[results_first(r, cells)];
		const char *group[EVAL_GROUPS];
		int groups = eval_group_names(task_of(&c->config.data.task), group);
		for (int i = 0; i < c->scalings; i++)
			for (int j = 0; j < c->lengths; j++)
				for (int k = 0; k < groups; k++)
					add_place(r, cells, i, c->multiple[j], group[k], b);
	}
}
