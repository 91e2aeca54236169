#ifndef ROPEWALK_COMPARE_H
#define ROPEWALK_COMPARE_H

#include "runs/show/results.h"

/* Methods against each other, seed by seed: the same sequences, and within a group of cells the same weights. */

/* A method: a row of the tables. */
struct contender {
	int cells, scaling;
	bool reference; /* not a method but what methods are held against: the cell's reference scalings */
};

/* All rows of a study in order, references last. An stb_ds array. */
struct contender *contenders(const struct results *r);

/* The rows of one seed that two contenders have at one place: of the same length and sequences. */
struct pair {
	int cell[2];
	const struct row *row[2];
};
/* All of them, a seed each. An stb_ds array. */
struct pair *pairs(const struct results *r, const struct contender *a, const struct contender *b, double multiple,
		   const char *group);

/* One contender's mean NLL less another's, in nats, over the seeds that both have. */
struct paired {
	int seeds, wins;        /* wins: seeds in which it is below 0 */
	bool same_weights;
	struct interval nll;    /* over seeds; no ends below two */
	double least, greatest;
	double accuracy;        /* mean difference of the shares */
	double nll_se;          /* error that comes from the sequences, clustered by sequence */
};
struct paired paired(const struct results *r, const struct contender *a, const struct contender *b, double multiple,
		     const char *group, double confidence);

/* Which of the contenders are not to be told from the best at this place: the one of least mean NLL among those that
 * have every seed, and all whose paired difference to it has a 95 % interval that reaches 0 (each on its own, without
 * correction for their number). With one seed, nothing is marked. */
void contenders_best(const struct results *r, const struct contender *c, int count, double multiple, const char *group,
		     bool *best);

/* "k of n": on how many seeds and multiples beyond 1x a's NLL is below b's, in the task's first group. */
struct order {
	int better, compared;
};
struct order results_order(const struct results *r, int cells, int scaling, int other);

#endif
