#ifndef ROPEWALK_TESTS_SUPPORT_H
#define ROPEWALK_TESTS_SUPPORT_H

/* cmocka wants these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/base/err.h"
#include "model/base/real.h"
#include "model/base/rng.h"

#include <string.h>

/* What the tests of all folders share; knows model/base alone. */

/* Fails the test unless the call is OK, showing the error. */
#define assert_ok(call)                                                                                     \
	do {                                                                                                \
		struct err e_ = (call);                                                                     \
		if (e_.code)                                                                                \
			fail_msg("%s: [%d] %s (%s)", #call, e_.code, e_.text, e_.hint);                      \
	} while (0)

/* Fails unless the call gives this code and its text or hint contains `part`. */
#define assert_err(call, wanted, part)                                                                      \
	do {                                                                                                \
		struct err e_ = (call);                                                                     \
		if (e_.code != (wanted) || (!strstr(e_.text, (part)) && !strstr(e_.hint, (part))))          \
			fail_msg("%s: [%d] %s (%s), wanted [%d] with '%s'", #call, e_.code, e_.text, e_.hint, \
				 (wanted), (part));                                                           \
	} while (0)

/* |a - b| <= tolerance max(1, |b|); NaN never passes. */
#define assert_close(a, b, tolerance)                                                                        \
	do {                                                                                                 \
		double a_ = (double)(a), b_ = (double)(b), t_ = (tolerance);                                  \
		double size_ = b_ < 0 ? -b_ : b_, off_ = a_ < b_ ? b_ - a_ : a_ - b_;                          \
		if (!(off_ <= t_ * (size_ > 1 ? size_ : 1)))                                                  \
			fail_msg("%s = %.17g is not within %g of %s = %.17g", #a, a_, t_, #b, b_);            \
	} while (0)

#define assert_below(a, limit)                                                                   \
	do {                                                                                     \
		double a_ = (double)(a), l_ = (double)(limit);                                   \
		if (!(a_ < l_))                                                                  \
			fail_msg("%s = %.17g is not below %s = %.17g", #a, a_, #limit, l_);      \
	} while (0)

/* Fails unless body(data), run in a child, ends in a BUG that says `part`. The child has no other threads. */
void assert_bug(void (*body)(void *data), void *data, const char *part);

/* Fresh memory, or the test fails. */
void *take(size_t count, size_t size);
#define TAKE(type, count) ((type *)take((count), sizeof(type)))

/* Deterministic values: N(0, 1) and uniform integers below a limit. */
void fill_normal(uint64_t seed, real *x, size_t count);
void fill_below(uint64_t seed, int limit, int32_t *x, size_t count);

/* A file of tests/golden as JSON; the caller gives it back with json_decref. */
struct json_t;
struct json_t *golden_json(const char *name);
/* Of its case `index`: its settings or what is expected. */
struct json_t *golden_part(struct json_t *root, size_t index, const char *name);
/* A number of an array or object, or the test fails. */
double json_at(const struct json_t *array, size_t i);
double json_number(const struct json_t *object, const char *key);

#define FOLDER_PATH 256

/* A new folder for files below TMPDIR, and its removal with all it holds; not 0 if that failed. */
int folder_make(char path[FOLDER_PATH]);
int folder_remove(const char *path);

#endif
