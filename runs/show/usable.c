#include "runs/show/usable.h"

#include "model/base/stb.h"
#include "runs/show/table.h"

#include <math.h>
#include <stdio.h>

static bool good_perplexity(const struct summary *s, const struct summary *first)
{
	return s->perplexity <= USABLE_PERPLEXITY * first->perplexity;
}

static bool good_accuracy(const struct summary *s, const struct summary *first)
{
	(void)first;
	return s->accuracy > USABLE_ACCURACY;
}

/* From 1x on while it is good. */
static double reach(const struct results *r, const struct contender *who, const char *group,
		    bool (*good)(const struct summary *s, const struct summary *first), bool *open)
{
	struct summary first = results_summary(r, who->cells, who->scaling, 1, group);
	double reached = 0;
	*open = false;
	if (first.state != SUMMARY_FOUND)
		return NAN;
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		double multiple = r->grid->multiple[i];
		struct summary s = results_summary(r, who->cells, who->scaling, multiple, group);
		if (multiple < 1 || !s.length)
			continue;
		if (s.state == SUMMARY_ABSENT)
			return NAN;
		if (s.state != SUMMARY_FOUND || !good(&s, &first))
			return reached;
		reached = multiple;
	}
	*open = true;
	return reached;
}

struct usable usable_length(const struct results *r, const struct contender *who, const char *group)
{
	struct usable u = { 0 };
	u.perplexity = reach(r, who, group, good_perplexity, &u.perplexity_open);
	u.accuracy = reach(r, who, group, good_accuracy, &u.accuracy_open);
	return u;
}

static const char *multiple_text(double multiple, bool open, char text[SHORT_TEXT])
{
	if (isnan(multiple))
		snprintf(text, SHORT_TEXT, "-");
	else if (multiple == 0)
		snprintf(text, SHORT_TEXT, "none");
	else
		snprintf(text, SHORT_TEXT, "%s%gx", open ? ">= " : "", multiple);
	return text;
}

static bool goes_beyond(const struct results *r)
{
	bool one = false, beyond = false;
	for (int i = 0; i < arrlen(r->grid->multiple); i++) {
		one |= r->grid->multiple[i] == 1;
		beyond |= r->grid->multiple[i] > 1;
	}
	return one && beyond;
}

bool usable_sheet(const struct results *r, struct sheet *out)
{
	if (!goes_beyond(r))
		return false;
	struct contender *who = contenders(r);
	const char **group = table_groups(r);
	*out = (struct sheet){ .title = "usable length: the largest multiple up to which perplexity stays within "
					"10 % of 1x / accuracy above 90 %\nover the seeds' geometric mean and mean; >=: it "
					"holds at the greatest multiple measured" };
	for (int i = 0; i < arrlen(group); i++)
		arrput(out->column, group[i]);
	for (int i = 0; i < arrlen(who); i++) {
		struct sheet_row *row = sheet_add(out, table_label(r, who[i].cells, who[i].scaling));
		row->ruled = who[i].reference && i && !who[i - 1].reference;
		for (int j = 0; j < arrlen(group); j++) {
			char a[SHORT_TEXT], b[SHORT_TEXT];
			struct usable u = usable_length(r, &who[i], group[j]);
			snprintf(row->cell[j].line[0], SHEET_TEXT, "%s / %s",
				 multiple_text(u.perplexity, u.perplexity_open, a),
				 multiple_text(u.accuracy, u.accuracy_open, b));
		}
	}
	arrfree(group);
	arrfree(who);
	return true;
}
