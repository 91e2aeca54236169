#ifndef ROPEWALK_EXPLAIN_H
#define ROPEWALK_EXPLAIN_H

#include "runs/command/command.h"
#include "runs/run/run_parts.h"

/* What the commands that explain one run have in common: patch, knockout, oracle. */

/* The options that they do not take, for `without`. */
#define EXPLAIN_WITHOUT "kv|protocol|calibrate|out|force|references|stream|scaling|multiples|resume|save_every"

/* Opens the run that the command names, and lets `work` have it. */
typedef struct err explain_work(struct config *c, const struct examined *x);
struct err explain_run(struct invocation *in, double multiple, explain_work *work);

/* Checks a question of parts, starts the machine and asks it. */
struct err explain_parts(const struct config *c, const struct parts_question *q, struct parts_answers *out);

#endif
