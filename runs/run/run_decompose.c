#include "runs/run/run_decompose.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/run/run_model.h"
#include "runs/study/study_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the command line asks of every run. */
struct asked {
	const struct config *config;
	const char *multiples;
	const struct method *scaling;
	int scalings;
};

static void subject_free(struct subject *s)
{
	model_close(&s->model);
	arrfree(s->scaling);
	free(s->length);
	free(s->multiple);
}

static void keep_scalings(struct subject *s, const struct method *scaling, int scalings)
{
	for (int i = 0; i < scalings; i++) {
		struct err e = scaling_check(&scaling[i], &s->config.model, (double)s->config.model.train_length);
		if (e.code)
			fprintf(stderr, "%s: %s is left out: %s\n", s->folder, label_of(&scaling[i]), e.text);
		else
			arrput(s->scaling, scaling[i]);
	}
}

static struct err refuse_twice(const struct decompose_set *set, const struct subject *s)
{
	char mine[IDENTITY_TEXT], other[IDENTITY_TEXT];
	config_identity(&s->config, LIST_TRAINING, mine);
	for (int i = 0; i < arrlen(set->subject); i++)
		if (!strcmp(mine, config_identity(&set->subject[i].config, LIST_TRAINING, other)))
			return err_usage("Name each run once.", "%s: the same model as %s", s->folder,
					 set->subject[i].folder);
	return OK;
}

/* Takes over the subject, whose folder, label and config stand. */
static struct err add(struct decompose_set *set, struct subject *s, const char *multiples,
		      const struct method *scaling, int scalings)
{
	struct err e = refuse_twice(set, s);
	if (!e.code)
		e = eval_lengths(multiples, (int)s->config.model.train_length, &s->config.data, &s->length,
				 &s->multiple, &s->lengths);
	if (!e.code)
		e = run_model_read(s->folder, &s->config, &s->model);
	if (e.code) {
		subject_free(s);
		return e;
	}
	keep_scalings(s, scaling, scalings);
	arrput(set->subject, *s);
	return OK;
}

static struct err add_run(struct decompose_set *set, const char *path, const struct asked *asked)
{
	struct subject s = { .config = *asked->config };
	struct method none = method_default(scaling_at(0));
	char *folder;
	TRY(run_folder_open(path, &s.config, &folder));
	s.folder = text_keep(folder);
	free(folder);
	s.label = label_of(&s.config.model.encoding);
	if (asked->scaling)
		return add(set, &s, asked->multiples, asked->scaling, asked->scalings);
	return add(set, &s, asked->multiples, &none, 1);
}

