#include "runs/study/study_options.h"

#define OPTION_STRUCT study_options
const struct option study_option_rows[] = {
#include "model/base/option_rows.h"
#include "runs/study/options.def"
#include "model/base/option_end.h"
	{ 0 },
};
