#ifndef ROPEWALK_WINDOWS_H
#define ROPEWALK_WINDOWS_H

#include "data/batch.h"
#include "eval/protocol.h"

/* Documents made a lot at a time and cut into windows, few enough at once that memory grows with the length alone. */

struct windows {
	struct cut cut;
	int documents;           /* in a lot; the last may have fewer */
	int most;                /* windows at once */
	struct batch batch;      /* the documents, [documents][span] */
	int32_t *token, *target; /* [most][length] of the windows at hand, as are these; target -1: does not count */
	int32_t *distance;
	uint8_t *group;
	int first, count;        /* which of the lot's windows they are */
	struct arena memory;
};

/* `source` has the documents' length, cut.span. windows_close takes a zeroed struct too. */
struct err windows_open(const struct batch_source *source, const struct cut *cut, int sequences, struct windows *out);
void windows_close(struct windows *w);

/* What it will have at once, and the bytes it would reserve. */
int windows_most(const struct cut *cut, int sequences);
size_t windows_bytes(const struct cut *cut, int sequences);

/* Makes documents first .. first + count - 1, count at most `documents`; the rest have no targets. */
void windows_make(struct windows *w, uint64_t first, int count);
/* Takes the lot's windows from number `first` on, at most `most` and none past `windows`, into token, target, distance
 * and group; what is left of these has no targets. */
void windows_take(struct windows *w, int first, int windows);
/* One of those at hand; its `position` means nothing. */
struct sequence windows_at(const struct windows *w, int index);
/* Which document of the lot it is of, and which of its windows. */
int windows_document(const struct windows *w, int index);

#endif
