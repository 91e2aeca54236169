#ifndef ROPEWALK_TEXT_H
#define ROPEWALK_TEXT_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text to numbers and back, and the nearest of a list of names. */

/* The whole of `text` must be a number, white space around it aside: no trailing junk, no nan, inf, hexadecimal or
 * overflow. Integers also take 1e6 and 2.0 where that is whole. */
bool text_to_number(const char *text, double *out);
bool text_to_integer(const char *text, int64_t *out);

/* The shortest decimal that reads back as the same double ("0.1", "1e-05"); nan and inf by name. */
#define NUMBER_TEXT 32
const char *number_to_text(double value, char text[NUMBER_TEXT]);

/* The name closest to `name` by edit distance, '-' and '_' and capitals being equal, or NULL where none is near
 * enough to be meant (more than a third of its letters away, 3 at most). `next(i, data)` gives the i-th name, NULL
 * past the last. */
const char *nearest_name(const char *name, const char *(*next)(int i, const void *data), const void *data);

/* Equality with '-' and '_' the same. */
bool same_name(const char *a, const char *b);

/* Cuts at commas outside parentheses and trims white space; each piece in fresh memory, the array ends with NULL.
 * text_list_free frees all. "" gives no piece; "a,,b" gives an empty middle one. */
char **text_list(const char *text, int *count);
void text_list_free(char **list);

/* `text` for one line of a terminal, cut to `room` bytes with its NUL: what would steer the terminal, end the line,
 * turn the direction of writing or not be seen, and what is not UTF-8, becomes \xNN, byte by byte. The rest stays, so
 * that a second time changes nothing. */
void text_printable(const char *text, char *out, size_t room);

/* The text without the white space around it, cut to what an error can show. */
#define TEXT_SHOWN 100
const char *text_shown(const char *text, char out[TEXT_SHOWN]);

/* A string that grows; `data` is never NULL after the first append. text_builder_free() it. */
struct text_builder {
	char *data;
	size_t size, room;
};
void text_add(struct text_builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_builder_free(struct text_builder *b);

#endif
