#ifndef ROPEWALK_STUDY_OPTIONS_H
#define ROPEWALK_STUDY_OPTIONS_H

#include "model/base/option.h"

/* What a study does with its grid of models beside training and evaluating each. */

struct study_options {
#include "model/base/option_fields.h"
#include "runs/study/options.def"
#include "model/base/option_end.h"
};

/* The rows of options.def, for runs/options; ends with a NULL name. */
extern const struct option study_option_rows[];

#endif
