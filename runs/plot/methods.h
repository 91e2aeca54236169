#ifndef ROPEWALK_METHODS_H
#define ROPEWALK_METHODS_H

#include "runs/plot/chart.h"
#include "runs/show/compare.h"

/* What the pictures of methods have in common: a study's rows, a dozen at most a panel, each with its own style. */

#define PANEL_METHODS 12

/* The rows that are no references, and those that are; stb_ds arrays. */
struct methods {
	struct contender *method, *reference;
};
struct methods methods_of(const struct results *r);
void methods_free(struct methods *m);

/* How many panels they need, and the first of the methods of one. */
int methods_panels(const struct methods *m);

/* A row's name; "trained model" where it would be empty. */
const char *methods_label(const struct results *r, const struct contender *c);

/* "study NAME: what", or of a run; and a panel's title: its group of tokens, with "(methods 13 - 24)" where there are
 * several panels of it. */
const char *methods_title(const struct results *r, const char *what);
const char *methods_panel_title(const struct methods *m, const char *group, int panel);

/* The trained length where all cells have one; 0. */
int methods_train_length(const struct results *r);

#endif
