#ifndef ROPEWALK_USABLE_H
#define ROPEWALK_USABLE_H

#include "runs/show/compare.h"
#include "runs/show/sheet.h"

/* How far past the trained length a method can be used. */

#define USABLE_PERPLEXITY 1.1
#define USABLE_ACCURACY 0.9

/* The largest multiple such that at it, and at every multiple of the study from 1x to it, the perplexity (over seeds,
 * as the tables show it) is at most 1.1 times that at 1x; the accuracy is above 90 %. 0: not even 1x. NaN: 1x, or what
 * follows it, is not there. `open` ones end with the study's multiples. */
struct usable {
	double perplexity, accuracy;
	bool perplexity_open, accuracy_open;
};
struct usable usable_length(const struct results *r, const struct contender *who, const char *group);

/* A row per method, a column per group of the tasks. False, and no sheet, if the study has no multiple beyond 1x. */
bool usable_sheet(const struct results *r, struct sheet *out);

#endif
