#include "runs/plot/cuts.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"

#include <stdlib.h>

struct err cuts_read(const struct results *r, int cell, int scaling, enum measure_kind kind, struct measure_row **cuts)
{
	const struct cell *c = &r->grid->cell[cell];
	struct measure_row *all = NULL;
	/* Of the stream `tune` there are none. */
	if (r->cell[cell].status < CELL_FINISHED || c->config.eval.stream != EVAL_REPORT)
		return OK;
	char *path = run_folder_measure(r->cell[cell].folder, &c->config.eval, c->scaling_label[scaling], kind);
	struct err e = measure_rows_read(kind, path, &all);
	for (int i = 0; i < arrlen(all); i++)
		if (cell_owns(c, scaling, &all[i].row))
			arrput(*cuts, all[i]);
	arrfree(all);
	free(path);
	return e;
}
