#ifndef ROPEWALK_RUN_DECOMPOSE_H
#define ROPEWALK_RUN_DECOMPOSE_H

#include "eval/decompose.h"
#include "runs/config.h"

/* Finished runs decomposed (eval/decompose.h). Arrays are stb_ds arrays unless said otherwise; texts are kept. */

/* A run, and what it is asked. */
struct subject {
	const char *folder;
	const char *label;      /* its encoding, and the values of its study's other axes */
	struct config config;   /* model, data and train of the run, eval of the command line */
	struct model model;
	struct method *scaling; /* those it can take */
	int *length;            /* [lengths], malloc */
	double *multiple;       /* [lengths], malloc */
	int lengths;
};

/* Runs that differ in nothing but their seed, under one scaling. */
struct decomposed {
	char identity[IDENTITY_TEXT];  /* of all but the seed */
	const char *scaling;
	int *subject;                  /* by seed, as named */
	struct decomposition **result; /* likewise; of each its lengths, an stb_ds array */
};

struct decompose_set {
	struct subject *subject;
	struct decomposed *decomposed; /* in the order of the subjects and their scalings */
};

/* Adds the run in a folder, or all finished runs of a study's folder, with its model read. `config` has the options of
 * the command line; under these scalings, or, where `scaling` is NULL, those of the study's cells. A scaling that the
 * encoding cannot take is left out with a line on stderr. Errors: no such run; a model added before. */
struct err decompose_add(struct decompose_set *set, const char *path, const struct config *config,
			 const char *multiples, const struct method *scaling, int scalings);

/* Can all that was added be decomposed? A set without a single scaling left is an error. */
struct err decompose_set_check(const struct decompose_set *set);

/* Fills `decomposed`. Progress goes to stderr. */
struct err decompose_set_run(struct decompose_set *set);

/* Takes a zeroed set too. */
void decompose_set_free(struct decompose_set *set);

#endif
