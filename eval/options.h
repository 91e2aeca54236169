#ifndef ROPEWALK_EVAL_OPTIONS_H
#define ROPEWALK_EVAL_OPTIONS_H

#include "model/base/option.h"

struct eval_options {
#include "model/base/option_fields.h"
#include "eval/options.def"
#include "model/base/option_end.h"
};

/* Values of `stream`, in the order of its choices. */
enum { EVAL_REPORT, EVAL_TUNE };

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option eval_option_rows[];

#endif
