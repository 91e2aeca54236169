#ifndef ROPEWALK_CLAIMS_SHOW_H
#define ROPEWALK_CLAIMS_SHOW_H

#include "runs/claims/claims.h"
#include "runs/show/records.h"

/* A claim and what its test found. */
struct tested {
	const struct claim *claim;
	struct finding finding;
};

/* A paragraph each: verdict, sentence, numbers, and the command that measures them again; `full` adds what was tested
 * and who says it. Append. */
void claims_text(const struct tested *t, int count, const struct claim_sources *from, bool full,
		 struct text_builder *b);
/* A Markdown table, a row a claim. Appends. */
void claims_markdown(const struct tested *t, int count, const struct claim_sources *from, struct text_builder *b);
/* A record a claim; the columns are in runs/README.md. */
void claims_records(const struct tested *t, int count, const struct claim_sources *from, struct records *to);

#endif
