#define STB_DS_IMPLEMENTATION
#include "model/base/stb.h"

#include <stdio.h>

void *stb_reallocate(void *old, size_t size)
{
	void *fresh = realloc(old, size);
	if (!fresh && size) {
		fprintf(stderr, "ropewalk: no memory for a table of %zu bytes\n", size);
		exit(1);
	}
	return fresh;
}
