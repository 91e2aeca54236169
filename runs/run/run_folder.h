#ifndef ROPEWALK_RUN_FOLDER_H
#define ROPEWALK_RUN_FOLDER_H

#include "runs/config.h"
#include "runs/run/measures.h"

#include <jansson.h>

/* A run's folder and its files: `config`, `command`, `train.jsonl`, `timing.jsonl`, `model.safetensors`,
 * `checkpoint-STEP.safetensors`, `record.json`, `eval-METHOD.csv`, `eval-METHOD-sequences.csv`, the same as
 * `tune-...` for stream `tune`, and `by_position-METHOD.csv`, `recall_grid-METHOD.csv`, `calibration-METHOD.csv`. runs/README.md says what is in them. */

#define RUN_MODEL "model.safetensors"
#define RUN_CONFIG "config"
#define RUN_COMMAND "command"
#define RUN_LOG "train.jsonl"
#define RUN_TIMING "timing.jsonl"
#define RUN_RECORD "record.json"

/* Usage error unless a run can be made or continued here: the folder is absent or empty, or holds a run and `force` is
 * set. Touches nothing. */
struct err run_folder_check(const char *path, bool force);

/* Does a folder hold nothing, but for a claim (model/base/lease.h) and what an interrupted write left behind? */
struct err run_folder_empty(const char *folder, bool *empty);

/* Makes the folder, with its config, command and a record: version_json, status "running", started, identity. With
 * `force` replaces the record first and then removes the other files listed above; what is not
 * listed is never touched. */
struct err run_folder_create(const char *path, const struct config *c, const char *command_line, bool force);

/* The config of a run: model, data and train are read from the folder; the rest of `c` stays. `path` may also be that
 * of a model.safetensors inside a run's folder. `folder` gets the folder's path; free() it. Errors: no run there, a run
 * that has not finished. */
struct err run_folder_open(const char *path, struct config *c, char **folder);

/* Is a run there that can be continued: begun, not diverged, its config written? */
struct err run_folder_begun(const char *folder, bool *begun);

/* Marks it as running again, after holding `c` to its config: an option that differs is a usage error that names it and
 * both values. Warns on stderr if another version of the program began it. */
struct err run_folder_resume(const char *folder, const struct config *c);

/* Its config: model, data and train; the rest of `c` stays. */
struct err run_folder_config(const char *folder, struct config *c);

/* The error of work in a folder that was there when it began: if it has gone meanwhile, that is the reason, and no
 * mistake in its name. */
struct err run_folder_gone(struct err e, const char *folder);

/* The record; json_decref it. run_record_write replaces it atomically. */
struct err run_record_read(const char *folder, json_t **record);
struct err run_record_write(const char *folder, const json_t *record);
/* Reads it, adds the members of `more` to it (or replaces them), writes it. Takes over the reference to `more`. */
struct err run_record_update(const char *folder, json_t *more);
/* "finished", "running", ...; "absent" if there is no record. Lives forever. A record that cannot be read is an error:
 * it is no reason to compute anew, and so to remove, what may be there. */
struct err run_record_status(const char *folder, const char **status);
const char *run_folder_status(const char *folder); /* "damaged" then */

/* Last component of a path: the run's name in tables. Kept. */
const char *run_folder_name(const char *path);

/* "METHOD" of a file name: the label with every run of characters other than [A-Za-z0-9_.] as '-', then '-' and 8 hex
 * digits of its XXH3. Appends. */
void run_folder_method(const char *label, struct text_builder *b);
/* Path of eval-METHOD.csv or eval-METHOD-sequences.csv; for the stream EVAL_TUNE, of tune-METHOD.csv or
 * tune-METHOD-sequences.csv, so that what was looked at to choose an option never mixes with what is reported. Where it
 * was decoded with a `kv`, that stands behind METHOD, and so does a `protocol` (settled) but `all`. free() it. */
char *run_folder_csv(const char *folder, const struct eval_options *eval, const char *label, bool sequences);
/* Likewise of by_position-METHOD.csv and its like, which are of stream EVAL_REPORT. free() it. */
char *run_folder_measure(const char *folder, const struct eval_options *eval, const char *label, enum measure_kind m);

/* The scalings that were measured on stream `tune` here: labels in the tune-*.csv files, sorted, each once (appended to
 * an stb_ds array; kept). A damaged file is an error. */
struct err run_folder_searched(const char *folder, const char ***label);

/* A method's label, as the user wrote it; kept. */
const char *label_of(const struct method *m);

#endif
