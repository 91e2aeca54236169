#ifndef ROPEWALK_TASK_H
#define ROPEWALK_TASK_H

#include "model/base/option.h"
#include "model/base/rng.h"

/* What a task is. A sequence is a pure function of (options, train_length, seed, stream, index, length), so any one can
 * be made again on its own. */

/* One sequence of T tokens; the arrays are the caller's, T long. */
struct sequence {
	int32_t *token;
	int32_t *target;   /* -1: not scored */
	uint8_t *group;    /* index into the task's `groups`; meaningless where not scored */
	int32_t *distance; /* how far back the evidence for the target lies, at least 1; 0 where not scored */
	double *position;  /* 0, 1, 2 ... unless the task says otherwise; the same for every sequence of a length
			      unless it is `placed` */
};

/* A baseline that needs no model: its probability for the target of every scored position (0 elsewhere), exact from the
 * data. `train_length` is for readers that see that many tokens. */
struct task_reference {
	const char *name; /* as in "guessing among the stated values" */
	int group;        /* the group it is for */
	void (*probability)(const struct method *task, const struct sequence *s, int train_length, int length,
			    double *p);
};

#define TASK_GROUPS 8

/* What `solve` says of a target that is not among the tokens: that of the last one, in a text. */
#define TARGET_BEYOND (-2)

struct task {
	struct entry entry;
	const char *groups[TASK_GROUPS]; /* group 0 is the headline: near and far divide it by distance */
	bool bytes; /* a target is a byte of text: tables show bits per byte */
	const struct task_reference *references; /* ends with a NULL name */

	int (*vocabulary)(const struct method *task);
	/* Can sequences of this length be made? Else an error that says which lengths can. */
	struct err (*check)(const struct method *task, int train_length, int length);
	void (*make)(const struct method *task, int train_length, uint64_t seed, enum stream stream, uint64_t index,
		     int length, struct sequence *out);
	/* The targets again, from the tokens alone and by other means than `make`: target[t], -1 where not scored,
	 * TARGET_BEYOND where they do not say it. */
	void (*solve)(const struct method *task, const int32_t *token, int length, int32_t *target);
	/* Perplexity of the best possible predictor; NaN: nobody knows. */
	double (*floor)(const struct method *task, int length, int group);

	/* Do its sequences have positions of their own, in any order, of 0 .. length - 1? NULL: no. */
	bool (*placed)(const struct method *task);

	/* The token that a window of a sequence begins with, in place of what stands there. NULL, or -1: none. */
	int32_t (*opening)(const struct method *task);

	/* Stretching by filler, which must leave every target right; both or neither. May filler stand right before
	 * token t, 1 <= t < length? And a token of filler. */
	bool (*may_insert)(const struct method *task, const struct sequence *s, int length, int t);
	int32_t (*filler)(const struct method *task, struct rng *r);
};

static inline bool task_placed(const struct method *m)
{
	const struct task *task = (const struct task *)m->entry;
	return task->placed && task->placed(m);
}

/* The list; NULL past the last. */
const struct entry *task_at(int index);

/* The task a method was chosen from. */
static inline const struct task *task_of(const struct method *m)
{
	return (const struct task *)m->entry;
}

#endif
