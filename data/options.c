#include "data/options.h"

#define OPTION_STRUCT data_options
const struct option data_option_rows[] = {
#include "model/base/option_rows.h"
#include "data/options.def"
#include "model/base/option_end.h"
	{ 0 },
};
