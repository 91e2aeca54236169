#ifndef ROPEWALK_MODEL_OPTIONS_H
#define ROPEWALK_MODEL_OPTIONS_H

#include "model/base/option.h"

struct model_options {
#include "model/base/option_fields.h"
#include "model/options.def"
#include "model/base/option_end.h"
};

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option model_option_rows[];

#endif
