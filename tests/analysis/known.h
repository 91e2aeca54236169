#ifndef ROPEWALK_TESTS_KNOWN_H
#define ROPEWALK_TESTS_KNOWN_H

/* Included before everything where a file is analysed by itself: what err.c does, which the analysers cannot see. The
 * errors that builders return are errors, and a place put before one leaves its code as it was. */

#include "model/base/err.h"

static inline struct err err_known(enum err_code code, struct err e)
{
	e.code = code;
	return e;
}

#define err_usage(...) err_known(ERR_USAGE, err_usage(__VA_ARGS__))
#define err_failed(...) err_known(ERR_FAILED, err_failed(__VA_ARGS__))
#define err_diverged(...) err_known(ERR_DIVERGED, err_diverged(__VA_ARGS__))
#define err_system(...) err_known(ERR_FAILED, err_system(__VA_ARGS__))
#define err_at(e, ...)                                              \
	({                                                          \
		struct err e_ = (e);                                \
		err_known(e_.code, err_at(e_, __VA_ARGS__));        \
	})

#endif
