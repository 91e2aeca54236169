#ifndef ROPEWALK_TRAIN_OPTIONS_H
#define ROPEWALK_TRAIN_OPTIONS_H

#include "model/base/option.h"

struct train_options {
#include "model/base/option_fields.h"
#include "train/options.def"
#include "model/base/option_end.h"
};

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option train_option_rows[];

#endif
