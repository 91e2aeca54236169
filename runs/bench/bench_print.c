#include "model/base/stb.h"
#include "runs/bench/bench.h"
#include "runs/bench/limit.h"
#include "runs/bench/memory.h"
#include "runs/options.h"
#include "runs/run/run_folder.h"
#include "runs/show/sheet.h"
#include "runs/show/wrap.h"

#include <math.h>
#include <stdarg.h>

static void columns(struct sheet *s, const char *const *name)
{
	for (; *name; name++)
		arrput(s->column, *name);
}

static void put(struct sheet_row *row, int column, const char *format, double value)
{
	if (!isfinite(value))
		snprintf(row->cell[column].line[0], SHEET_TEXT, "-");
	else
		snprintf(row->cell[column].line[0], SHEET_TEXT, format, value);
}

static void finish(struct sheet *s, struct text_builder *b)
{
	sheet_text(s, false, b);
	text_add(b, "\n");
	sheet_free(s);
}

static void note(struct text_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct text_builder *b, const char *format, ...)
{
	char text[400];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	wrap_paragraph(b, text);
}

/* Under TIMING_COLUMNS. */
static void put_timing(struct sheet_row *row, const struct timing *t, double flop)
{
	put(row, 0, "%.3f", 1e3 * t->best);
	put(row, 1, "%.3f", 1e3 * t->median);
	put(row, 2, "%.1f %%", 100 * t->spread);
	put(row, 3, "%.0f", 1e-9 * flop / t->best);
	put(row, 4, "%.0f", 1e-9 * flop / t->median);
}
#define TIMING_COLUMNS "best, ms", "median, ms", "spread", "GFLOP/s", "at median"

static void print_training(const struct bench_request *q, const struct bench_training *t, int V,
			   struct text_builder *b)
{
	static const char *const names[] = { TIMING_COLUMNS, "tokens/s", NULL };
	const struct { const char *label; const struct timing *timing; double share; } rows[] = {
		{ "training step", &t->step, 1 }, { "the limit: its products alone", &t->limit, 1 },
		{ "forward pass alone", &t->forward, 1.0 / 3 }, { "training step on one thread", &t->one_thread, 1 },
	};
	double flop = limit_flop(&q->model, V, (int)q->train.batch);
	double tokens = (double)(q->train.batch * q->model.train_length);
	struct sheet s = { .title = "Training" };
	columns(&s, names);
	for (int i = 0; i < 4; i++) {
		if (!rows[i].timing->count)
			continue;
		struct sheet_row *row = sheet_add(&s, rows[i].label);
		put_timing(row, rows[i].timing, flop * rows[i].share);
		put(row, 5, "%.0f", tokens / rows[i].timing->median);
	}
	finish(&s, b);
}

static void print_ratios(const struct bench_training *t, struct text_builder *b)
{
	char memory[32], peak[32];
	note(b, "step_over_limit %.3f (median of neighbours), %.3f (best over best)", t->over_limit.paired,
	     t->over_limit.best);
	if (t->one_thread.count)
		note(b, "speedup_threads %.2f (median of neighbours), %.2f (best over best)", t->speedup.paired,
		     t->speedup.best);
	note(b, "%d repetitions, each thing measured in turn; spread: between the quartiles, of the median",
	     t->step.count);
	note(b, "start %.1f ms: from the process's start to the first step, which ended at %.1f ms", 1e3 * t->start,
	     1e3 * t->first_step);
	note(b, "resident memory %s while training, %s at most in all", memory_text((size_t)t->memory, memory),
	     memory_text((size_t)resident_peak(), peak));
	text_add(b, "\n");
}

static void print_phases(const struct bench_training *t, struct text_builder *b)
{
	static const char *const names[] = { "ms", "share", NULL };
	struct sheet s = { .title = "Where a training step's time goes (threads' time / threads)" };
	columns(&s, names);
	for (int p = 0; p < PHASES; p++) {
		struct sheet_row *row = sheet_add(&s, phase_name((enum phase)p));
		put(row, 0, "%.3f", 1e3 * t->phase[p]);
		put(row, 1, "%.1f %%", 100 * t->phase[p] / t->phased_step);
	}
	finish(&s, b);
}

