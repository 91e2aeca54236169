#include "runs/report/report.h"

#include "model/base/stb.h"
#include "runs/plot/chart.h"
#include "runs/report/html.h"
#include "runs/show/once.h"

/* What the names in the tables stand for, each with its source. */

static void explain(const struct entry *e, const char *kind, const char ***seen, struct text_builder *b)
{
	if (once(seen, chart_text("%s %s", kind, e->name)))
		html_element(b, "dd", chart_text("%s, %s: %s%s%s%s", e->name, kind, e->help, e->paper ? " [" : "",
						 e->paper ? e->paper : "", e->paper ? "]" : ""));
}

static void explain_scalings(const struct cell *c, const char ***seen, struct text_builder *b)
{
	for (int i = 0; i < c->scalings - c->references; i++)
		for (const struct method *m = &c->scaling[i]; m; m = m->plus)
			explain(m->entry, "a scaling", seen, b);
}

void report_glossary(const struct results *r, struct text_builder *b)
{
	const char **seen = NULL;
	html_element(b, "dt", "The methods");
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		explain(r->grid->cell[i].config.model.encoding.entry, "a positional encoding", &seen, b);
	for (int i = 0; i < arrlen(r->grid->cell); i++)
		explain_scalings(&r->grid->cell[i], &seen, b);
	arrfree(seen);
}
