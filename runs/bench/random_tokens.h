#ifndef ROPEWALK_RANDOM_TOKENS_H
#define ROPEWALK_RANDOM_TOKENS_H

#include "data/task.h"

/* A task without a question, in no list: tokens drawn uniformly from a vocabulary, every position scored, the target
 * the next token. What a bench computes on where no task is named. */

#define RANDOM_VOCABULARY_MOST 1048576

struct method random_tokens(int vocabulary);

#endif
