#include "model/options.h"

#include "model/position/scaling.h"

#define OPTION_STRUCT model_options
const struct option model_option_rows[] = {
#include "model/base/option_rows.h"
#include "model/options.def"
#include "model/base/option_end.h"
	{ 0 },
};
