#ifndef ROPEWALK_WRAP_H
#define ROPEWALK_WRAP_H

#include "model/base/text.h"

#define PAGE_WIDTH 118

/* Cuts a text into lines of at most `width` characters, after one of the characters of `breaks` (a space at the end of
 * a line is dropped); what has no break in reach stays whole. Lines after the first begin with `indent` spaces, which
 * count. An stb_ds array of kept texts. */
const char **wrap(const char *text, int width, const char *breaks, int indent);

/* The text as lines of PAGE_WIDTH, cut at spaces, with what follows the first line indented by 2. Appends. */
void wrap_paragraph(struct text_builder *b, const char *text);

#endif
