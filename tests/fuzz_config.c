#include "tests/hostile.h"

#include "model/base/io.h"
#include "runs/config.h"

#include <string.h>

/* The `config` of a run's folder, and what --config names. */

static const struct scope scope = { .command = "a run", .lists = LIST_TRAINING };

static struct err read_config(const char *path, struct config *c)
{
	config_init(c, &scope, NULL);
	TRY(refusal(config_read(c, path), path));
	return refusal(config_finish(c, false), path);
}

static struct err read(const char *path, const char *again)
{
	struct config c, second;
	char one[IDENTITY_TEXT], two[IDENTITY_TEXT];
	struct text_builder first = { 0 }, last = { 0 };
	TRY(read_config(path, &c));
	config_print(&c, LIST_TRAINING, &first);
	struct err e = io_write(again, first.data, first.size);
	if (!e.code)
		e = read_config(again, &second);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	config_print(&second, LIST_TRAINING, &last);
	BUG_IF(strcmp(first.data, last.data), "another config was read:\n%s\n%s", first.data, last.data);
	BUG_IF(strcmp(config_identity(&c, LIST_TRAINING, one), config_identity(&second, LIST_TRAINING, two)),
	       "%s became %s", one, two);
	text_builder_free(&first);
	text_builder_free(&last);
	return OK;
}

const struct target target_config = { "config", "config", read };
FUZZED(target_config)
