#ifndef ROPEWALK_CLAIM_ROWS_H
#define ROPEWALK_CLAIM_ROWS_H

#include "runs/study/grid.h"

/* The rows that claims name: a cell group of the grid under one scaling. */

struct grid_row {
	int cells, scaling;
};

/* The row that a text means: its label as the tables show it (the encoding may stand before it where the study has but
 * one, "variant=default" may be left out), the label of its cells alone for their first scaling, or a scaling's label
 * where one row has that scaling. Scalings are compared by what they mean. Errors name the nearest rows, or those that
 * the text fits. */
struct err claim_row(const struct grid *g, const char *text, struct grid_row *out);

/* The whole label of a row, its scaling always with it; kept. */
const char *claim_row_label(const struct grid *g, const struct grid_row *row);

/* The first cell of a group of cells, and the claim's group of tokens for it. */
const struct cell *claim_cell(const struct grid *g, int cells);
const char *claim_group(const struct study_claim *c, const struct cell *cell);

/* The label `of` a cell without its value of an axis, and that value, both kept; false if it does not show the axis as
 * NAME=VALUE. */
bool claim_without_axis(const char *of, const char *axis, const char **label, const char **value);

/* The label with another value of that axis, kept. */
const char *claim_at_value(const char *label, const char *axis, const char *value);

/* The axis of a stability, a line of the study. */
const struct study_line *claim_axis(const struct study_claim *c, const struct study *s);
/* The value of a stability's axis that the others are held against. */
const char *claim_default(const struct study_claim *c, const struct study *s);

/* Has the study the rows, multiples, groups and axes that its claims name? claims_drop removes those it has not. */
struct err claims_check(const struct study *s, const struct grid *g);
void claims_drop(struct study *s, const struct grid *g);

#endif