static const char *cell_text(const struct cell *c)
{
	struct text_builder b = { 0 };
	text_add(&b, "%s%s%s", label_of(&c->config.model.encoding), *c->axes ? ", " : "", c->axes);
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

static struct err add_cell(struct decompose_set *set, const char *folder, const struct cell *c,
			   const struct asked *asked, int *added)
{
	enum cell_status status;
	char *path;
	TRY(study_folder_find(folder, c, &path, &status));
	struct subject s = { .folder = text_keep(path), .label = cell_text(c), .config = *asked->config };
	free(path);
	if (status != CELL_FINISHED)
		return OK;
	s.config.model = c->config.model;
	s.config.data = c->config.data;
	s.config.train = c->config.train;
	++*added;
	if (asked->scaling)
		return add(set, &s, asked->multiples, asked->scaling, asked->scalings);
	/* The scalings added for reference are no methods that could fail. */
	return add(set, &s, asked->multiples, c->scaling, c->scalings - c->references);
}

static struct err add_study(struct decompose_set *set, const char *folder, const struct asked *asked)
{
	struct study study;
	struct grid grid;
	int added = 0;
	TRY(study_folder_open(folder, &study, &grid));
	struct err e = OK;
	for (int i = 0; i < arrlen(grid.cell) && !e.code; i++)
		e = add_cell(set, folder, &grid.cell[i], asked, &added);
	if (!e.code && !added)
		e = err_usage("Let `ropewalk study` go on.", "%s: none of the study's runs has finished", folder);
	grid_free(&grid);
	study_free(&study);
	return e;
}

struct err decompose_add(struct decompose_set *set, const char *path, const struct config *config,
			 const char *multiples, const struct method *scaling, int scalings)
{
	struct asked asked = { config, multiples, scaling, scalings };
	char *study = io_join(path, STUDY_FILE);
	bool is_study = io_exists(study);
	free(study);
	return is_study ? add_study(set, path, &asked) : add_run(set, path, &asked);
}

static struct eval_request request_of(const struct subject *s, int scaling, int length)
{
	return (struct eval_request){
		.model = &s->model,
		.data = &s->config.data,
		.scaling = &s->scaling[scaling],
		.length = s->length[length],
		.sequences = (int)s->config.eval.sequences,
		.eval_seed = (uint64_t)s->config.eval.eval_seed,
	};
}

struct err decompose_set_check(const struct decompose_set *set)
{
	int scalings = 0;
	for (int i = 0; i < arrlen(set->subject); i++) {
		const struct subject *s = &set->subject[i];
		scalings += (int)arrlen(s->scaling);
		for (int j = 0; j < arrlen(s->scaling); j++)
			for (int l = 0; l < s->lengths; l++) {
				struct eval_request request = request_of(s, j, l);
				TRY(err_at(decompose_check(&request), "%s", s->folder));
			}
	}
	if (scalings)
		return OK;
	return err_usage("Give --scaling=none, or a run whose encoding rotates.",
			 "nothing to decompose: none of the runs takes any of the scalings");
}

/* The place of a run's results under a scaling: beside those of other seeds, if there are any. */
static struct decomposed *place_of_result(struct decompose_set *set, int subject, int scaling)
{
	struct config but_seed = set->subject[subject].config;
	struct decomposed new = { .scaling = label_of(&set->subject[subject].scaling[scaling]) };
	but_seed.train.seed = 0;
	config_identity(&but_seed, LIST_TRAINING, new.identity);
	for (int i = 0; i < arrlen(set->decomposed); i++)
		if (!strcmp(set->decomposed[i].identity, new.identity) &&
		    !strcmp(set->decomposed[i].scaling, new.scaling))
			return &set->decomposed[i];
	arrput(set->decomposed, new);
	return &arrlast(set->decomposed);
}

/* Every length of one run under one scaling, appended to `result`. */
static struct err run_lengths(const struct subject *s, int scaling, struct decomposition **result)
{
	for (int l = 0; l < s->lengths; l++) {
		struct eval_request request = request_of(s, scaling, l);
		struct decomposition d;
		struct progress progress;
		char what[120];
		snprintf(what, sizeof what, "decompose %.40s %.40s at %d", run_folder_name(s->folder),
			 label_of(&s->scaling[scaling]), s->length[l]);
		progress_start(&progress, what);
		struct err e = decompose_run(&request, l ? *result : NULL, progress_tokens, &progress, &d);
		progress_end(&progress);
		TRY(err_at(e, "%s", s->folder));
		arrput(*result, d);
	}
	return OK;
}

struct err decompose_set_run(struct decompose_set *set)
{
	for (int i = 0; i < arrlen(set->subject); i++)
		for (int j = 0; j < arrlen(set->subject[i].scaling); j++) {
			struct decomposed *d = place_of_result(set, i, j);
			arrput(d->subject, i);
			arrput(d->result, NULL);
			TRY(run_lengths(&set->subject[i], j, &arrlast(d->result)));
		}
	return OK;
}

static void decomposed_free(struct decomposed *d)
{
	for (int i = 0; i < arrlen(d->result); i++) {
		for (int l = 0; l < arrlen(d->result[i]); l++)
			decomposition_free(&d->result[i][l]);
		arrfree(d->result[i]);
	}
	arrfree(d->result);
	arrfree(d->subject);
}

void decompose_set_free(struct decompose_set *set)
{
	for (int i = 0; i < arrlen(set->subject); i++)
		subject_free(&set->subject[i]);
	for (int i = 0; i < arrlen(set->decomposed); i++)
		decomposed_free(&set->decomposed[i]);
	arrfree(set->subject);
	arrfree(set->decomposed);
}
