#ifndef ROPEWALK_RUN_DIAGNOSE_H
#define ROPEWALK_RUN_DIAGNOSE_H

#include "eval/diagnose.h"
#include "runs/run/run_examine.h"

/* A run diagnosed (eval/diagnose.h) under some scalings at some lengths, beside what it is as trained: at train_length
 * under the scaling of its training. */

struct diagnose_question {
	const struct examined *run; /* at train_length */
	const struct method *scaling;
	const int *length;
	const double *multiple;
	int scalings, lengths;
	int group; /* an index into the task's */
};

struct diagnose_answer {
	struct diagnosis trained;
	struct diagnosis *at; /* [scalings][lengths] */
	int count;
	int cell; /* which of a result's cells is the group's */
};

/* Can all of it be asked? */
struct err run_diagnose_check(const struct diagnose_question *q);

/* Progress goes to stderr. diagnose_answer_free takes a zeroed struct too. */
struct err run_diagnose(const struct diagnose_question *q, struct diagnose_answer *out);
void diagnose_answer_free(struct diagnose_answer *a);

static inline const struct diagnosis *diagnose_at(const struct diagnose_question *q, const struct diagnose_answer *a,
						  int scaling, int length)
{
	return &a->at[scaling * q->lengths + length];
}

/* How far accuracy is below that as trained: by less than VERDICT_SLIP, by less than VERDICT_FAIL, or more. Of a model
 * whose accuracy as trained is below VERDICT_LEARNED there is nothing to fail. */
enum verdict_grade { VERDICT_UNLEARNED, VERDICT_HOLDS, VERDICT_SLIPS, VERDICT_FAILS };
#define VERDICT_LEARNED 0.9
#define VERDICT_SLIP 0.01
#define VERDICT_FAIL 0.1

/* How a share of attention compares with that as trained: less than VERDICT_SHARE below it, more, or less than half. */
enum verdict_share { VERDICT_KEPT, VERDICT_WEAKER, VERDICT_LOST };
#define VERDICT_SHARE 0.1

/* What failed at one length, by comparison with the model as trained. */
struct verdict {
	const struct eval_cell *cell, *trained_cell;
	bool scored; /* there are such tokens */
	enum verdict_grade grade;
	/* The head that gives its right token most as trained, and that of the layers below it whose link is strongest,
	 * numbered layer heads + head; -1: none gives VERDICT_ROLE as trained. */
	int answers, links;
	enum verdict_share match, link; /* what they give now */
	bool spread;                    /* the entropy of `answers` rose by at least VERDICT_ENTROPY nats */
	enum key_class gainer;          /* where the share of `answers` rose most, */
	double gain;                    /* and by how much of 1 */
};
#define VERDICT_ROLE 0.5
#define VERDICT_ENTROPY 0.5
struct verdict diagnose_verdict(const struct diagnose_answer *a, const struct diagnosis *d);

#endif