static void print_evaluation(const struct bench_request *q, const struct bench_evaluation *e, int V,
			     struct text_builder *b)
{
	static const char *const names[] = { "length", "sequences", "ns a token", "best", "spread", "GFLOP/s",
					     "resident", NULL };
	struct sheet s = { .title = "Evaluation" };
	columns(&s, names);
	for (int i = 0; i < arrlen(e->length); i++) {
		const struct bench_length *l = &e->length[i];
		char label[32], memory[32];
		snprintf(label, sizeof label, "%gx", l->multiple);
		struct sheet_row *row = sheet_add(&s, text_keep(label));
		put(row, 0, "%.0f", l->length);
		put(row, 1, "%.0f", l->sequences);
		double flop = forward_flop(&q->model, V, 1, l->length) / l->length;
		put(row, 2, l->refused.code ? "n/a" : "%.1f", 1e9 * l->token.median);
		if (l->refused.code)
			continue;
		put(row, 3, "%.1f", 1e9 * l->token.best);
		put(row, 4, "%.1f %%", 100 * l->token.spread);
		put(row, 5, "%.0f", 1e-9 * flop / l->token.median);
		snprintf(row->cell[6].line[0], SHEET_TEXT, "%s",
			 l->memory < 0 ? "-" : memory_text((size_t)l->memory, memory));
	}
	finish(&s, b);
	if (isfinite(e->b))
		note(b, "time a token = %.1f ns %c %.4f ns T; resident memory of the longest over the shortest: %.2f",
		     1e9 * e->a, e->b < 0 ? '-' : '+', 1e9 * fabs(e->b), e->memory_ratio);
	text_add(b, "\n");
}

static void print_encodings(const struct bench_request *q, const struct bench_encoding *encoding,
			    struct text_builder *b)
{
	static const char *const names[] = { "best, ms", "median, ms", "spread", "paired", "best/best", NULL };
	char title[100];
	snprintf(title, sizeof title, "A training step of each encoding, over that of %s",
		 q->model.encoding.entry->name);
	struct sheet s = { .title = title };
	columns(&s, names);
	for (int i = 0; i < arrlen(encoding); i++) {
		const struct bench_encoding *e = &encoding[i];
		struct sheet_row *row = sheet_add(&s, e->name);
		if (!e->step.count) {
			put(row, 0, "n/a", 0);
			continue;
		}
		put(row, 0, "%.3f", 1e3 * e->step.best);
		put(row, 1, "%.3f", 1e3 * e->step.median);
		put(row, 2, "%.1f %%", 100 * e->step.spread);
		put(row, 3, "%.3f", e->over_own.paired);
		put(row, 4, "%.3f", e->over_own.best);
	}
	finish(&s, b);
}

static void print_attention(const struct bench_request *q, const struct bench_attention *a, struct text_builder *b)
{
	static const char *const names[] = { TIMING_COLUMNS, "paired", "best/best", NULL };
	char title[160], product[48];
	snprintf(title, sizeof title,
		 "Attention forward on one thread, one head of %d on %d tokens, and over that of %s", a->head_dim,
		 a->length, q->model.encoding.entry->name);
	struct sheet s = { .title = title };
	columns(&s, names);
	for (int i = 0; i < arrlen(a->head); i++) {
		const struct bench_head *h = &a->head[i];
		struct sheet_row *row = sheet_add(&s, h->name);
		if (!h->forward.count) {
			put(row, 0, "n/a", 0);
			continue;
		}
		put_timing(row, &h->forward, a->flop);
		put(row, 5, "%.3f", h->over_own.paired);
		put(row, 6, "%.3f", h->over_own.best);
	}
	snprintf(product, sizeof product, "the library's product, %d^3", BENCH_PRODUCT);
	put_timing(sheet_add(&s, text_keep(product)), &a->product, BENCH_PRODUCT_FLOP);
	finish(&s, b);
	note(b, "GFLOP/s of attention: %s", BENCH_ATTENTION_FLOP);
	text_add(b, "\n");
}

void bench_print(const struct bench_request *q, const struct bench_result *r, struct text_builder *b)
{
	int V = task_of(&q->data.task)->vocabulary(&q->data.task);
	const struct model_options *m = &q->model;
	note(b, "%d layers, width %d, %d heads, hidden %d, T %d, batch %d, vocabulary %d; %s, %s", (int)m->layers,
	     (int)m->width, (int)m->heads, (int)m->hidden, (int)m->train_length, (int)q->train.batch, V,
	     label_of(&m->encoding), label_of(&q->data.task));
	note(b, "GFLOP/s: %s", BENCH_FLOP);
	text_add(b, "\n");
	print_training(q, &r->training, V, b);
	print_ratios(&r->training, b);
	print_phases(&r->training, b);
	print_evaluation(q, &r->evaluation, V, b);
	if (r->encoding)
		print_encodings(q, r->encoding, b);
	if (r->attention.head)
		print_attention(q, &r->attention, b);
}
