#ifndef ROPEWALK_SUBJECT_H
#define ROPEWALK_SUBJECT_H

#include "runs/show/results.h"

/* What pictures and reports are made of: the folder of a study, or that of a single run, which is read as a study of
 * one cell under every scaling it was evaluated with. */
struct subject {
	const char *folder;
	bool run;
	int others; /* evaluations of the run that are left out: other sequences, protocol or cache */
	struct study study;
	struct grid grid;
	struct results results;
};

/* A folder without either is an error; what is not computed yet is none. Of a run's rows those of one eval_seed, number
 * of sequences, kv and protocol are taken: of which there are most. subject_close takes a zeroed struct too. */
struct err subject_open(const char *folder, struct subject *out);
void subject_close(struct subject *s);

/* What is said of those that are left out; "" where there are none. Kept. */
const char *subject_others(const struct subject *s);

#endif
