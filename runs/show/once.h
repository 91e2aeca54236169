#ifndef ROPEWALK_ONCE_H
#define ROPEWALK_ONCE_H

#include "model/base/stb.h"
#include "runs/options.h"

#include <string.h>

/* Adds a text to a list (an stb_ds array of kept texts) unless it is there; was it added? */
static inline bool once(const char ***list, const char *text)
{
	for (int i = 0; i < arrlen(*list); i++)
		if (!strcmp((*list)[i], text))
			return false;
	arrput(*list, text_keep(text));
	return true;
}

#endif
