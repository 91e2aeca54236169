#include "runs/show/growth.h"

#include "eval/tally.h"
#include "model/base/stb.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool growth_known(const struct results *r)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (!protocol_pairs(&r->grid->cell[i].config.eval.protocol))
			return false;
	return true;
}

struct growth growth(const struct results *r, const struct contender *who, double multiple, const char *group)
{
	struct growth g = { 0 };
	int sequences = (int)r->grid->cell[results_first(r, who->cells)].config.eval.sequences;
	struct eval_tally *tally = calloc((size_t)sequences, sizeof *tally);
	BUG_IF(!tally, "no memory for %d sequences", sequences);
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		const struct row *long_one, *short_one;
		if (r->grid->cell[i].group != who->cells)
			continue;
		long_one = results_find(r, i, who->scaling, multiple, group);
		short_one = results_find(r, i, who->scaling, 1, group);
		if (!long_one || !short_one || !long_one->cell.scored ||
		    long_one->cell.scored != short_one->cell.scored)
			continue;
		g.seeds++;
		g.nll += long_one->cell.nll - short_one->cell.nll;
		results_tally(r, i, who->scaling, multiple, group, 1, tally);
		results_tally(r, i, who->scaling, 1, group, -1, tally);
	}
	g.nll /= g.seeds ? g.seeds : 1;
	g.nll_se = tally_cell(tally, sequences, 1, 0).nll_se;
	free(tally);
	return g;
}

void growth_sheet(const struct results *r, const char *group, struct sheet *out)
{
	struct text_builder title = { 0 };
	struct contender *who = contenders(r);
	text_add(&title, "%s: NLL less that at 1x, nats a token, +- its standard error over documents\nthe same tokens "
			 "of the same documents at every length, seen with more before them; below 0 is better", group);
	*out = (struct sheet){ .title = text_keep(title.data) };
	text_builder_free(&title);
	table_columns(r, out);
	for (int i = 0; i < arrlen(who); i++) {
		struct sheet_row *row = sheet_add(out, table_label(r, who[i].cells, who[i].scaling));
		row->ruled = who[i].reference && i && !who[i - 1].reference;
		for (int j = 0; j < arrlen(r->grid->multiple); j++) {
			struct growth g = growth(r, &who[i], r->grid->multiple[j], group);
			struct sheet_cell *c = &row->cell[j];
			snprintf(c->line[0], SHEET_TEXT, "-");
			if (!g.seeds)
				continue;
			snprintf(c->line[0], SHEET_TEXT, "%+.3f", g.nll);
			snprintf(sheet_line(c), SHEET_TEXT, "+-%.2g", g.nll_se);
			c->heat = 0.5 + g.nll / 4;
		}
	}
	arrfree(who);
}
