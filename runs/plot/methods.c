#include "runs/plot/methods.h"

#include "model/base/stb.h"
#include "runs/run/run_folder.h"
#include "runs/show/table.h"

struct methods methods_of(const struct results *r)
{
	struct methods m = { 0 };
	struct contender *all = contenders(r);
	for (int i = 0; i < arrlen(all); i++)
		if (all[i].reference)
			arrput(m.reference, all[i]);
		else
			arrput(m.method, all[i]);
	arrfree(all);
	return m;
}

void methods_free(struct methods *m)
{
	arrfree(m->method);
	arrfree(m->reference);
	*m = (struct methods){ 0 };
}

int methods_panels(const struct methods *m)
{
	return (int)((arrlen(m->method) + PANEL_METHODS - 1) / PANEL_METHODS);
}

const char *methods_label(const struct results *r, const struct contender *c)
{
	const char *label = table_label(r, c->cells, c->scaling);
	return *label ? label : "trained model";
}

const char *methods_title(const struct results *r, const char *what)
{
	return chart_text("%s: %s", run_folder_name(r->folder), what);
}

const char *methods_panel_title(const struct methods *m, const char *group, int panel)
{
	int first = panel * PANEL_METHODS + 1, last = (int)arrlen(m->method);
	if (methods_panels(m) < 2)
		return group;
	return chart_text("%s (methods %d - %d of %d)", group, first,
			  last < first + PANEL_METHODS ? last : first + PANEL_METHODS - 1, last);
}

int methods_train_length(const struct results *r)
{
	int64_t length = r->grid->cell[0].config.model.train_length;
	for (int i = 1; i < arrlen(r->grid->cell); i++)
		if (r->grid->cell[i].config.model.train_length != length)
			return 0;
	return (int)length;
}
