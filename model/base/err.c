#include "err.h"

#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct err build(enum err_code code, const char *hint, const char *format, va_list list)
{
	struct err e = { .code = code };
	char text[sizeof e.text];
	vsnprintf(text, sizeof text, format, list);
	text_printable(text, e.text, sizeof e.text);
	text_printable(hint ? hint : "", e.hint, sizeof e.hint);
	return e;
}

#define BUILDER(name, code)                                    \
	struct err name(const char *hint, const char *format, ...) \
	{                                                      \
		va_list list;                                  \
		va_start(list, format);                        \
		struct err e = build(code, hint, format, list); \
		va_end(list);                                  \
		return e;                                      \
	}
BUILDER(err_usage, ERR_USAGE)
BUILDER(err_failed, ERR_FAILED)
BUILDER(err_diverged, ERR_DIVERGED)

struct err err_stopped(int signal, const char *hint, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	struct err e = build((enum err_code)(ERR_STOPPED + signal), hint, format, list);
	va_end(list);
	return e;
}

struct err err_system(int error, const char *hint, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	struct err e = build(ERR_FAILED, hint, format, list);
	va_end(list);
	size_t used = strlen(e.text);
	snprintf(e.text + used, sizeof e.text - used, ": %s", strerror(error));
	return e;
}

struct err err_at(struct err e, const char *format, ...)
{
	if (!e.code)
		return e;
	char text[sizeof e.text];
	va_list list;
	va_start(list, format);
	int place = vsnprintf(text, sizeof text / 2, format, list);
	va_end(list);
	/* A long place is cut, so that half the room is left for what happened there. */
	size_t used = (size_t)place < sizeof text / 2 ? (size_t)place : sizeof text / 2 - 1;
	snprintf(text + used, sizeof text - used, ": %.*s", (int)(sizeof text - used - 3), e.text);
	text_printable(text, e.text, sizeof e.text);
	return e;
}

_Noreturn void bug_at(const char *file, int line, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fprintf(stderr, "ropewalk: BUG at %s:%d: ", file, line);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	abort();
}
