#include "eval/options.h"

#define OPTION_STRUCT eval_options
const struct option eval_option_rows[] = {
#include "model/base/option_rows.h"
#include "eval/options.def"
#include "model/base/option_end.h"
	{ 0 },
};
