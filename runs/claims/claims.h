#ifndef ROPEWALK_CLAIMS_H
#define ROPEWALK_CLAIMS_H

#include "runs/show/results.h"

/* Sentences that are repeated about RoPE and its rivals, each with a test of it. The test's numbers are measured each
 * time: by the model's own code on the spot, or from the folder of a study. A claim is one row of the list in
 * claims.c. */

enum claim_verdict {
	CLAIM_HOLDS,      /* same here */
	CLAIM_FAILS,      /* does not hold here */
	CLAIM_UNTESTABLE, /* cannot be tested at this scale: too few seeds, not learned, seeds that disagree */
	CLAIM_UNMEASURED, /* its study has not been run */
};
#define CLAIM_VERDICTS (CLAIM_UNMEASURED + 1)

/* "holds", "does not hold", "cannot be tested", "not measured". */
const char *claim_verdict_name(enum claim_verdict v);

/* What a test found. Texts are kept. */
struct finding {
	enum claim_verdict verdict;
	const char *measured; /* the numbers, in words, a line each; NULL: there are none */
	const char *reason;   /* why there is no verdict; NULL where there is one */
	int seeds, wins;      /* of the comparison that decided: seeds that differ, and those for the claim; 0: none */
	double p;             /* of its sign test (two-sided); NaN */
};

struct comparison;
struct claim_sources;

struct claim {
	const char *id;
	const char *words;     /* the sentence as it is told */
	const char *statement; /* what is tested */
	const char *source;    /* who says it; NULL: it is in the air */
	const char *study;     /* the preset whose folder is read; NULL: computed on the spot */
	/* One of the three: by computing; by rows of the study against each other (compared.h), the last without an
	 * encoding; by what the study trained. Those of a study are asked when it is there. */
	struct err (*compute)(struct finding *out);
	const struct comparison *comparison;
	struct err (*examine)(const struct results *r, struct finding *out);
};

/* The list; NULL past the last. */
const struct claim *claim_at(int index);
/* Its names, one by one. */
const char *claim_id_at(int index, const void *unused);

/* Tests it. Errors: a damaged study, memory. BLAS has been started. */
struct err claim_test(const struct claim *c, struct claim_sources *from, struct finding *out);

/* Puts numbers in words into a finding: another line behind those that are there. */
void finding_add(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The studies that claims read, opened when first asked for: DIR/NAME. claim_sources_free takes a zeroed one too. */
struct claim_source {
	const char *name;
	bool there;
	struct study study;
	struct grid grid;
	struct results results;
};
struct claim_sources {
	const char *folder;          /* DIR, "runs/out" */
	struct claim_source **source; /* stb_ds array, each in fresh memory */
};
/* *out is NULL if the study's folder is not there. */
struct err claim_source_open(struct claim_sources *from, const char *name, const struct results **out);
void claim_sources_free(struct claim_sources *s);

/* "ropewalk study claims --out=DIR/claims": what makes a study where it is looked for; kept. */
const char *claim_study_command(const struct claim_sources *from, const char *study);
/* How long that takes on two cores, as its preset says; 0: it does not. */
double claim_study_minutes(const char *study);
/* What tests a claim again, from nothing; kept. */
const char *claim_command(const struct claim *c, const struct claim_sources *from);

#endif
