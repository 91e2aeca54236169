#ifndef ROPEWALK_HTML_H
#define ROPEWALK_HTML_H

#include "runs/show/sheet.h"

/* Pieces of an HTML page that is well-formed XML, too. All append. */

/* Text with what HTML takes for markup escaped, and what is not printable as \xNN; line breaks stay. */
void html_text(struct text_builder *b, const char *text);
/* "<TAG>text</TAG>". */
void html_element(struct text_builder *b, const char *tag, const char *text);

/* A sheet as a table in a box that scrolls by itself: the title is its caption, cells are coloured by heat (classes h0
 * to h9), rows below the rule are a body of their own. */
void html_sheet(struct text_builder *b, const struct sheet *s);

/* An SVG picture of gnuplot's for use within the page: its ids begin with the name, so that several pictures on one
 * page do not share any; it is one image with this label. */
void html_svg(struct text_builder *b, const char *svg, const char *name, const char *label);

/* The style of the page: light and dark, wide and narrow. */
extern const char html_style[];

#endif
