#ifndef ROPEWALK_BATCH_H
#define ROPEWALK_BATCH_H

#include "data/task.h"
#include "model/base/arena.h"

/* Some sequences of one length, side by side, made in parallel. */

/* Where sequences come from; index does the rest. */
struct batch_source {
	const struct method *task;
	int train_length, length;
	uint64_t seed;
	enum stream stream;
};

struct batch {
	struct batch_source source;
	int count;
	int most;                 /* the length it was opened for */
	double *positions;        /* [T], those of every sequence of this length; T is source.length. Of a task that is
				     `placed`, those of the first of the stream */
	int32_t *token, *target;  /* [count][T] */
	uint8_t *group;           /* [count][T] */
	int32_t *distance;        /* [count][T] */
	double *position;         /* [count][T], as made */
	struct arena memory;
};

/* Checks that the task can make this length, reserves room for `count` sequences and learns their positions from the
 * first of the stream. batch_close takes a zeroed struct too. */
struct err batch_open(const struct batch_source *source, int count, struct batch *out);
void batch_close(struct batch *b);

/* What batch_open would reserve. */
size_t batch_bytes(int count, int length);

/* From here on sequences of this length, at most the one that it was opened for, which the task must be able to make. */
void batch_resize(struct batch *b, int length);

/* Makes sequences first .. first + count - 1; those of the batch past `count` get no targets. A sequence whose
 * positions differ from the others' is a BUG, unless the task is `placed`. */
void batch_make(struct batch *b, uint64_t first, int count);

struct sequence batch_sequence(const struct batch *b, int index);

#endif
