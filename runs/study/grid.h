#ifndef ROPEWALK_GRID_H
#define ROPEWALK_GRID_H

#include "runs/study/study_file.h"

#include "runs/config.h"
#include "runs/run/rows.h"

/* A study's axes multiplied out. Arrays are stb_ds arrays; texts are kept. */

/* A cell is one trained model, and what it is evaluated under. */
struct cell {
	struct config config;           /* finished */
	char identity[IDENTITY_TEXT];   /* of model, data and training */
	char trained[IDENTITY_TEXT];    /* of its weights: equal in cells that only evaluation tells apart */
	const char *name;               /* of its folder: values of the axes and 8 digits of the identity */
	const char *label;              /* values of the axes other than seed; "" if there are none */
	const char *axes;               /* the same without the encoding */
	unsigned sections;              /* bit i: section i overrides something */
	struct method *scaling;         /* [scalings] */
	const char **scaling_label;     /* [scalings] */
	int scalings;
	int references;                 /* the last of them, added to what the study asks for: see option `references` */
	int *length;                    /* [lengths] */
	double *multiple;               /* [lengths] */
	int lengths;
	int group;                      /* cells of one label have one number, 0, 1, 2 ... in order */
	const char *tuned;              /* label of the scaling it was fine-tuned under; NULL: it was not */
	int base;                       /* the cell whose weights it goes on from, where it was */
};

#define STUDY_CELLS 4096

struct grid {
	struct cell *cell;  /* seeds are neighbours */
	int groups;
	double *multiple;   /* all there are, ascending */
	struct grid_alias {
		const char *label; /* of cells that are others' by identity, and so are not there */
		int group;
	} *alias;
};

/* Multiplies out. Cells of one identity are one cell. Errors: values that do not parse, a section that selects no cell,
 * an override of an axis, a method's option that no cell uses, more than STUDY_CELLS cells. grid_free takes a
 * zeroed struct too. */
struct err grid_build(const struct study *s, struct grid *out);

/* Appends a cell unless its identity is there already, which frees it; sets its group. */
void grid_add(struct grid *g, struct cell *cell);

/* A folder's name: the text made one, and digits of the identity. Kept. */
const char *cell_folder_name(const char *text, const char *identity);

void grid_free(struct grid *g);

/* The group of cells with this label, or with which those of this label are one; -1 if there is none. */
int grid_group(const struct grid *g, const char *label);

/* Can the cell's model take this scaling at this length? */
bool cell_possible(const struct cell *c, int scaling, int length);

/* Is the row this cell's as it would be evaluated now: same scaling, task, stream, protocol,
 * eval_seed and sequences? */
bool cell_owns(const struct cell *c, int scaling, const struct row *row);

/* Path of one scaling's rows in the cell's folder (run_folder_csv, with the cell's stream); free() it. */
char *cell_csv(const struct cell *c, const char *folder, int scaling);

/* "layers=3, steps=2000": what a section overrides, appended. */
void section_text(const struct study_section *s, struct text_builder *b);

#endif
