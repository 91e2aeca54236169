#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/run/run_eval.h"
#include "runs/run/run_folder.h"
#include "runs/stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What has been evaluated; `calibration` are stb_ds rows of all scalings, with --calibrate=on. */
struct evaluated {
	struct row *row;
	struct measure_row *calibration;
	bool bytes, calibrated;
};

static void print_heading(const struct row *r, const struct evaluated *all)
{
	struct text_builder kv = { 0 };
	const char *protocol = strstr(r->protocol, "; protocol ");
	eval_kv_name(row_kv(r), &kv);
	printf("%s, %s, seed %" PRId64 ": scaling %s, eval_seed %" PRId64 ", %" PRId64 " sequences%s%s%s%s%s\n",
	       r->encoding, r->task, r->seed, r->scaling, r->eval_seed, r->sequences,
	       row_stream(r) == EVAL_TUNE ? " of stream tune" : "",
	       row_kv(r) == EVAL_KV_OFF ? "" : ", token by token with kv ",
	       row_kv(r) == EVAL_KV_OFF ? "" : kv.data, protocol ? "\nprotocol" : "",
	       protocol ? protocol + strlen("; protocol") : "");
	text_builder_free(&kv);
	printf("%8s %8s %8s  %-8s %12s %10s %9s %9s %10s%s%s\n", "length", "multiple", "factor", "group", "perplexity",
	       "+-", "accuracy", "exact", "scored", all->bytes ? "  bits/byte" : "",
	       all->calibrated ? "   calibrated  temperature" : "");
}

static const struct measure_row *calibration_of(const struct row *r, const struct measure_row *rows)
{
	for (ptrdiff_t i = 0; i < arrlen(rows); i++) {
		const struct row *c = &rows[i].row;
		if (c->length == r->length && c->multiple == r->multiple && c->eval_seed == r->eval_seed &&
		    c->sequences == r->sequences && !strcmp(c->scaling, r->scaling) && !strcmp(c->group, r->group))
			return &rows[i];
	}
	return NULL;
}

/* The error of a perplexity exp(nll) is that of nll times itself. */
static void print_row(const struct row *r, const struct evaluated *all)
{
	const struct eval_cell *c = &r->cell;
	const struct measure_row *m = calibration_of(r, all->calibration);
	printf("%8" PRId64 " %8.4g %8.4g  %-8s ", r->length, r->multiple, r->factor, r->group);
	if (c->scored)
		printf("%12.5g %10.2g %7.2f %% %7.2f %% %10" PRId64, c->perplexity, c->perplexity * c->nll_se,
		       100 * c->accuracy, 100 * c->exact, c->scored);
	else
		printf("%12s %10s %9s %9s %10d", "-", "-", "-", "-", 0);
	if (all->bytes)
		c->scored ? printf(" %10.4f", c->nll / M_LN2) : printf(" %10s", "-");
	if (m && m->row.cell.scored)
		printf(" %12.5g %12.3f", m->row.cell.perplexity, m->temperature);
	else if (all->calibrated)
		printf(" %12s %12s", "-", "-");
	fputs("\n", stdout);
}

static void print_rows(const struct evaluated *all)
{
	const struct row *rows = all->row;
	for (ptrdiff_t i = 0; i < arrlen(rows); i++) {
		if (i == 0 || strcmp(rows[i].scaling, rows[i - 1].scaling)) {
			fputs(i ? "\n" : "", stdout);
			print_heading(&rows[i], all);
		}
		print_row(&rows[i], all);
	}
}

enum eval_format { EVAL_TEXT, EVAL_CSV, EVAL_JSON };

struct eval_own {
	int64_t format;
};

static const struct option own_rows[] = {
	{ .name = "format", .kind = OPTION_CHOICE, .initial = "text", .choices = "text|csv|json", .unit = "",
	  .help = "how the numbers are printed", .offset = offsetof(struct eval_own, format) },
	{ 0 },
};

static void print_records(const struct evaluated *all, enum eval_format format)
{
	struct records records = { 0 };
	for (ptrdiff_t i = 0; i < arrlen(all->row); i++) {
		const struct measure_row *m = calibration_of(&all->row[i], all->calibration);
		rows_records(&all->row[i], 1, &records);
		if (all->calibrated) {
			record_number(&records, "calibrated_perplexity",
				      m && m->row.cell.scored ? m->row.cell.perplexity : NAN);
			record_number(&records, "temperature", m ? m->temperature : NAN);
		}
	}
	records_print(&records, format == EVAL_JSON);
	records_free(&records);
}

