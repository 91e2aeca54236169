#ifndef ROPEWALK_VERDICTS_H
#define ROPEWALK_VERDICTS_H

#include "runs/show/compare.h"
#include "runs/show/records.h"
#include "runs/show/sheet.h"

/* Orders that were claimed elsewhere, tested on a study's own numbers. */

enum verdict { VERDICT_SAME, VERDICT_DIFFERENT, VERDICT_UNTESTED };
/* "same order here", "different here", "cannot be tested at this scale" */
const char *verdict_word(enum verdict verdict);

/* A sign test over seeds paired on the same sequences: a win is a seed in which the row claimed to be better is better,
 * ties are dropped. A verdict needs VERDICT_SEEDS seeds, all seeds of both rows, every model of both at the floor at 1x
 * (FLOOR_REACHED; where the floor is known), and a two-sided exact p below VERDICT_P (sign_test). Else it cannot be
 * tested, and `why` says what is lacking. */
#define VERDICT_SEEDS 6
#define VERDICT_P 0.05
struct order_verdict {
	enum verdict verdict;
	int seeds, pairs;       /* of the row that has more; that both have */
	int wins, losses, ties; /* of the pairs */
	double p;
	char why[SHEET_TEXT];   /* "" where there is a verdict */
};
struct order_verdict verdict_of(const struct results *r, const struct study_claim *c);

/* Every [order] of the study; false if it has none. */
bool verdicts_sheet(const struct results *r, struct sheet *out);
void verdicts_records(const struct results *r, struct records *out);

#endif
