#include "runs/claims/claims.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/arguments.h"
#include "runs/options.h"
#include "runs/preset.h"

#include <stdlib.h>
#include <string.h>

#define FOLDER "runs/out" /* where studies go without --out */

static struct err open_source(const char *folder, struct claim_source *s)
{
	char *path = io_join(folder, s->name);
	struct err e = OK;
	if (io_exists(path)) {
		e = study_folder_open(path, &s->study, &s->grid);
		if (!e.code)
			e = results_read(path, &s->study, &s->grid, &s->results);
		s->there = !e.code;
	}
	free(path);
	return e;
}

struct err claim_source_open(struct claim_sources *from, const char *name, const struct results **out)
{
	struct claim_source *s = NULL;
	struct err e = OK;
	for (int i = 0; i < arrlen(from->source) && !s; i++)
		if (!strcmp(from->source[i]->name, name))
			s = from->source[i];
	if (!s) {
		s = stb_reallocate(NULL, sizeof *s);
		*s = (struct claim_source){ .name = name };
		arrput(from->source, s);
		e = open_source(from->folder, s);
	}
	*out = s->there ? &s->results : NULL;
	return e;
}

void claim_sources_free(struct claim_sources *from)
{
	for (int i = 0; i < arrlen(from->source); i++) {
		struct claim_source *s = from->source[i];
		if (s->there)
			results_free(&s->results);
		grid_free(&s->grid);
		study_free(&s->study);
		free(s);
	}
	arrfree(from->source);
	*from = (struct claim_sources){ 0 };
}

const char *claim_study_command(const struct claim_sources *from, const char *study)
{
	struct text_builder b = { 0 };
	text_add(&b, "ropewalk study %s", study);
	if (strcmp(from->folder, FOLDER) != 0) {
		char *path = io_join(from->folder, study);
		text_add(&b, " --out=");
		shell_quote(path, &b);
		free(path);
	}
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}

double claim_study_minutes(const char *study)
{
	struct study s = { 0 };
	char *path = preset_path(study);
	double minutes = path && !study_read(path, &s).code ? s.minutes : 0;
	study_free(&s);
	free(path);
	return minutes;
}

const char *claim_command(const struct claim *c, const struct claim_sources *from)
{
	struct text_builder b = { 0 };
	if (c->study)
		text_add(&b, "%s && ", claim_study_command(from, c->study));
	text_add(&b, "ropewalk claims %s", c->id);
	if (c->study && strcmp(from->folder, FOLDER) != 0) {
		text_add(&b, " --studies=");
		shell_quote(from->folder, &b);
	}
	const char *kept = text_keep(b.data);
	text_builder_free(&b);
	return kept;
}
