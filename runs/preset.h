#ifndef ROPEWALK_PRESET_H
#define ROPEWALK_PRESET_H

#include "model/base/err.h"

/* Studies that come with the program: NAME.study in runs/presets below the working directory, beside the program's
 * build folder, or where `make install` puts them (../share/ropewalk/presets from the program). */

/* Path of a preset in fresh memory, or NULL if there is none of that name; free() it. */
char *preset_path(const char *name);

/* Names one by one, sorted; kept. NULL past the last. */
const char *preset_at(int index, const void *unused);

/* Prints the names, each with the comment in the first line of its file and the minutes that it says it takes. */
struct err preset_list(void);

#endif
