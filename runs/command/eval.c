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

static void print_heading(const struct row *r, bool bytes)
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
	printf("%8s %8s %8s  %-8s %12s %10s %9s %9s %10s%s\n", "length", "multiple", "factor", "group", "perplexity",
	       "+-", "accuracy", "exact", "scored", bytes ? "  bits/byte" : "");
}

/* The error of a perplexity exp(nll) is that of nll times itself. */
static void print_row(const struct row *r, bool bytes)
{
	const struct eval_cell *c = &r->cell;
	printf("%8" PRId64 " %8.4g %8.4g  %-8s ", r->length, r->multiple, r->factor, r->group);
	if (c->scored)
		printf("%12.5g %10.2g %7.2f %% %7.2f %% %10" PRId64, c->perplexity, c->perplexity * c->nll_se,
		       100 * c->accuracy, 100 * c->exact, c->scored);
	else
		printf("%12s %10s %9s %9s %10d", "-", "-", "-", "-", 0);
	if (bytes && c->scored)
		printf(" %10.4f", c->nll / M_LN2);
	fputs("\n", stdout);
}

static void print_rows(const struct row *rows, bool bytes)
{
	for (ptrdiff_t i = 0; i < arrlen(rows); i++) {
		if (i == 0 || strcmp(rows[i].scaling, rows[i - 1].scaling)) {
			fputs(i ? "\n" : "", stdout);
			print_heading(&rows[i], bytes);
		}
		print_row(&rows[i], bytes);
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

static void print_records(const struct row *rows, enum eval_format format)
{
	struct records records = { 0 };
	rows_records(rows, (int)arrlen(rows), &records);
	records_print(&records, format == EVAL_JSON);
	records_free(&records);
}

static struct err evaluate(struct run_evaluation *e)
{
	const struct eval_own *own = e->config->own;
	struct row *rows = NULL;
	TRY(run_evaluate_check(e));
	TRY(command_start(e->config));
	stop_catch();
	struct err error = run_evaluate(e, &rows);
	if (own->format == EVAL_TEXT)
		print_rows(rows, task_of(&e->config->data.task)->bytes);
	else if (!error.code)
		print_records(rows, (enum eval_format)own->format);
	arrfree(rows);
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
		"--calibrate=on calibration-SCALING.csv, which is not printed. What is there already is not computed\n"
		"again.\n"
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
