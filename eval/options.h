#ifndef ROPEWALK_EVAL_OPTIONS_H
#define ROPEWALK_EVAL_OPTIONS_H

#include "eval/protocol.h"

struct eval_options {
#include "model/base/option_fields.h"
#include "eval/options.def"
#include "model/base/option_end.h"
};

/* Values of `stream`, in the order of its choices. */
enum { EVAL_REPORT, EVAL_TUNE };

/* Values of `kv`, likewise, and their names. */
enum { EVAL_KV_OFF, EVAL_KV_RECOMPUTE, EVAL_KV_UNROTATED, EVAL_KV_ROTATED, EVAL_KVS };
void eval_kv_name(int64_t kv, struct text_builder *b);

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option eval_option_rows[];

#endif
