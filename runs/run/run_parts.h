#ifndef ROPEWALK_RUN_PARTS_H
#define ROPEWALK_RUN_PARTS_H

#include "eval/paired.h"
#include "eval/parts.h"
#include "runs/run/run_examine.h"

/* A run evaluated under many settings of its pairs (eval/parts.h), on the same sequences. */

struct parts_question {
	const struct examined *run;
	const struct method *scaling;
	struct part_setting *setting; /* stb_ds array; number 0 is what the others are compared with */
	bool shares;                  /* number 1 is the goal: how much of the way from 0 to 1 do the others go? */
	const char *what;             /* "patch", for progress */
};

/* Of one setting, by group. */
struct parts_answer {
	struct eval_cell cell[EVAL_GROUPS];
	struct paired_change change[EVAL_GROUPS]; /* of accuracy, from setting 0 */
	struct paired_share share[EVAL_GROUPS];   /* of that of setting 1, with `shares` */
};
struct parts_answers {
	int groups;
	const char *group[EVAL_GROUPS];
	double factor;
	struct parts_answer *answer; /* stb_ds array, by setting */
};

/* Can all of it be asked? Encoding, scaling, memory. */
struct err run_parts_check(const struct parts_question *q);

/* Progress goes to stderr. parts_answers_free takes a zeroed struct too. */
struct err run_parts(const struct parts_question *q, struct parts_answers *out);
void parts_answers_free(struct parts_answers *a);

#endif
