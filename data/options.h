#ifndef ROPEWALK_DATA_OPTIONS_H
#define ROPEWALK_DATA_OPTIONS_H

#include "data/task.h"

struct data_options {
#include "model/base/option_fields.h"
#include "data/options.def"
#include "model/base/option_end.h"
};

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option data_option_rows[];

#endif
