#include "runs/show/calibrated.h"

#include "model/base/stb.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool calibrated_known(const struct results *r)
{
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		if (!r->grid->cell[i].config.eval.calibrate)
			return false;
	return true;
}

static const struct measure_row *find(const struct results *r, int cell, int scaling, double multiple,
				      const char *group)
{
	const struct measure_row *row = r->cell[cell].calibration[scaling];
	for (int i = 0; i < arrlen(row); i++)
		if (row[i].row.multiple == multiple && !strcmp(row[i].row.group, group) &&
		    cell_owns(&r->grid->cell[cell], scaling, &row[i].row))
			return &row[i];
	return NULL;
}

struct calibrated calibrated(const struct results *r, const struct contender *who, double multiple, const char *group)
{
	struct calibrated c = { 0 };
	double nll = 0, temperature = 0;
	for (int i = 0; i < arrlen(r->grid->cell); i++) {
		if (r->grid->cell[i].group != who->cells)
			continue;
		const struct measure_row *row = find(r, i, who->scaling, multiple, group);
		if (!row || !row->row.cell.scored)
			continue;
		c.seeds++;
		nll += row->row.cell.nll;
		temperature += log(row->temperature);
	}
	c.perplexity = c.seeds ? exp(nll / c.seeds) : NAN;
	c.temperature = c.seeds ? exp(temperature / c.seeds) : NAN;
	return c;
}

void calibrated_sheet(const struct results *r, const char *group, struct sheet *out)
{
	struct text_builder title = { 0 };
	struct contender *who = contenders(r);
	text_add(&title, "%s, calibrated: perplexity under one temperature for each model and length / the temperature\n"
			 "geometric means over seeds; chosen on sequences of stream tune: what it takes off was "
			 "overconfidence", group);
	*out = (struct sheet){ .title = text_keep(title.data) };
	text_builder_free(&title);
	table_columns(r, out);
	for (int i = 0; i < arrlen(who); i++) {
		const struct cell *first = &r->grid->cell[results_first(r, who[i].cells)];
		const struct task *task = task_of(&first->config.data.task);
		struct sheet_row *row = sheet_add(out, table_label(r, who[i].cells, who[i].scaling));
		row->ruled = who[i].reference && i && !who[i - 1].reference;
		for (int j = 0; j < arrlen(r->grid->multiple); j++) {
			struct calibrated c = calibrated(r, &who[i], r->grid->multiple[j], group);
			char a[SHORT_TEXT], b[SHORT_TEXT];
			snprintf(row->cell[j].line[0], SHEET_TEXT, "-");
			if (!c.seeds)
				continue;
			snprintf(row->cell[j].line[0], SHEET_TEXT, "%s / %s", perplexity_text(c.perplexity, a),
				 perplexity_text(c.temperature, b));
			row->cell[j].heat =
				nll_heat(log(c.perplexity), NAN, task->vocabulary(&first->config.data.task));
		}
	}
	arrfree(who);
}
