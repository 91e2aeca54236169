#include "train/checkpoint.h"

#include "model/weights.h"
#include "train/adamw.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STEP_KEY "step"

enum { SLABS = 3 };

static void slabs_of(const struct training_state *s, struct weights_slab slab[SLABS])
{
	slab[0] = (struct weights_slab){ "", s->model->value };
	slab[1] = (struct weights_slab){ "adam.m.", s->m };
	slab[2] = (struct weights_slab){ "adam.v.", s->v };
}

/* Of the first tensor that is not finite, the name with its slab's prefix; false if all are. */
static bool not_finite(const struct training_state *s, const struct weights_slab slab[SLABS], char name[160])
{
	for (int i = 0; i < SLABS; i++) {
		const struct parameter *p = layout_not_finite(&s->model->layout, slab[i].value);
		if (!p)
			continue;
		snprintf(name, 160, "%s%s", slab[i].prefix, p->name);
		return true;
	}
	return false;
}

struct err checkpoint_write(struct training *t, const char *path, const struct metadata *extra, int extra_count)
{
	struct training_state s = training_state(t);
	struct weights_slab slab[SLABS];
	struct metadata metadata[8];
	char name[160], step[32];
	slabs_of(&s, slab);
	if (not_finite(&s, slab, name))
		return err_diverged(training_diverged_hint, "step %" PRId64 ": after the update %s is not finite",
				    *s.step, name);
	BUG_IF(extra_count + 1 > (int)(sizeof metadata / sizeof metadata[0]), "%d metadata", extra_count);
	snprintf(step, sizeof step, "%" PRId64, *s.step);
	metadata[0] = (struct metadata){ STEP_KEY, step };
	if (extra_count)
		memcpy(metadata + 1, extra, (size_t)extra_count * sizeof *extra);
	return weights_write_slabs(s.model, slab, SLABS, CHECKPOINT_FORMAT, path, metadata, extra_count + 1);
}

static struct err read_step(const struct training_state *s, const struct safetensors *file, int64_t *step)
{
	const char *text = safetensors_metadata(file, STEP_KEY);
	if (!text || !text_to_integer(text, step) || *step < 0 || *step > s->steps)
		return err_usage(NULL, "its step is %.40s, and a whole number from 0 to %" PRId64 " is wanted",
				 text ? text : "missing", s->steps);
	return OK;
}

static struct err read_values(struct training_state *s, const struct safetensors *file, const char *path)
{
	struct weights_slab slab[SLABS];
	char name[160];
	slabs_of(s, slab);
	TRY(weights_fill_slabs(s->model, file, path, slab, SLABS));
	if (not_finite(s, slab, name))
		return err_usage("Training from it would give nothing else.", "%s: %s is not finite", path, name);
	return OK;
}

struct err checkpoint_read(struct training *t, const struct safetensors *file, const char *path)
{
	struct training_state s = training_state(t);
	struct model_options options = { 0 };
	int64_t step;
	int V;
	TRY(err_at(weights_format_options(file, CHECKPOINT_FORMAT, &options, &V), "%s", path));
	TRY(err_at(read_step(&s, file, &step), "%s", path));
	TRY(read_values(&s, file, path));
	return training_continue(t, step);
}
