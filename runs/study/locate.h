#ifndef ROPEWALK_LOCATE_H
#define ROPEWALK_LOCATE_H

#include "model/base/err.h"

/* What a user names a study by. */

/* The path of a study given as a file or by a preset's name; free() it. An unknown name suggests the nearest and lists
 * what there is. */
struct err study_locate(const char *word, char **path);

/* "scaling" of "runs/presets/scaling.study"; kept. */
const char *study_name(const char *path);

#endif
