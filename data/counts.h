#ifndef ROPEWALK_COUNTS_H
#define ROPEWALK_COUNTS_H

#include "data/corpus.h"

/* How often tokens follow tokens in a part of a corpus; of bytes, three in a row are counted, of other tokens one. */
struct counts;

/* They stay as long as the program runs. */
struct err counts_make(const struct corpus_part *part, int V, struct counts **out);

/* As in corpus_follow. */
double counts_follow(const struct counts *n, const int32_t *before, int order, int32_t token);

#endif
