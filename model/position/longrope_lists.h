#ifndef ROPEWALK_LONGROPE_LISTS_H
#define ROPEWALK_LONGROPE_LISTS_H

#include "model/base/err.h"

/* The two lists of LongRoPE, by which frequencies are divided, a number a pair. They come from a file: either text,
 *   short = 1, 1.05, ...
 *   long = 1, 3.12, ...
 * with comments after #, or JSON as Hugging Face has it: an object with short_factor and long_factor, by itself or as
 * the member rope_scaling or rope_parameters of a config.json. */
struct longrope_lists {
	int count; /* of numbers in each; 0: no file was named, and all are 1 */
	const double *short_factor, *long_factor;
};

/* `load` of an option (model/base/option.h): reads the lists from the path `text`. *out is PATH@HASH, 8 digits of the
 * XXH3 of the numbers, and stays; it may be given in place of the path, and is refused once the numbers are others.
 * "" names no file. A file that is missing or damaged is err_usage. */
struct err longrope_load(const char *text, const char **out);

/* The lists of a text that longrope_load gave. */
struct longrope_lists longrope_lists(const char *text);

#endif
