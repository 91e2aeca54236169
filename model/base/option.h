#ifndef ROPEWALK_OPTION_H
#define ROPEWALK_OPTION_H

#include "err.h"
#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an option is, and what a method with options of its own is (an encoding, a scaling, a task). The lists
 * themselves are in the folders (options.def, and the `options` of each method); runs/options joins them. */

enum option_kind {
	OPTION_SWITCH,  /* integer 0 or 1: on/off/true/false/yes/no/1/0 */
	OPTION_INTEGER, /* integer */
	OPTION_NUMBER,  /* number; `choices` may name a word that stands for 0, as "auto" */
	OPTION_CHOICE,  /* integer: index into `choices` */
	OPTION_TEXT,    /* text */
	OPTION_METHOD,  /* struct method: NAME or NAME(option=value,...) out of `family` */
};

union option_value {
	int64_t integer;
	double number;
	const char *text;
};

struct entry;
typedef const struct entry *(*family_at)(int index); /* NULL past the last */

struct option {
	const char *name; /* in C spelling; '-' and '_' are equal to users */
	enum option_kind kind;
	const char *initial; /* the default, as a user would write it */
	double least, most;  /* allowed range, ends included */
	const char *choices; /* "published|spread" */
	const char *unit, *help;
	const char *aliases; /* other tools' names where the meaning is equal, "a|b"; or NULL */
	bool results;        /* changes the numbers a run gives, so it is part of the run's identity */
	bool untrained;      /* a method's option that evaluation alone uses: trained weights do not depend on it */
	bool shared;         /* a method's option that keeps its bare name as a flag (--factor, not --ntk-factor) */
	size_t offset;       /* of the field in its folder's struct; unused for a method's own options */
	family_at family;    /* OPTION_METHOD only */
	/* OPTION_TEXT of a method: takes in the file that the text names when it is parsed. *out stays as long as the
	 * program runs and says what was read, so that another content is another label. NULL: it is the text alone. */
	struct err (*load)(const char *text, const char **out);
};

struct method;

/* The common head of struct position, struct scaling and struct task: what the command line needs to know. */
struct entry {
	const char *name, *help;
	const char *paper; /* "Su et al. 2021, 2104.09864", or where else it comes from; NULL: our own */
	const struct option *options; /* ends with a NULL name; or NULL */
	/* May this method and the parts after it stand together? NULL: it takes none. */
	struct err (*joins)(const struct method *first);
};

#define METHOD_OPTIONS 12
#define METHOD_PARTS 6

/* An entry chosen with its options' values, in the order of entry->options; of A+B the first part, whose `plus` is the
 * rest. Parts after the first are kept as long as the program runs and never change: methods are copied by value. */
struct method {
	const struct entry *entry;
	union option_value value[METHOD_OPTIONS];
	uint8_t order[METHOD_OPTIONS]; /* indices of the options the user gave, as written */
	int given;                     /* how many */
	const struct method *plus;
};

/* Text to a value of that kind (OPTION_METHOD aside), checked against range or choices. The error names `o->name`, what
 * was given and what is allowed or the nearest choice. OPTION_TEXT refers to `text` itself. */
struct err option_parse(const struct option *o, const char *text, union option_value *out);

/* Value to text, such that option_parse gives it back. Appends to b. */
void option_print(const struct option *o, union option_value value, struct text_builder *b);

/* All options at their defaults. More than METHOD_OPTIONS or a default that does not parse is a BUG. */
struct method method_default(const struct entry *entry);

/* NAME or NAME(option=value,...), or several of them with + between. Unknown names suggest the nearest; a bare
 * value inside the parentheses, an option given twice or one that the method lacks is refused. `what` ("scaling")
 * names the family in errors. */
struct err method_parse(const char *what, family_at family, const char *text, struct method *out);

/* Sets one option by index, remembering that it was given. */
void method_set(struct method *m, int index, union option_value value);
int method_find(const struct entry *entry, const char *name); /* -1 if it has no such option */

/* Has this option another value than by default? For checks of options without effect: files of models give every
 * option, so that what was given says nothing. */
bool method_changed(const struct method *m, int index);

/* The parts of A+B+..., each alone (`plus` NULL), and one method of such parts. */
int method_split(const struct method *m, struct method part[METHOD_PARTS]);
struct method method_join(const struct method *part, int count);

/* NAME, or NAME(a=1,b=2) with the options that were given, in the order given: how the user wrote it. Appends. */
void method_label(const struct method *m, struct text_builder *b);

/* Puts every option that is `untrained` back to its default (of the first part). */
void method_as_trained(struct method *m);

/* NAME(a=1,...) with every option, in the order of the table: its identity. Appends. */
void method_identity(const struct method *m, struct text_builder *b);

/* Is it the method that the text names, however the options are written there: in another order, or a default among
 * them? */
bool method_means(const struct method *m, family_at family, const char *text);

/* Building blocks for the X-macro lists. A folder's options.def holds rows
 *   SWITCH(name, initial, results, help)
 *   INTEGER(name, initial, least, most, unit, results, help)
 *   NUMBER(name, initial, least, most, unit, results, help)
 *   NUMBER_OR(name, initial, word, least, most, unit, results, help)   word stands for 0
 *   CHOICE(name, initial, choices, results, help)
 *   TEXT(name, initial, unit, results, help)
 *   METHOD(name, initial, family, results, help)
 * and is included between option_fields.h (the struct's fields) or option_rows.h (the table). */

#endif
