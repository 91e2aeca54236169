#ifndef ROPEWALK_PROCESS_H
#define ROPEWALK_PROCESS_H

#include "text.h"

#include <stddef.h>

/* Which process, on which machine, since which boot: enough to know of another one whether it still runs. */

struct process {
	char host[128];
	char boot_id[64];       /* of this run of the system; "" where the system does not say */
	char pid_namespace[64]; /* pids of another namespace mean nothing here; "" likewise */
	long pid;
	char started[32];       /* when, in the system's count: pids are used again; "" likewise */
};

struct process process_self(void);

/* As `name = value` lines; appends. process_parse leaves empty what the text lacks. */
void process_print(const struct process *p, struct text_builder *b);
void process_parse(const char *text, struct process *out);

enum process_state { PROCESS_ALIVE, PROCESS_DEAD, PROCESS_UNKNOWN };

/* Unknown: of another machine, an earlier boot of this one, or another pid namespace. */
enum process_state process_alive(const struct process *p);

/* Random hex digits, size - 1 of them. */
void process_token(char *text, size_t size);

#endif
