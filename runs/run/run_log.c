#include "runs/run/run_log.h"

#include "model/base/io.h"
#include "runs/run/run_folder.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

void run_log_line(struct text_builder *b, const struct step_report *s)
{
	char loss[NUMBER_TEXT], norm[NUMBER_TEXT], lr[NUMBER_TEXT], accuracy[NUMBER_TEXT];
	text_add(b, "{\"step\":%" PRId64 ",\"loss\":%s,\"grad_norm\":%s,\"lr\":%s,\"accuracy\":%s", s->step,
		 number_to_text(s->loss, loss), number_to_text(s->grad_norm, norm), number_to_text(s->lr, lr),
		 number_to_text(s->accuracy, accuracy));
	if (s->length)
		text_add(b, ",\"length\":%d", s->length);
	text_add(b, "}\n");
}

void run_log_timing(struct text_builder *b, int64_t step, double seconds, double tokens_per_second)
{
	text_add(b, "{\"step\":%" PRId64 ",\"seconds\":%.3f,\"tokens_per_second\":%.0f}\n", step, seconds,
		 tokens_per_second);
}

/* A log in memory, read line by line. */
struct lines {
	char *text;
	size_t size, at; /* at: what is behind the last line that was taken */
};

static struct err lines_open(const char *folder, const char *name, struct lines *l)
{
	char *path = io_join(folder, name);
	*l = (struct lines){ 0 };
	struct err e = io_exists(path) ? io_read(path, &l->text, &l->size) : OK;
	free(path);
	return e;
}

/* The next line, whole and a JSON object with a step; NULL otherwise. */
static json_t *lines_next(struct lines *l, int64_t *step, size_t *end)
{
	const char *line = l->text + l->at, *newline = l->size > l->at ? memchr(line, '\n', l->size - l->at) : NULL;
	json_t *o = newline ? json_loadb(line, (size_t)(newline - line), JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *number = json_object_get(o, "step");
	if (!json_is_integer(number)) {
		json_decref(o);
		return NULL;
	}
	*step = json_integer_value(number);
	*end = (size_t)(newline + 1 - l->text);
	return o;
}

static bool has_numbers(const json_t *o)
{
	static const char *const name[] = { "loss", "grad_norm", "lr", "accuracy" };
	for (int i = 0; i < 4; i++)
		if (!json_is_number(json_object_get(o, name[i])))
			return false;
	return true;
}

/* Takes lines of train.jsonl as long as they are those of steps 1, 2 ... most; how many there are. */
static int64_t take_steps(struct lines *l, int64_t most, struct run_logged *out)
{
	int64_t steps = 0, step;
	size_t end;
	for (json_t *o; steps < most && (o = lines_next(l, &step, &end)); json_decref(o)) {
		if (step != steps + 1 || !has_numbers(o)) {
			json_decref(o);
			break;
		}
		out->loss = json_number_value(json_object_get(o, "loss"));
		out->accuracy = json_number_value(json_object_get(o, "accuracy"));
		l->at = end;
		steps++;
	}
	return steps;
}

/* Takes lines of timing.jsonl up to that step. */
static void take_timings(struct lines *l, int64_t most, struct run_logged *out)
{
	int64_t step, before = 0;
	size_t end;
	for (json_t *o; (o = lines_next(l, &step, &end)); json_decref(o)) {
		double seconds = json_number_value(json_object_get(o, "seconds"));
		if (step > most || step <= before || !(seconds >= 0)) {
			json_decref(o);
			break;
		}
		out->seconds = seconds;
		before = step;
		l->at = end;
	}
}

/* Keeps what was taken. */
static struct err lines_cut(const char *folder, const char *name, const struct lines *l)
{
	if (l->at == l->size)
		return OK;
	char *path = io_join(folder, name);
	struct err e = l->at ? io_write(path, l->text, l->at) : io_remove(path);
	free(path);
	return e;
}

struct err run_log_steps(const char *folder, int64_t *steps)
{
	struct lines l;
	struct run_logged ignored;
	TRY(lines_open(folder, RUN_LOG, &l));
	*steps = take_steps(&l, INT64_MAX, &ignored);
	free(l.text);
	return OK;
}

struct err run_log_cut(const char *folder, int64_t steps, struct run_logged *out)
{
	struct lines log, timing = { 0 };
	*out = (struct run_logged){ 0 };
	TRY(lines_open(folder, RUN_LOG, &log));
	int64_t have = take_steps(&log, steps, out);
	BUG_IF(have != steps, "%s has %lld of %lld steps", RUN_LOG, (long long)have, (long long)steps);
	struct err e = lines_open(folder, RUN_TIMING, &timing);
	if (!e.code) {
		take_timings(&timing, steps, out);
		e = lines_cut(folder, RUN_LOG, &log);
	}
	if (!e.code)
		e = lines_cut(folder, RUN_TIMING, &timing);
	free(log.text);
	free(timing.text);
	return e;
}
