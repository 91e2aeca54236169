#include "eval/options.h"

#include "model/base/err.h"

#include <string.h>

#define OPTION_STRUCT eval_options
const struct option eval_option_rows[] = {
#include "model/base/option_rows.h"
#include "eval/options.def"
#include "model/base/option_end.h"
	{ 0 },
};

void eval_kv_name(int64_t kv, struct text_builder *b)
{
	const struct option *row = eval_option_rows;
	while (row->name && strcmp(row->name, "kv") != 0)
		row++;
	BUG_IF(!row->name, "there is no option kv");
	option_print(row, (union option_value){ .integer = kv }, b);
}
