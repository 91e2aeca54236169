#ifndef ROPEWALK_RUNS_OPTIONS_H
#define ROPEWALK_RUNS_OPTIONS_H

#include "model/base/option.h"

/* The folders' option lists joined, and what a name given by a user stands for. */

struct run_options {
#include "model/base/option_fields.h"
#include "runs/options.def"
#include "model/base/option_end.h"
};
extern const struct option run_option_rows[];

/* The lists, as bits. LIST_OWN is the command's own list. */
enum {
	LIST_MODEL = 1,
	LIST_DATA = 2,
	LIST_TRAIN = 4,
	LIST_EVAL = 8,
	LIST_RUN = 16,
	LIST_OWN = 32,
	LIST_STUDY = 64,
	LIST_TRAINING = LIST_MODEL | LIST_DATA | LIST_TRAIN, /* what a trained model depends on */
};
#define LISTS 7

/* Which options a command takes. */
struct scope {
	const char *command;      /* its name, for errors */
	unsigned lists;           /* LIST_... */
	const char *without;      /* options of these lists, its own aside, that it does not take, "out|force"; or NULL */
	const struct option *own; /* rows of LIST_OWN; offsets are into config.own */
};

/* What an option's name stands for. A method's option may be named as METHOD_OPTION, which concerns that method alone,
 * or, where it is `shared`, by its bare name, which concerns every chosen method that has it. */
struct option_name {
	char name[64];               /* as we write it: C spelling, no alias */
	unsigned list;               /* LIST_... of a folder's option; 0 for a method's */
	const struct option *option; /* the row; of the first method that has it where it is shared */
	const struct entry *entry;   /* the method; NULL for a folder's or a shared option */
	family_at family;            /* the method's family; NULL for a folder's option */
};

/* Looks a name (any spelling, or an alias) up; false if the scope does not take it. */
bool option_lookup(const struct scope *scope, const char *name, struct option_name *out);

/* The error for a name that option_lookup does not know: says which command takes it, or suggests the nearest of those
 * that the scope takes. `shown` is how the user wrote it ("--lr-rate", "lr_rate"). */
struct err option_unknown(const struct scope *scope, const char *name, const char *shown);

/* Other tools' names for an option, one by one; false past the last. */
bool option_alias_at(const struct option_name *n, int index, char text[64]);

/* Names of the scope one by one, folders' options first, then methods'; false past the last. For help and lists. */
bool option_name_at(const struct scope *scope, int index, struct option_name *out);

/* Does the scope take this row of this list? */
bool option_taken(const struct scope *scope, unsigned list, const struct option *row);

/* The family whose methods are an option's value, or the items of the list that it is, and whose flags it takes; NULL
 * for other options. */
family_at option_family(unsigned list, const struct option *row);

/* The rows of one list. */
const struct option *option_rows(const struct scope *scope, unsigned list);

/* Field of a folder's struct. */
union option_value option_get(const struct option *row, const void *options);
void option_put(const struct option *row, void *options, union option_value value);

/* A copy that lives as long as the program; equal texts share one. So structs that hold texts can be copied freely. */
const char *text_keep(const char *text);

#endif
