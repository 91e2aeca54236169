#include "eval/perplexity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_MOST = 1 << 30 };

static struct err no_memory(const char *what)
{
	return err_failed("Give fewer at a time.", "%s: no memory for the list", what);
}

static struct err not_whole(const char *text, double multiple, int train_length)
{
	double below = floor(multiple * train_length), above = below + 1;
	char low[NUMBER_TEXT], high[NUMBER_TEXT], hint[160];
	number_to_text(below / train_length, low);
	number_to_text(above / train_length, high);
	if (below < 1)
		snprintf(hint, sizeof hint, "The least multiple is %s, length 1.", high);
	else
		snprintf(hint, sizeof hint, "The nearest are %s, length %.0f, and %s, length %.0f.", low, below, high,
			 above);
	return err_usage(hint, "multiples: %s times train_length %d is not a whole length", text, train_length);
}

static struct err parse_multiple(const char *text, int train_length, double *multiple, int *length)
{
	if (!text_to_number(text, multiple))
		return err_usage("Give numbers with commas between them, as in --multiples=1,2,1.5.",
				 "multiples: '%s' is not a number", text);
	if (*multiple <= 0)
		return err_usage("Give multiples of train_length greater than 0.",
				 "multiples: %s is not greater than 0", text);
	double exact = *multiple * train_length, whole = round(exact);
	if (exact > LENGTH_MOST)
		return err_usage("Give a smaller multiple.",
				 "multiples: %s times train_length %d is more than %d tokens", text, train_length,
				 LENGTH_MOST);
	if (whole < 1 || fabs(exact - whole) > 1e-9)
		return not_whole(text, *multiple, train_length);
	*length = (int)whole;
	return OK;
}

static struct err parse_lengths(char *const *piece, int count, int train_length, const struct data_options *data,
				int *length, double *multiple)
{
	for (int i = 0; i < count; i++) {
		TRY(parse_multiple(piece[i], train_length, &multiple[i], &length[i]));
		for (int j = 0; j < i; j++)
			if (length[j] == length[i])
				return err_usage("Give each multiple once.", "multiples: %s is given twice", piece[i]);
		struct err e = task_of(&data->task)->check(&data->task, train_length, length[i]);
		if (e.code)
			return err_at(e, "multiples: %s", piece[i]);
	}
	return OK;
}

struct err eval_lengths(const char *multiples, int train_length, const struct data_options *data, int **length,
			double **multiple, int *count)
{
	char **piece = text_list(multiples, count);
	*length = calloc((size_t)*count + 1, sizeof **length);
	*multiple = calloc((size_t)*count + 1, sizeof **multiple);
	struct err e;
	if (!*length || !*multiple)
		e = no_memory("multiples");
	else if (*count == 0)
		e = err_usage("Give at least one, as in --multiples=1,2,4.", "multiples: the list is empty");
	else
		e = parse_lengths(piece, *count, train_length, data, *length, *multiple);
	text_list_free(piece);
	if (e.code) {
		free(*length);
		free(*multiple);
		*length = NULL;
		*multiple = NULL;
		*count = 0;
	}
	return e;
}

/* A name other tools have; it stands for two methods at once, so that no row would say which one did what. */
static struct err refuse_mixture(const char *text)
{
	char name[32];
	snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "( \t"), text);
	if (!same_name(name, "linear_ntk"))
		return OK;
	return err_usage("Give --scaling=linear,ntk to measure each.",
			 "scaling: linear_ntk mixes two methods, linear and ntk");
}

static struct err refuse_twice(const struct method *method, int last)
{
	struct text_builder mine = { 0 };
	struct err e = OK;
	method_label(&method[last], &mine);
	for (int i = 0; i < last && !e.code; i++) {
		struct text_builder other = { 0 };
		method_label(&method[i], &other);
		if (!strcmp(mine.data, other.data))
			e = err_usage("Give each scaling once.", "scaling: %s is given twice", mine.data);
		text_builder_free(&other);
	}
	text_builder_free(&mine);
	return e;
}

static struct err parse_scalings(char *const *piece, int count, struct method *method)
{
	for (int i = 0; i < count; i++) {
		TRY(refuse_mixture(piece[i]));
		TRY(method_parse("scaling", scaling_at, piece[i], &method[i]));
		TRY(refuse_twice(method, i));
	}
	return OK;
}

struct err eval_scalings(const char *text, struct method **method, int *count)
{
	char **piece = text_list(text, count);
	*method = calloc((size_t)*count + 1, sizeof **method);
	struct err e;
	if (!*method)
		e = no_memory("scaling");
	else if (*count == 0)
		e = err_usage("Give at least one, as in --scaling=none.", "scaling: the list is empty");
	else
		e = parse_scalings(piece, *count, *method);
	text_list_free(piece);
	if (e.code) {
		free(*method);
		*method = NULL;
		*count = 0;
	}
	return e;
}
