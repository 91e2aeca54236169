#ifndef ROPEWALK_RUN_ORACLE_H
#define ROPEWALK_RUN_ORACLE_H

#include "runs/run/run_examine.h"
#include "train/fit.h"

/* How far the recipes are from what was possible: the weights frozen, the inverse frequencies and the attention factor
 * fitted to one length by gradient, on sequences of stream `tune`, and measured beside none and the recipes on those of
 * `report`, which the fit has not seen. Fits begin with the frequencies of none and of yarn; the fit, or beginning, of
 * the least NLL on tune sequences of its own is the oracle. It is a bound from below: a gradient finds what is near. */

struct oracle_question {
	const struct examined *run;
	const struct train_options *train; /* steps, batch, lr, ... of a fit */
	int group;                         /* of the task, whose NLL is fitted; -1: all */
};

/* none, the recipes that the model takes, the oracle last. */
enum { ORACLE_AT, ORACLE_TRAINED, ORACLE_LENGTHS }; /* at the multiple; at train_length */
struct oracle_row {
	const char *label;
	double *inv_freq; /* [F], malloc */
	double attention_factor;
	struct eval_result result[ORACLE_LENGTHS];
};
struct oracle_fit {
	const char *start;           /* label of the row it begins with */
	double nll_before, nll_after; /* on tune */
};
struct oracle_answer {
	int F;
	int length[ORACLE_LENGTHS];
	struct oracle_row *row; /* stb_ds arrays */
	struct oracle_fit *fit;
	int best;      /* the fit that is the oracle, */
	bool unfitted; /* or rather what that one begins with */
};

/* The options of AdamW for a fit: the defaults, its own steps, batch and rate, a tenth of the steps warm-up. */
struct train_options oracle_train_options(int64_t steps, int64_t batch, double lr);

/* Can it be asked: an encoding whose frequencies can be learned and are not, memory? */
struct err run_oracle_check(const struct oracle_question *q);

/* Progress goes to stderr. ERR_DIVERGED where a fit diverges. oracle_answer_free takes a zeroed struct too. */
struct err run_oracle(const struct oracle_question *q, struct oracle_answer *out);
void oracle_answer_free(struct oracle_answer *a);

/* The model with the same weights whose frequencies are tensors, begun with these: log_ratio_m = ln(inv_freq_m /
 * trained_m), log_attention_factor = ln(attention_factor). model_close it. */
struct err oracle_model(const struct model *m, const double *inv_freq, double attention_factor, struct model *out);
extern const char *const oracle_tensors[];

#endif
