#ifndef ROPEWALK_BENCH_H
#define ROPEWALK_BENCH_H

#include "data/options.h"
#include "model/base/phase.h"
#include "model/transformer.h"
#include "runs/bench/timing.h"
#include "runs/progress.h"
#include "train/options.h"

/* How fast a model of these options trains and evaluates here, beside what the machine's matrix products allow
 * (limit.h). Whatever is compared is measured in turn, and each thing behind an untimed run of its own kind, so that it
 * finds the caches as it leaves them; times are wall-clock seconds. */

struct bench_request {
	struct model_options model;
	struct data_options data;
	struct train_options train; /* batch and seed; the rest at its defaults */
	struct method scaling;      /* to evaluate under */
	const int *length;          /* [lengths] evaluated, and */
	const double *multiple;     /* their ratios to train_length */
	int lengths, eval_tokens;   /* tokens evaluated at each, at least one sequence */
	int repetitions;
	double seconds;             /* each part ends after these, but not before 3 repetitions; 0: no bound */
	bool encodings, attention;
	int attention_length, attention_head_dim;
	double start;               /* of the process, by clock_seconds */
};

/* The training step and what it is held against. `one_thread` is empty where there is but one. */
struct bench_training {
	double start, first_step;                     /* when the first step began and ended, of the process's start */
	int64_t memory;                               /* peak resident bytes of training alone */
	struct timing step, limit, forward, one_thread;
	struct ratio over_limit, speedup;             /* step / limit; one thread / all */
	double phase[PHASES];                         /* mean seconds a step, threads' time / threads */
	double phased_step;                           /* mean of the steps that they are of */
};

struct bench_length {
	double multiple;
	int length, sequences;
	struct timing token; /* seconds a token */
	int64_t memory;      /* resident bytes while it evaluates; -1: unknown */
	struct err refused;  /* the encoding or scaling does not reach here; then the rest is 0 */
};
struct bench_evaluation {
	struct bench_length *length; /* stb_ds array */
	double a, b;                 /* seconds a token = a + b T over the medians */
	double memory_ratio;         /* of the longest to the shortest; NaN: unknown */
};

/* A training step of each encoding at its defaults; that of the request's own encoding is what the others are held
 * against. */
struct bench_encoding {
	const char *name;
	struct timing step;
	struct ratio over_own;
	struct err refused; /* it cannot take these options */
};

/* Attention forward alone, one head of one sequence on one thread: of every encoding that takes part in it, and of the
 * request's own under every scaling; each over the request's own unscaled. */
struct bench_head {
	const char *name;
	struct timing forward;
	struct ratio over_own;
	struct err refused; /* it cannot take this head_dim, or the scaling this encoding */
};
struct bench_attention {
	int length, head_dim;
	double flop;           /* counted on causal tiles, attention_flop */
	struct timing product; /* the library's product A B of BENCH_PRODUCT^3, beside it */
	struct bench_head *head; /* stb_ds array */
};
#define BENCH_PRODUCT 512
#define BENCH_TILE 64

struct bench_result {
	struct bench_training training;
	struct bench_evaluation evaluation;
	struct bench_encoding *encoding; /* stb_ds array; NULL: not asked for */
	struct bench_attention attention; /* head NULL: not asked for */
};

/* Can it run (task, sizes, memory)? */
struct err bench_check(const struct bench_request *q);
struct err bench_run(const struct bench_request *q, struct bench_result *out);
void bench_result_free(struct bench_result *r);

/* Its parts. */
struct err bench_training(const struct bench_request *q, struct bench_training *out);
struct err bench_evaluation(const struct bench_request *q, struct bench_evaluation *out);
struct err bench_encodings(const struct bench_request *q, struct bench_encoding **out);
struct err bench_attention(const struct bench_request *q, struct bench_attention *out);

/* May another repetition be made, after `done` that began at `start`? */
bool bench_more(const struct bench_request *q, int done, double start);
void bench_progress(const struct bench_request *q, struct progress *p, int done);

/* 4 D for each (query, key) of the tiles of BENCH_TILE^2 that hold one with key <= query. */
double attention_flop(int length, int head_dim);

/* How rates are counted, in words. */
#define BENCH_FLOP                                                                                         \
	"a step is 6 N B T + 12 L B H T^2 D (N: weights that are multiplied, all but the embedding and the " \
	"norms; attention counted in full, T x T), a forward pass a third of it"
#define BENCH_ATTENTION_FLOP "4 D for each query and key of the 64 x 64 tiles on and below the diagonal"
#define BENCH_PRODUCT_FLOP (2.0 * BENCH_PRODUCT * BENCH_PRODUCT * BENCH_PRODUCT)

/* For people: tables. For programs: a JSON object. Append. */
void bench_print(const struct bench_request *q, const struct bench_result *r, struct text_builder *b);
void bench_json(const struct bench_request *q, const struct bench_result *r, struct text_builder *b);

#endif
