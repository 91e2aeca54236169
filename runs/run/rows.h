#ifndef ROPEWALK_ROWS_H
#define ROPEWALK_ROWS_H

#include "eval/perplexity.h"
#include "model/base/text.h"
#include "runs/show/records.h"

/* Rows of the eval-*.csv and tune-*.csv files: one per length and group. The columns are, in this order,
 * run,encoding,scaling,factor,task,group,seed,eval_seed,train_length,length,multiple,sequences,scored,nll,nll_se,
 * perplexity,floor,accuracy,exact,protocol
 * Where scored is 0 the fields nll to exact are empty; an unknown floor (NaN) is too. Fields are quoted by RFC 4180 where need be, lines
 * end in "\n", numbers are number_to_text. */

struct row {
	const char *run;      /* name of the run's folder */
	const char *encoding, *scaling, *task; /* labels */
	double factor;
	const char *group;
	int64_t seed, eval_seed;
	int64_t train_length, length;
	double multiple;
	int64_t sequences;
	struct eval_cell cell;
	const char *protocol; /* names the stream, as `...; stream report; ...` */
};

/* EVAL_REPORT or EVAL_TUNE, by the protocol. */
int64_t row_stream(const struct row *row);
/* EVAL_KV_OFF .., likewise. */
int64_t row_kv(const struct row *row);
/* Was it measured by this protocol (settled; NULL: all)? */
bool row_protocol_is(const struct row *row, const struct method *protocol);
/* Its protocol with all options, "" for `all`: kept. */
const char *row_protocol(const struct row *row);

/* The first column whose number cannot be, NULL if there is none; perplexity apart, which must be that of the nll. */
const char *row_impossible(const struct row *row);
const char *row_impossible_perplexity(const struct row *row);

/* Rows of the ...-sequences.csv beside them: one per length, sequence and group, so that methods can be compared in
 * pairs:
 * run,scaling,task,group,seed,eval_seed,length,sequences,sequence,scored,nll_sum,correct */
struct sequence_row {
	const char *run, *scaling, *task, *group;
	int64_t seed, eval_seed, length, sequences, sequence;
	struct eval_tally tally;
};

/* Reading appends to stb_ds arrays (arrput, arrlen, arrfree), NULL being the empty one; texts are kept (text_keep). A
 * missing file gives no rows. The errors of a damaged file name FILE:LINE. */
struct err rows_read(const char *path, struct row **rows);
struct err rows_write(const char *path, const struct row *rows, int count);
struct err sequence_rows_read(const char *path, struct sequence_row **rows);
struct err sequence_rows_write(const char *path, const struct sequence_row *rows, int count);

/* The same columns as records. */
void rows_records(const struct row *rows, int count, struct records *to);

/* One CSV field, quoted if it must be. Appends. */
void csv_field(struct text_builder *b, const char *text);

/* A CSV file's records, each an stb_ds array of fields; free with csv_free. */
struct csv {
	char ***record; /* stb_ds array of stb_ds arrays */
	int *line;      /* stb_ds array: the line a record begins in */
};
struct err csv_parse(const char *path, const char *text, struct csv *out);
void csv_free(struct csv *c);

#endif
