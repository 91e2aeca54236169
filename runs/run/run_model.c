#include "runs/run/run_model.h"

#include "model/base/arena.h"
#include "model/base/io.h"
#include "model/weights.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_origin.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

struct err run_model_write(const char *folder, const struct config *c, const struct model *m)
{
	struct origin origin;
	origin_open(c, &origin);
	char *path = io_join(folder, RUN_MODEL);
	struct err e = weights_write(m, path, origin.metadata, 2);
	free(path);
	origin_close(&origin);
	return e;
}

/* Others cannot be trained or measured: rows without numbers would be written, and refused when they are read. */
static struct err check_finite(const struct model *m, const char *path)
{
	const struct parameter *p = layout_not_finite(&m->layout, m->value);
	if (!p)
		return OK;
	size_t item = 0;
	while (isfinite(m->value[p->offset + item]))
		item++;
	return err_usage("Train the run again with --force.", "%s: tensor %s: item %zu is %g where weights are finite",
			 path, p->name, item, (double)m->value[p->offset + item]);
}

static struct err read_model(const char *path, const struct config *c, struct model *m)
{
	struct safetensors file = { 0 };
	if (!io_exists(path))
		return err_usage("Put it back, or move the folder away and train again.",
				 "%s: is missing, though the run has finished", path);
	TRY(safetensors_read(path, &file));
	struct err e = weights_open(&file, path, m);
	if (!e.code) {
		e = origin_check(c, &file, &m->options, path, "Put back the file that belongs to the config beside "
				 "it, or train the run again with --force.");
		if (!e.code)
			e = check_finite(m, path);
		if (e.code)
			model_close(m);
	}
	safetensors_free(&file);
	return e;
}

struct err run_model_read(const char *folder, const struct config *c, struct model *m)
{
	char *path = io_join(folder, RUN_MODEL);
	*m = (struct model){ 0 };
	struct err e = read_model(path, c, m);
	free(path);
	return e;
}

struct err run_model_sum(const char *folder, const char **sum)
{
	struct safetensors file = { 0 };
	char *path = io_join(folder, RUN_MODEL);
	struct err e = safetensors_read(path, &file);
	const char *text = e.code ? NULL : safetensors_metadata(&file, WEIGHTS_SUM);
	*sum = text_keep(text ? text : "none");
	if (!e.code && !text)
		e = err_usage("Train the run again with --force.", "%s: has no checksum", path);
	safetensors_free(&file);
	free(path);
	return e;
}

#define LOG_LINE 160         /* bytes of a line of train.jsonl at most, and its share of timing.jsonl */
#define SMALL_FILES (1 << 17) /* the header of the weights, config, command and record */

/* Of the weights' size: the model, two checkpoints of three slabs that are kept, and one that is being written. */
#define FILES_OF_WEIGHTS (1 + 3 * 3)

size_t run_model_space(const struct config *c, size_t parameters)
{
	return FILES_OF_WEIGHTS * parameters * sizeof(real) + (size_t)c->train.steps * LOG_LINE + SMALL_FILES;
}

size_t run_model_taken(const char *folder)
{
	char **name;
	int count;
	size_t bytes = 0;
	if (!io_is_folder(folder) || io_list(folder, &name, &count).code)
		return 0;
	for (int i = 0; i < count; i++) {
		struct stat status;
		char *path = io_join(folder, name[i]);
		if (!lstat(path, &status) && S_ISREG(status.st_mode))
			bytes += (size_t)status.st_size;
		free(path);
	}
	io_names_free(name, count);
	return bytes;
}

struct err run_model_fits(const char *folder, size_t bytes)
{
	char need[32], have[32];
	size_t available = io_available(folder), taken = run_model_taken(folder);
	bytes -= taken < bytes ? taken : bytes;
	if (bytes <= available)
		return OK;
	return err_failed("Free some space there, or choose a folder on another disk.",
			  "%s: training writes up to %s, and its disk has %s left", folder, memory_text(bytes, need),
			  memory_text(available, have));
}