static struct err read_calibration(const struct run_evaluation *e, struct evaluated *all)
{
	for (int i = 0; all->calibrated && i < e->scalings; i++) {
		struct measure_row *rows = NULL;
		char *path = run_folder_measure(e->folder, &e->config->eval, label_of(&e->scaling[i]),
						MEASURE_CALIBRATION);
		struct err error = io_exists(path) ? measure_rows_read(MEASURE_CALIBRATION, path, &rows) : OK;
		free(path);
		for (ptrdiff_t j = 0; j < arrlen(rows); j++)
			arrput(all->calibration, rows[j]);
		arrfree(rows);
		if (error.code)
			return error;
	}
	return OK;
}

static struct err evaluate(struct run_evaluation *e)
{
	const struct eval_own *own = e->config->own;
	struct evaluated all = { .bytes = task_of(&e->config->data.task)->bytes,
				 .calibrated = e->config->eval.calibrate };
	TRY(run_evaluate_check(e));
	TRY(command_start(e->config));
	stop_catch();
	struct err error = run_evaluate(e, &all.row), unread = read_calibration(e, &all);
	error = error.code ? error : unread;
	if (own->format == EVAL_TEXT)
		print_rows(&all);
	else if (!error.code)
		print_records(&all, (enum eval_format)own->format);
	arrfree(all.row);
	arrfree(all.calibration);
	if (stop_is(&error))
		snprintf(error.hint, sizeof error.hint, "What is finished is kept: the same command goes on.");
	return error;
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct method *scaling = NULL;
	int *length = NULL, scalings = 0, lengths = 0;
	double *multiple = NULL;
	char *folder = NULL;
	bool given = config_given(c, "scaling");
	struct err e = config_finish(c, true);
	if (!e.code && given)
		e = config_scalings(c, true, &scaling, &scalings);
	if (!e.code)
		e = run_folder_open(in->word[0], c, &folder);
	if (!e.code && !given) {
		c->eval.scaling = label_of(&c->model.trained_scaling);
		e = config_scalings(c, true, &scaling, &scalings);
	}
	if (!e.code)
		e = config_at(c, "multiples", eval_lengths(c->eval.multiples, (int)c->model.train_length, &c->data,
							   &length, &multiple, &lengths));
	if (!e.code)
		e = config_at(c, "protocol", protocol_settle(&c->eval.protocol, (int)c->model.train_length, length,
							     lengths));
	if (!e.code) {
		struct run_evaluation job = { .folder = folder, .config = c, .scaling = scaling, .scalings = scalings,
					      .length = length, .multiple = multiple, .lengths = lengths,
					      .force = c->run.force };
		e = evaluate(&job);
	}
	free(scaling);
	free(length);
	free(multiple);
	free(folder);
	return e;
}

const struct command command_eval = {
	.name = "eval",
	.words = "DIR",
	.help = "measure a trained run at several lengths under RoPE scalings",
	.more = "DIR is a run's folder, or the model.safetensors in it. Prints a table for each scaling, a row\n"
		"for each length and group of targets. Writes eval-SCALING.csv and eval-SCALING-sequences.csv into\n"
		"DIR, and what explains them: by_position-SCALING.csv and recall_grid-SCALING.csv; with\n"
		"--calibrate=on calibration-SCALING.csv, and its perplexities and temperatures stand in the table.\n"
		"What is there already is not computed again.\n"
		"Examples:\n"
		"  ropewalk eval runs/out/rope-101\n"
		"  ropewalk eval runs/out/rope-101 --scaling='none,ntk,yarn(ramp=rotations,beta_fast=4)'\n"
		"  ropewalk eval runs/out/rope-101 --scaling=dynamic --kv=rotated --multiples=1,2,4\n"
		"  ropewalk eval runs/out/rope-101 --protocol='last(tokens=32)'",
	.least = 1,
	.most = 1,
	.lists = LIST_EVAL | LIST_RUN | LIST_OWN,
	.without = "out|references|resume|save_every",
	.own = own_rows,
	.own_size = sizeof(struct eval_own),
	.run = run,
};
