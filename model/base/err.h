#ifndef ROPEWALK_ERR_H
#define ROPEWALK_ERR_H

/* An error is a value, built where the facts are and printed by main alone. `code` is the program's exit code. To be
 * stopped by a signal is one, too: 128 + its number. */
enum err_code {
	ERR_NONE = 0,
	ERR_FAILED = 1,
	ERR_USAGE = 2,
	ERR_DIVERGED = 3,
	ERR_STOPPED = 128, /* and above */
};

struct err {
	enum err_code code;
	char text[640]; /* "path: what: why" */
	char hint[480]; /* what to do next; may be empty */
};

#define OK ((struct err){ .code = ERR_NONE })

/* Builders. Text and hint are one line each, whatever a file or a name put into them (text_printable). `hint` may be
 * NULL. err_system appends strerror of the errno given. */
struct err err_usage(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct err err_failed(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct err err_diverged(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct err err_stopped(int signal, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));
struct err err_system(int error, const char *hint, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text of an error that lacks its place (a path, a line). */
struct err err_at(struct err e, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TRY(expression)                        \
	do {                                   \
		struct err try_ = (expression); \
		if (try_.code)                 \
			return try_;           \
	} while (0)

/* A broken promise between two parts of the program, never a user's mistake: says where and aborts. */
_Noreturn void bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define BUG_IF(condition, ...)             \
	do {                               \
		if (condition)             \
			BUG(__VA_ARGS__);  \
	} while (0)

#endif
