#ifndef ROPEWALK_DRAW_H
#define ROPEWALK_DRAW_H

#include "data/task.h"

/* What tasks make their sequences of. */

/* Uniform over least .. most. */
static inline int draw_between(struct rng *r, int least, int most)
{
	return least + (int)rng_below(r, (uint32_t)(most - least) + 1);
}

/* A token at its own place, not scored. */
static inline void put_token(struct sequence *s, int t, int32_t token)
{
	s->token[t] = token;
	s->target[t] = -1;
	s->group[t] = 0;
	s->distance[t] = 0;
	s->position[t] = t;
}

/* From here on token t is scored. `evidence` is the place of what its target follows from. */
static inline void put_target(struct sequence *s, int t, int32_t target, int group, int evidence)
{
	s->target[t] = target;
	s->group[t] = (uint8_t)group;
	s->distance[t] = t - evidence;
}

#endif
