#ifndef ROPEWALK_TESTS_HOSTILE_H
#define ROPEWALK_TESTS_HOSTILE_H

#include "model/base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Files from outside, read as a hostile hand may have written them. A target (tests/fuzz_NAME.c) is a reader of the
 * program; it is fed with the files of tests/corpus/NAME by tests/test_runs_corpus.c, and with what libFuzzer makes of
 * them by `make fuzz`. A broken promise of a reader is a BUG, which ends the program. */

struct target {
	const char *name; /* of its folder in tests/corpus */
	const char *file; /* what the file is called that it reads */
	/* Reads the file. What is accepted must survive a write, to the path `again`, and a second read. */
	struct err (*read)(const char *path, const char *again);
};
extern const struct target target_checkpoint, target_config, target_logs, target_options, target_records,
	target_safetensors, target_study, target_tokens;

/* Writes the bytes to a file of a folder of this process and has the target read them. Returns what the reader said: OK
 * or a usage error of one line; a refusal has written nothing. */
struct err target_feed(const struct target *t, const void *data, size_t size);

/* Holds what a reader said to that, and to beginning with the path, if one is given. Returns it. */
struct err refusal(struct err e, const char *path);

/* libFuzzer's way in. */
#ifdef ROPEWALK_FUZZ
#define FUZZED(target)                                                     \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);      \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)       \
	{                                                                  \
		target_feed(&(target), data, size);                        \
		return 0;                                                  \
	}
#else
#define FUZZED(target)
#endif

#endif
