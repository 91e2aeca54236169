#ifndef ROPEWALK_EXPECT_H
#define ROPEWALK_EXPECT_H

#include "runs/show/records.h"
#include "runs/show/results.h"
#include "runs/show/sheet.h"
#include "runs/study/claim_rows.h"

/* What a study file expects and what was published, beside what was measured. */

/* A row's number over the seeds that have it: means as in the tables; NaN where there is none. `done` and `seeds` (may
 * be NULL) count. */
double claim_value(const struct results *r, const struct grid_row *row, const struct study_claim *c, double multiple,
		   int *done, int *seeds);
/* A value of that measure as tables show it. */
const char *claim_number(enum claim_measure measure, double value, char text[SHORT_TEXT]);

enum band { BAND_INSIDE, BAND_OUTSIDE, BAND_UNKNOWN };
/* Does the number lie in the band, ends included? */
enum band expect_band(const struct study_claim *c, double value);

/* Every band of the study with the number measured; false if it has none. */
bool expect_sheet(const struct results *r, struct sheet *out);
void expect_records(const struct results *r, struct records *out);

/* One [published]: its numbers, and beneath a row those of ours that stands beside it. */
void published_sheet(const struct results *r, const struct study_claim *c, struct sheet *out);
void published_records(const struct results *r, struct records *out);

/* The row that a claim names. That it is there was checked with the grid. */
struct grid_row claim_row_of(const struct results *r, const char *text);

#endif
