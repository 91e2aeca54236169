#ifndef ROPEWALK_PRINT_H
#define ROPEWALK_PRINT_H

#include "runs/show/format.h"
#include "runs/show/results.h"

/* Options of the commands that print tables, for a struct whose first member is a struct print_options. */
struct print_options {
	int64_t format;
	const char *against;
};
#define PRINT_OPTIONS                                                                                              \
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = FORMAT_CHOICES, .unit = "",          \
	  .help = FORMAT_HELP, .offset = offsetof(struct print_options, format) },                                   \
	{ .name = "against", .kind = OPTION_TEXT, .initial = "", .unit = "row",                                        \
	  .help = "also print each row's paired differences to this one: a scaling's label, or a row's",               \
	  .offset = offsetof(struct print_options, against) }

/* A study's folder and what it holds. */
struct print_study {
	const char *folder;
	const struct study *study;
	const struct grid *grid;
};

/* The tables of studies on stdout. In text and Markdown notes stand beneath each; in the other formats warnings go to
 * stderr. CSV has one header, JSON one array of studies. */
struct err print_studies(const struct print_study *study, int count, const struct print_options *o);

/* Every table of a study in order: of each group, usable lengths, and what comes of the sections of claims. `against`
 * is a row or "". The sheet is freed behind `take`. */
typedef void (*take_sheet)(const struct sheet *s, void *to);
struct err print_each_sheet(const struct results *r, const char *against, take_sheet take, void *to);

/* Refuses `--against=` without a row, which a script's empty variable would leave. */
struct err print_options_check(const struct config *c, const struct print_options *o);

/* Do the options make sense for this study, whatever it has computed so far? */
struct err print_check(const struct print_study *study, const struct print_options *o);

#endif
