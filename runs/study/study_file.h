#ifndef ROPEWALK_STUDY_FILE_H
#define ROPEWALK_STUDY_FILE_H

#include "runs/options.h"
#include "runs/study/study_claims.h"

/* A study file as written: `name = value` lines, a list being an axis, sections [name=value] whose lines override for
 * the cells with that value, and sections [KIND NAME] of claims (study_claims.h). What the values mean is the grid's
 * business. Arrays are stb_ds arrays; texts are kept.
 *
 * Two names are no options. `minutes` is how long the study takes on two cores. `variant` is an axis of names that
 * stand for nothing by themselves: [variant=NAME] sets the options of each, and `default` needs no section. */

struct study_line {
	const char *name;  /* in C spelling, without alias */
	struct option_name option;
	const char **value; /* one, or those of an axis */
	const char *from;   /* "FILE:LINE"; NULL for the command line */
};

struct study_section {
	const char *name, *value; /* [name=value]; name in C spelling */
	const char *from;
	struct study_line *line;
};

#define STUDY_SECTIONS 32
#define STUDY_VALUES 1000

struct study {
	struct study_line *line;
	struct study_section *section;
	struct study_claim *claim;
	double minutes;  /* 0: not said */
	bool overridden; /* by study_override: claims may name rows that are gone */
};

#define STUDY_VARIANT "variant"
#define STUDY_DEFAULT "default"
bool study_is_variant(const struct study_line *l);

/* The options that a study file takes. */
extern const struct scope study_scope;

/* Is the value of this option a list by itself (scaling, multiples), so that it never makes an axis? */
bool study_takes_list(const struct option_name *option);

/* Reads a file; errors name FILE:LINE. Unknown names, names given twice, empty values, lists in sections and axes over
 * what only evaluation depends on are refused, and so are more than STUDY_SECTIONS sections or STUDY_VALUES values of an
 * axis. study_free takes a zeroed struct too. */
struct err study_read(const char *path, struct study *out);
struct err study_parse(const char *path, const char *text, struct study *out);
void study_free(struct study *s);

/* An option of the command line (or of a file it names, `from`): replaces it in the study and in all sections; sections
 * that select by a value of it that is gone, go too, and so do the minutes. Bands are of the models as the file has
 * them: they go, unless it is an option of evaluation, the seeds or one of the file's axes. */
struct err study_override(struct study *s, const char *name, const char *text, const char *from);

/* Are two values written alike, white space aside? */
bool study_same_value(const char *a, const char *b);

/* Text that study_parse takes back. Appends. */
void study_print(const struct study *s, struct text_builder *b);

#endif
