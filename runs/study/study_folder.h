#ifndef ROPEWALK_STUDY_FOLDER_H
#define ROPEWALK_STUDY_FOLDER_H

#include "runs/study/grid.h"

#include <jansson.h>

/* A study's folder: `study`, `command`, `record.json`, and the folder of each cell's run. runs/README.md says what is
 * in them. */

#define STUDY_FILE "study"
#define STUDY_COMMAND "command"
#define STUDY_RECORD "record.json"

enum cell_status { CELL_ABSENT, CELL_UNFINISHED, CELL_FINISHED, CELL_DIVERGED };

/* Where a cell's run is, whatever axes the study had when it was made, or where it is to be; free() the path. A folder
 * that ends in the cell's digits but holds another model is an error. */
struct err study_folder_find(const char *folder, const struct cell *c, char **path, enum cell_status *status);

/* Refuses a folder that holds other things than a study. Touches nothing. */
struct err study_folder_check(const char *folder);

/* Refuses to go on, as this grid, with a folder whose `study` has models that are there and of which the grid keeps not
 * a single one: it is another study's, and its tables would be gone with its `study`. One model in common is enough, so
 * values, axes, scalings and lengths can be added. A `study` that cannot be read is refused too. Touches nothing. */
struct err study_folder_continues(const char *folder, const struct grid *g);

/* The path of its `study`, kept. */
const char *study_folder_file(const char *folder);

/* Makes the folder if need be, and writes `study` and `command`. */
struct err study_folder_write(const char *folder, const struct study *s, const char *command_line);

/* Reads `study` back and multiplies it out. */
struct err study_folder_open(const char *folder, struct study *s, struct grid *g);

/* The command line that last worked on it, kept; "" if there is none. */
const char *study_folder_command(const char *folder);

/* Seconds spent on it so far, all invocations together. */
double study_folder_seconds(const char *folder);
struct err study_folder_add_seconds(const char *folder, double seconds);

/* Counts those of the folder `from`, which is merged into it, among them: once, however often it is called. */
struct err study_folder_add_merged(const char *folder, const char *from, double seconds);

#endif
