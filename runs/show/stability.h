#ifndef ROPEWALK_STABILITY_H
#define ROPEWALK_STABILITY_H

#include "runs/show/expect.h"

/* Does the order of the methods stay when something else changes? Kendall's tau-b (eval/statistics.h) between the order
 * at a value of an axis and that at its default, over the methods that have a number at both: rows that differ in
 * nothing but the axis are one method. */

struct tau {
	double tau; /* NaN where there is no order to compare */
	int methods;
	bool above; /* some model of theirs is above the floor at 1x (FLOOR_REACHED) */
};
struct tau stability_at(const struct results *r, const struct study_claim *c, const char *value, double multiple);

/* A row per value of the axis other than the default, a column per multiple. */
void stability_sheet(const struct results *r, const struct study_claim *c, struct sheet *out);
void stability_records(const struct results *r, struct records *out);

#endif
