#ifndef ROPEWALK_MERGE_H
#define ROPEWALK_MERGE_H

#include "model/base/err.h"

/* Joins the folders of a study's shards, or any folders of one study, in the folder `out`, new or one of that study.
 * Before anything is written all is held against each other: an error names what differs between two studies, or two
 * files of one cell. Cells that have come to their end are copied (merge_cell), then the seconds are. Done
 * again after it was cut short it ends the same. On stdout: how many models are complete, and what the others lack. */
struct err study_merge(const char *const *folder, int count, const char *out, const char *command_line);

#endif
