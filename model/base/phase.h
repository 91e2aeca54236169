#ifndef ROPEWALK_PHASE_H
#define ROPEWALK_PHASE_H

#include <stdbool.h>

/* Where the threads' time goes. Each thread is in one phase at a time; work that enters one says so, and threads_each
 * puts threads in PHASE_ELEMENTWISE while they work and in PHASE_WAITING between. Measured only between phases_start
 * and phases_stop; otherwise entering a phase costs a test. */

/* name for reports: a macro, so that names and numbers cannot part */
#define PHASE_LIST                                                                                                  \
	PHASE(LINEAR, "linear") PHASE(LINEAR_BACK, "linear_back") PHASE(LINEAR_WEIGHTS, "linear_weights")       \
	PHASE(ATTENTION, "attention") PHASE(ATTENTION_BACK, "attention_back") PHASE(ELEMENTWISE, "elementwise") \
	PHASE(HEAD, "head") PHASE(OPTIMISER, "optimiser") PHASE(DATA, "data") PHASE(WAITING, "waiting")

enum phase {
#define PHASE(name, text) PHASE_##name,
	PHASE_LIST
#undef PHASE
	PHASES,
};

const char *phase_name(enum phase p);

/* The calling thread enters a phase; returns the one it was in. */
enum phase phase_enter(enum phase p);

/* The same, but only out of PHASE_ELEMENTWISE: a product of the head stays with the head. */
enum phase phase_enter_within(enum phase p);

/* Both are called outside of parallel regions. `seconds`: of all threads together since phases_start. Waiting includes
 * what one thread does alone, for the others. */
void phases_start(void);
void phases_stop(double seconds[PHASES]);

#endif
