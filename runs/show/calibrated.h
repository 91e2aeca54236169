#ifndef ROPEWALK_CALIBRATED_H
#define ROPEWALK_CALIBRATED_H

#include "runs/show/compare.h"
#include "runs/show/sheet.h"

/* Perplexity under one temperature a model and length (eval/calibration.h): what is left of it is not overconfidence. */

/* Geometric means over the seeds that have been calibrated. */
struct calibrated {
	int seeds;
	double perplexity, temperature;
};
struct calibrated calibrated(const struct results *r, const struct contender *who, double multiple, const char *group);

/* Are all cells asked to be? */
bool calibrated_known(const struct results *r);

/* A row per method, a column per multiple. */
void calibrated_sheet(const struct results *r, const char *group, struct sheet *out);

#endif
