#ifndef ROPEWALK_CONFIG_H
#define ROPEWALK_CONFIG_H

#include "data/options.h"
#include "eval/options.h"
#include "model/options.h"
#include "runs/options.h"
#include "runs/study/study_options.h"
#include "train/options.h"

/* Every option's value, however it was given. A config is a plain value: copy it with `=`. */

/* A method's option given by flag (--alibi-slopes=spread, --factor=8): it waits until the methods are known. */
struct config_flag {
	struct option_name name;
	const char *text;
	const char *from; /* where it was given, see config_set */
	bool used;        /* by config_finish or config_scalings */
};
#define CONFIG_FLAGS 96

/* A folder's option that was given. */
struct config_given {
	const struct option *option;
	const char *from;
};
#define CONFIG_GIVEN 96

struct config {
	struct model_options model;
	struct data_options data;
	struct train_options train;
	struct eval_options eval;
	struct run_options run;
	struct study_options study;
	void *own; /* the command's own struct, or NULL; shared by copies */
	struct scope scope;

	struct config_flag flag[CONFIG_FLAGS];
	int flags;
	struct config_given given[CONFIG_GIVEN];
	int givens;
};

/* All defaults, for the options that `scope` takes. `own` (zeroed, may be NULL) takes the scope's own options. */
void config_init(struct config *c, const struct scope *scope, void *own);

/* The one way from text to a value: sets an option by any of its names. `from` is the place of the text for errors
 * ("FILE:LINE"), or NULL for the command line, where names are shown as --name. Later wins. Text is copied. */
typedef struct err config_setter(struct config *c, const char *name, const char *text, const char *from);
config_setter config_set;

/* Applies the flags of method options to the methods chosen (encoding, task, a command's own), whatever the order they
 * were given in; what stands in a method's own parentheses wins, then METHOD_OPTION, then the bare shared name. Called
 * once, when everything is set. With `strict`, a flag that has no effect is a usage error; flags of scalings are judged
 * by config_scalings where the scope has the list `scaling`. */
struct err config_finish(struct config *c, bool strict);

/* eval.scaling as methods with the flags applied. free() the array. */
struct err config_scalings(struct config *c, bool strict, struct method **scaling, int *count);

/* Was a folder's option given (by config_set), and not left at its default? `name` in C spelling. */
bool config_given(const struct config *c, const char *name);

/* Puts before an error the place where that option was given, if it was in a file. */
struct err config_at(const struct config *c, const char *name, struct err e);

/* Options of these lists that were not given take the values of another config, before config_finish. */
void config_inherit(struct config *c, unsigned lists, const struct config *from);

/* Methods of these lists as they are written in `from`, which are the same by value: options of a method that was
 * inherited are given no longer. */
void config_take_methods(struct config *c, unsigned lists, const struct config *from);

/* Does this name belong to a switch, which takes no word of its own? */
bool config_is_switch(const struct config *c, const char *name);

/* Is it a choice with `on` among its words? */
bool config_can_be_on(const struct config *c, const char *name);

/* Struct of a list, or NULL. */
void *config_list(struct config *c, unsigned list);
const void *config_list_const(const struct config *c, unsigned list);

/* "name = value" lines of every option of `lists`, methods by their label: a file for config_read. Appends. */
void config_print(const struct config *c, unsigned lists, struct text_builder *b);
/* One option's value as text, appended; name in C spelling. An unknown name is a BUG. */
void config_value(const struct config *c, const char *name, struct text_builder *b);

/* 16 hex digits: XXH3 over "name=value" lines of all options of `lists` that change results, in the order of the lists,
 * methods with every option. */
#define IDENTITY_TEXT 17
const char *config_identity(const struct config *c, unsigned lists, char text[IDENTITY_TEXT]);

/* The same of what the trained weights depend on: LIST_TRAINING without the methods' options that are `untrained`. */
const char *config_training_identity(const struct config *c, char text[IDENTITY_TEXT]);

/* A file of `name = value` lines. White space around both is trimmed; `#` at the start of a line or after white space
 * begins a comment; [section] lines give the lines after them a section. */
struct config_line {
	int number;
	const char *section; /* text between the brackets, trimmed; NULL before the first */
	const char *name, *value; /* name NULL: the section's own line */
};
/* All lines of a file; free() the array (texts are kept, text_keep). Errors name FILE:LINE. config_lines_of parses text
 * that is already in memory; `path` is for errors alone. */
struct err config_lines(const char *path, struct config_line **line, int *count);
struct err config_lines_of(const char *path, const char *text, struct config_line **line, int *count);

/* Sets every line of a file without sections by config_set, or by `set`, which takes the same. */
struct err config_read(struct config *c, const char *path);
struct err config_read_by(struct config *c, const char *path, config_setter *set);

#endif
