#ifndef ROPEWALK_PERPLEXITY_H
#define ROPEWALK_PERPLEXITY_H

#include "data/options.h"
#include "eval/options.h"
#include "model/transformer.h"

struct batch;

/* A trained model at one length under one scaling: NLL, perplexity, accuracy, by group. */

#define EVAL_GROUPS (TASK_GROUPS + 3)

/* The groups of a task's tables: its first ("recall"), near and far (the first divided by distance at train_length),
 * its other groups, all. Returns how many; name[i] lives forever. */
int eval_group_names(const struct task *task, const char *name[EVAL_GROUPS]);

/* Who looks on at attention: `enter` is told of each lot of `count` sequences before it is run, `leave` after it. */
struct eval_watch {
	const struct attention_probe *probe;
	void (*enter)(void *data, const struct batch *lot, int count);
	void (*leave)(void *data, int count);
	void *data;
};

struct eval_request {
	const struct model *model;
	const struct data_options *data;
	const struct method *scaling;
	int length, sequences;
	uint64_t eval_seed;
	bool tune; /* sequences of stream `tune`, to choose an option by, instead of `report` */
	int kv;    /* EVAL_KV_..: token by token with such a cache (model/decode.h) */
	const struct method *protocol; /* settled (eval/protocol.h); NULL: all */
	bool measures; /* also by_position and recall_grid */
	const struct pair_sets *pairs; /* how each head's pairs turn; NULL: as the scaling says. Not with kv */
	const struct eval_watch *watch; /* NULL: none. Not with kv */
};

/* One group of one sequence. */
struct eval_tally {
	int64_t scored, correct;
	double nll_sum;
};

/* One group over all sequences; where scored is 0 the rest is 0 and means nothing. */
struct eval_cell {
	int64_t scored;
	double nll;        /* nats a scored token: sum over sequences / scored */
	double nll_se;     /* sqrt(n/(n-1) sum over sequences (nll_sum - nll scored)^2) / scored; 0 for one sequence */
	double perplexity; /* exp(nll) */
	double floor;      /* of the best possible predictor; NaN: not known, as where windows are cut */
	double accuracy;   /* share of scored tokens whose target is the likeliest token */
	double exact;      /* share of the sequences (those that have any of the group) with every target right */
};

/* A baseline of the task over the same sequences. */
struct eval_reference {
	const char *name;
	int group;         /* index into the task's groups */
	double perplexity; /* exp(mean -ln p) */
	double accuracy;   /* mean p: how often a draw from it would be right */
};
#define EVAL_REFERENCES 4

struct eval_result {
	int groups;
	const char *group[EVAL_GROUPS];
	struct eval_cell cell[EVAL_GROUPS];
	int sequences;
	struct eval_tally *tally; /* [sequences][groups] */
	double reach;             /* largest position + 1, or how large it may be where they are drawn */
	double factor;            /* scaling_factor in force */
	int references;           /* none where windows are cut from longer documents */
	struct eval_reference reference[EVAL_REFERENCES];
	struct by_position *by_position; /* NULL unless asked for */
	struct recall_grid *recall_grid;
};

/* multiples text ("1,2,1.5") to lengths; each multiple times train_length must be whole and the task able to make it.
 * free() both arrays. */
struct err eval_lengths(const char *multiples, int train_length, const struct data_options *data, int **length,
			double **multiple, int *count);

/* scaling text ("none,ntk(factor=8)") to methods, duplicates refused. free() the array. */
struct err eval_scalings(const char *text, struct method **method, int *count);

/* How many sequences a lot has. */
int eval_lot(const struct eval_request *request);

/* Can this request run (scaling against encoding, length against the encoding's reach, memory)? */
struct err eval_check(const struct eval_request *request);
/* Parts of it: is the model of the task's vocabulary; does all fit in memory? The latter makes no data, says nothing of
 * what else may be wrong, and counts the values of a model that is only laid out. */
struct err eval_check_vocabulary(const struct eval_request *request);
struct err eval_check_size(const struct eval_request *request);

/* The error where an evaluation of `length` tokens out of `span` has not `work` bytes, whatever the number of sequences,
 * and `results`, which grow with it. */
struct err eval_fits(int length, int span, size_t work, int sequences, size_t results);

/* Sequences of stream `report` (or `tune`), index 0 .. sequences - 1, few at a time, so memory is linear in the length.
 * `progress` (may be NULL) is called after each lot with the tokens done and to do, and while a lot
 * is decoded with its share of them; an error of it ends the evaluation.
 * eval_result_free takes a zeroed result. */
typedef struct err eval_progress(void *data, int64_t done, int64_t total);
struct err eval_run(const struct eval_request *request, eval_progress *progress, void *data, struct eval_result *out);
void eval_result_free(struct eval_result *r);

#endif
