#include "runs/study/merge.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/arguments.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"
#include "runs/study/merge_cell.h"
#include "runs/study/study_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
	const char *folder;
	struct study study;
	struct grid grid;
};

/* ---- One study? ---- */

static bool same_cell(const struct cell *a, const struct cell *b)
{
	const struct eval_options *x = &a->config.eval, *y = &b->config.eval;
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): both grids have so many cells */
	bool same = !strcmp(a->identity, b->identity) && a->scalings == b->scalings && a->lengths == b->lengths &&
		    x->eval_seed == y->eval_seed && x->sequences == y->sequences && x->stream == y->stream &&
		    x->kv == y->kv;
	for (int i = 0; same && i < a->scalings; i++)
		same = !strcmp(a->scaling_label[i], b->scaling_label[i]);
	for (int i = 0; same && i < a->lengths; i++)
		same = a->length[i] == b->length[i];
	return same;
}

static bool same_grid(const struct grid *a, const struct grid *b)
{
	bool same = arrlen(a->cell) == arrlen(b->cell);
	for (int i = 0; same && i < arrlen(a->cell); i++)
		same = same_cell(&a->cell[i], &b->cell[i]);
	return same;
}

static bool has_line(char **line, const char *text)
{
	for (; *line; line++)
		if (!strcmp(*line, text))
			return true;
	return false;
}

/* The lines of a study as it would be written. */
static char **lines_of(const struct study *s)
{
	struct text_builder b = { 0 };
	char **line = NULL, *rest = NULL;
	study_print(s, &b);
	for (char *l = strtok_r(b.data, "\n", &rest); l; l = strtok_r(NULL, "\n", &rest))
		arrput(line, (char *)(uintptr_t)text_keep(l));
	arrput(line, NULL);
	text_builder_free(&b);
	return line;
}

/* The first line of one that the other lacks. */
static const char *only_line(char **line, char **other)
{
	for (; *line; line++)
		if (!has_line(other, *line))
			return *line;
	return "no line of its own";
}

static struct err another_study(const struct source *a, const struct source *b)
{
	char **one = lines_of(&a->study), **two = lines_of(&b->study);
	struct err e = err_usage("Name folders of one study: --shard divides what the same study file says.",
				 "%.150s: another study than %.150s: it has `%.120s`, that one `%.120s`", b->folder,
				 a->folder, only_line(two, one), only_line(one, two));
	arrfree(one);
	arrfree(two);
	return e;
}

static struct err add_source(const char *folder, struct source **source)
{
	struct source s = { .folder = folder };
	for (int i = 0; i < arrlen(*source); i++)
		if (io_same((*source)[i].folder, folder))
			return err_usage("Name each once.", "%s: is %s", folder, (*source)[i].folder);
	TRY(study_folder_open(folder, &s.study, &s.grid));
	arrput(*source, s);
	return same_grid(&(*source)->grid, &s.grid) ? OK : another_study(*source, &s);
}

static void sources_free(struct source *source)
{
	for (int i = 0; i < arrlen(source); i++) {
		grid_free(&source[i].grid);
		study_free(&source[i].study);
	}
	arrfree(source);
}

/* ---- What came of it ---- */

static const char *state_of(const struct cell_plan *p)
{
	return p->damaged.code ? "damaged" : p->train ? "not trained" : NULL;
}

static void print_missing(const struct plan *plan)
{
	for (int i = 0; i < arrlen(plan->cell); i++) {
		const struct cell_plan *p = &plan->cell[i];
		const char *name = p->path ? run_folder_name(p->path) : plan->job->grid->cell[i].name;
		if (state_of(p))
			printf("  missing: %s: %s\n", name, state_of(p));
		else if (p->missing)
			printf("  missing: %s: %d of %d evaluations\n", name, p->missing, p->possible);
	}
}

static struct err print_state(const struct source *s, const char *out, int folders)
{
	struct study_job job = { .folder = out, .study = &s->study, .grid = &s->grid };
	struct plan plan = { .job = &job };
	struct err e = plan_make(&plan);
	if (!e.code) {
		struct totals t = plan_totals(&plan);
		int all = (int)arrlen(plan.cell);
		printf("study %s: %d folder%s merged; %d of %d models complete", out, folders, folders > 1 ? "s" : "",
		       t.finished, all);
		if (t.diverged)
			printf(", %d diverged", t.diverged);
		printf("\n");
		print_missing(&plan);
		if (t.finished + t.diverged < all)
			printf("  `ropewalk study %s --out=%s` computes what is missing\n",
			       shell_word(study_folder_file(out)), shell_word(out));
		printf("  `ropewalk table %s` prints the tables\n", shell_word(out));
	}
	plan_free(&plan);
	return e;
}

/* ---- Merging ---- */

/* The seconds of a folder by its place, whatever path leads there. */
static struct err add_seconds(const char *out, const char *folder)
{
	char *place = realpath(folder, NULL);
	struct err e = study_folder_add_merged(out, place ? place : folder, study_folder_seconds(folder));
	free(place);
	return e;
}

static struct err copy_all(const struct source *source, const char *const *from, int count, const char *out,
			   const char *command_line)
{
	const struct grid *g = &source->grid;
	struct progress p;
	struct err e = study_folder_write(out, &source->study, command_line);
	progress_start(&p, "merge");
	for (int i = 0; i < arrlen(g->cell) && !e.code; i++) {
		e = stop_error();
		if (!e.code)
			e = merge_cell(&g->cell[i], from, count, out);
		progress_show(&p, (double)(i + 1) / (double)arrlen(g->cell), "model %d of %d", i + 1,
			      (int)arrlen(g->cell));
	}
	progress_end(&p);
	for (int i = 0; i < arrlen(source) && !e.code; i++)
		if (!io_same(source[i].folder, out))
			e = add_seconds(out, source[i].folder);
	return e;
}

static struct err merge(const struct source *source, const char *const *from, int count, const char *out,
			const char *command_line)
{
	for (int i = 0; i < arrlen(source->grid.cell); i++)
		TRY(merge_cell_check(&source->grid.cell[i], from, count));
	TRY(copy_all(source, from, count, out, command_line));
	return OK;
}

/* What is in `out` already comes first, so that it stays. */
static struct err open_all(const char *const *folder, int count, const char *out, struct source **source,
			   const char ***from)
{
	char *study = io_join(out, STUDY_FILE);
	bool there = io_exists(study);
	free(study);
	for (int i = 0; i < count; i++)
		if (io_same(folder[i], out))
			return err_usage("Give a new folder, and name this one among those that are merged.",
					 "--out: %s is one of the folders", out);
	if (there)
		arrput(*from, out);
	for (int i = 0; i < count; i++)
		arrput(*from, folder[i]);
	for (int i = 0; i < arrlen(*from); i++)
		TRY(add_source((*from)[i], source));
	return OK;
}

struct err study_merge(const char *const *folder, int count, const char *out, const char *command_line)
{
	struct source *source = NULL;
	const char **from = NULL;
	TRY(study_folder_check(out));
	struct err e = open_all(folder, count, out, &source, &from);
	if (!e.code && source)
		e = merge(source, from, (int)arrlen(from), out, command_line);
	if (!e.code && source)
		e = print_state(source, out, count);
	sources_free(source);
	arrfree(from);
	return e;
}
