#ifndef ROPEWALK_TESTS_ALLOCATIONS_H
#define ROPEWALK_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

/* Allocations are counted by standing before the C library's allocator; a sanitizer has an allocator of its own, and
 * COUNTS_ALLOCATIONS is not defined. For one file of a program. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)
#define COUNTS_ALLOCATIONS

static atomic_int allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count_one(void)
{
	allocations++;
}

void *malloc(size_t size)
{
	count_one();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	count_one();
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	count_one();
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	count_one();
	return __libc_memalign(alignment, size);
}
#endif

#endif
