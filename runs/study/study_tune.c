#include "runs/study/study_tune.h"

#include "eval/perplexity.h"
#include "model/base/stb.h"
#include "model/position/scaling.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/run/run_train.h"
#include "runs/run/run_tuning.h"
#include "train/course.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_FACTOR 4 /* of the longest sequence trained so far, where finetune_length is 0 */

static struct err check_length(const struct config *base, int64_t length)
{
	int longest = course_longest(&base->model, &base->train);
	if (length >= longest)
		return OK;
	return config_at(base, "finetune_length",
			 err_usage("Give a greater one.", "finetune_length: %" PRId64 " is less than the %d that the "
				   "models are trained at", length, longest));
}

/* Its weights depend on the base's, which their identity stands for: the checksum is not known before they are there. */
static const char *base_name(const struct cell *base)
{
	char text[IDENTITY_TEXT + 8];
	snprintf(text, sizeof text, "cell-%s", base->trained);
	return text_keep(text);
}

static const char *keep(struct text_builder *b)
{
	const char *kept = text_keep(b->data);
	text_builder_free(b);
	return kept;
}

/* "rope, fine-tuned at 256", and for its folder "rope-seed-101-fine-tuned-at-256-yarn-factor-4". */
static void set_names(const struct cell *base, struct cell *c)
{
	struct text_builder label = { 0 }, axes = { 0 }, folder = { 0 };
	int64_t length = c->config.train.length;
	text_add(&label, "%s%sfine-tuned at %" PRId64, base->label, *base->label ? ", " : "", length);
	text_add(&axes, "%s%sfinetune_length=%" PRId64, base->axes, *base->axes ? " " : "", length);
	text_add(&folder, "%.*s-tuned-%" PRId64 "-%s", (int)strlen(base->name) - 9, base->name, length, c->tuned);
	config_identity(&c->config, LIST_TRAINING, c->identity);
	config_training_identity(&c->config, c->trained);
	c->name = cell_folder_name(folder.data, c->identity);
	c->label = keep(&label);
	c->axes = keep(&axes);
	text_builder_free(&folder);
}

static void *copy_of(const void *from, size_t bytes)
{
	void *to = malloc(bytes);
	BUG_IF(!to, "no memory for a cell of a study");
	return memcpy(to, from, bytes);
}

static void set_evaluation(const struct cell *base, struct cell *c)
{
	size_t n = (size_t)base->lengths;
	c->scaling = copy_of(&c->config.model.trained_scaling, sizeof *c->scaling);
	c->scaling_label = NULL;
	arrput(c->scaling_label, c->tuned);
	c->scalings = 1;
	c->references = 0;
	c->length = copy_of(base->length, n * sizeof *c->length);
	c->multiple = copy_of(base->multiple, n * sizeof *c->multiple);
}

/* `refused` says why the model does not take the scaling, if so. */
static struct err tune_cell(struct grid *g, int base, const struct method *scaling, struct err *refused)
{
	const struct cell *from = &g->cell[base];
	const struct study_options *o = &from->config.study;
	struct cell c = *from;
	int64_t longest = course_longest(&from->config.model, &from->config.train);
	int64_t length = o->finetune_length ? o->finetune_length : LENGTH_FACTOR * longest;
	TRY(check_length(&from->config, length));
	*refused = tuning_config(&from->config, scaling, length, o->finetune_steps, o->finetune_lr, &c.config);
	if (refused->code)
		return OK;
	c.config.train.base = base_name(from);
	c.tuned = label_of(&c.config.model.trained_scaling);
	c.base = base;
	set_names(from, &c);
	set_evaluation(from, &c);
	grid_add(g, &c);
	return OK;
}

static struct err scalings_of(const struct cell *c, struct method **scaling, int *count)
{
	*scaling = NULL;
	*count = 0;
	if (!*c->config.study.finetune)
		return OK;
	return config_at(&c->config, "finetune", err_at(eval_scalings(c->config.study.finetune, scaling, count),
							"finetune"));
}

static const struct method *method_named(const struct method *scaling, int count, const char *label)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(label_of(&scaling[i]), label))
			return &scaling[i];
	return NULL;
}

/* Of one scaling, over the models that ask for it. */
static struct err tune_all(struct grid *g, int models, const char *label)
{
	struct err refused = OK;
	int asked = 0, made = 0;
	for (int i = 0; i < models; i++) {
		struct method *scaling;
		struct err why = OK;
		int count;
		TRY(scalings_of(&g->cell[i], &scaling, &count));
		const struct method *m = method_named(scaling, count, label);
		struct err e = m ? tune_cell(g, i, m, &why) : OK;
		free(scaling);
		TRY(e);
		made += m && !why.code;
		asked = m ? i : asked;
		refused = why.code ? why : refused;
	}
	return made ? OK : config_at(&g->cell[asked].config, "finetune", err_at(refused, "finetune: %s", label));
}

/* Every scaling's label once, in order. An stb_ds array of kept texts. */
static struct err labels_of(const struct grid *g, const char ***label)
{
	*label = NULL;
	for (int i = 0; i < arrlen(g->cell); i++) {
		struct method *scaling;
		int count;
		TRY(scalings_of(&g->cell[i], &scaling, &count));
		for (int j = 0; j < count; j++) {
			const char *one = label_of(&scaling[j]);
			bool there = false;
			for (int k = 0; k < arrlen(*label); k++)
				there |= (*label)[k] == one;
			if (!there)
				arrput(*label, one);
		}
		free(scaling);
	}
	return OK;
}

struct err tune_cells(struct grid *g)
{
	const char **label;
	int models = (int)arrlen(g->cell);
	struct err e = labels_of(g, &label);
	for (int i = 0; i < arrlen(label) && !e.code; i++)
		e = tune_all(g, models, label[i]);
	arrfree(label);
	return e;
}

struct err tune_train(const char *path, const struct config *config, const char *base_path,
		      const struct config *base_config, struct lease **base_lease, const char *command_line,
		      const char *what)
{
	struct model base = { 0 };
	struct run_trained trained;
	struct err e = run_model_read(base_path, base_config, &base);
	lease_release(*base_lease);
	*base_lease = NULL;
	if (!e.code)
		e = run_train_from(path, config, &base, command_line, what, &trained);
	model_close(&base);
	return e;
}
