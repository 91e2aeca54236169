#ifndef ROPEWALK_TESTS_GOLDEN_FLAGS_H
#define ROPEWALK_TESTS_GOLDEN_FLAGS_H

#include <jansson.h>
#include <stdbool.h>

/* A case of a golden file of RoPE frequencies as flags of the command line: --scaling, --factor, --rope-theta,
 * --train-length ... `length` (may be NULL) is the sequence's, 0 where the case has none. False where we
 * have no words for its settings. */
#define FLAGS_TEXT 400
bool golden_flags(const json_t *settings, const json_t *expected, char flags[FLAGS_TEXT], int *length);

/* Adds to the flags, as printf. */
void flags_add(char flags[FLAGS_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
