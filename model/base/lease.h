#ifndef ROPEWALK_LEASE_H
#define ROPEWALK_LEASE_H

#include "err.h"

#include <stdbool.h>

/* A process's claim on a folder, which other processes respect, on this machine or on any that shares the folder.
 *
 * It is the file LEASE_FILE in the folder: `name = value` lines of host, boot_id, pid, pid_namespace, started and a
 * random token, made complete under another name and then linked, so that of several processes one gets it. While the
 * process lives a thread touches the file every LEASE_BEAT seconds: its time is the heartbeat.
 *
 * A claim is stale when its process is known to be dead (no such process in this boot of this machine, or one that
 * started at another time), or, where that cannot be known (another machine, boot or pid namespace), when the heartbeat
 * is older than LEASE_STALE seconds by the clock of the file system; one from the future is set to now by whoever wants
 * the claim, so that it ages. Whoever removes a claim, stale or its own, holds the file's lock (flock) meanwhile and
 * looks at it once more, so that none removes what another has put in its place; where the file system knows no such
 * locks that is left to luck. */

#define LEASE_FILE "lock"
#define LEASE_BEAT 5
#define LEASE_STALE 60

/* Tests set this to have heartbeats more often: milliseconds. */
extern int lease_beat;

struct lease;

/* Takes the claim on a folder, which must exist, and removes the temporaries (IO_TEMPORARY) that dead processes have
 * left in it. A process may take a claim again that it has, and gives it up as often. If a living process has it,
 * `*out` is NULL, without an error, and `holder` (LEASE_HOLDER bytes) says who: "zeus, process 4242". */
#define LEASE_HOLDER 160
struct err lease_try(const char *folder, struct lease **out, char holder[LEASE_HOLDER]);

/* The same, but a living holder is an error that names it. */
struct err lease_take(const char *folder, struct lease **out);

/* Looks at the file: an error if the claim is no longer there, as when this process was stopped for longer than
 * LEASE_STALE and another has taken it over: then this one must not write there any more. */
struct err lease_check(const struct lease *l);

void lease_release(struct lease *l); /* takes NULL too */

/* Removes what dead processes have left in a folder where there is nothing more to do: a claim, temporaries. */
void lease_tidy(const char *folder);

#endif
