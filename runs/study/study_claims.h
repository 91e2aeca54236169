#ifndef ROPEWALK_STUDY_CLAIMS_H
#define ROPEWALK_STUDY_CLAIMS_H

#include "runs/config.h"

/* What a study file says beside its models: bands that its numbers should lie in, numbers that were published, orders
 * that were claimed, and axes over which the order of the methods is compared. Sections [KIND NAME]; an override's
 * [name=value] has a `=`, these have none. Arrays are stb_ds arrays; texts are kept. */

enum claim_kind { CLAIM_EXPECT, CLAIM_PUBLISHED, CLAIM_ORDER, CLAIM_STABILITY, CLAIM_KINDS };

/* Numbers of a row at one multiple. */
enum claim_measure {
	CLAIM_ACCURACY,   /* in % */
	CLAIM_PERPLEXITY,
	CLAIM_NLL,        /* nats a scored token */
	CLAIM_BITS,       /* NLL / ln 2: bits per byte where tokens are bytes */
	CLAIM_SLOPE,      /* perplexity over the row's own at 1x */
};
const char *claim_measure_name(enum claim_measure measure);
/* "accuracy in %": the name with its unit. */
const char *claim_measure_text(enum claim_measure measure);

/* A line as written. */
struct claim_line {
	const char *name, *value, *from;
};

/* A row of published numbers. */
struct published_row {
	const char *label; /* as the source has it */
	const char **value; /* [columns]: a number, perhaps with < or > before it, or "-" */
	const char *ours;  /* the row of the study beside it, or NULL */
	const char *from;  /* of `ours` */
};

struct study_claim {
	enum claim_kind kind;
	const char *name;          /* "" if a [stability] has none */
	const char *from;          /* "FILE:LINE" */
	struct claim_line *line;
	const char *source;        /* or NULL */
	const char *what;          /* published: what the numbers are; order: the claim in words */
	const char *row[2];        /* expect: [0]; order: better, worse */
	const char *group;         /* NULL: the task's first */
	enum claim_measure measure;
	double multiple;
	double least, most;        /* of the band; -INFINITY, INFINITY where one is not given */
	const char **column;       /* published: heads */
	double *multiples;         /* published: [columns] of ours, or none */
	struct published_row *published;
	const char *axis, *value;  /* stability: and its value that the others are held against; NULL: the first */
};

#define STUDY_CLAIMS 200

/* Letters, digits, -, _ and ., and short: what a claim or a variant may be called. */
bool claim_is_name(const char *text);

/* Is this the text of a section of these kinds (between the brackets)? */
bool claim_is_section(const char *text);
/* The nearest kind to the first word of a section's text; NULL if none is near. */
const char *claim_nearest_kind(const char *text);

/* Begins a section, adds a line to the last one, and checks all of them once the file is read: that nothing is missing
 * and what is given agrees. Errors name `from`, FILE:LINE. */
struct err claims_begin(struct study_claim **list, const char *text, const char *from);
struct err claims_add(struct study_claim **list, const char *name, const char *value, const char *from);
struct err claims_finish(const struct study_claim *list);

/* Removes one, and all; the array of all is freed. */
void claims_remove(struct study_claim **list, int index);
void claims_free(struct study_claim **list);

/* Text that reads back as the same. Appends. */
void claims_print(const struct study_claim *list, struct text_builder *b);

#endif
