#include "train/options.h"

#define OPTION_STRUCT train_options
const struct option train_option_rows[] = {
#include "model/base/option_rows.h"
#include "train/options.def"
#include "model/base/option_end.h"
	{ 0 },
};
