#ifndef ROPEWALK_DIAGNOSE_TABLES_H
#define ROPEWALK_DIAGNOSE_TABLES_H

#include "runs/run/run_diagnose.h"
#include "runs/show/format.h"

/* What a diagnosis found, for people and for programs. */

/* How to read it; then for each scaling a sheet, a row per head and length, and beneath it what pairs do and a verdict
 * for each length. FORMAT_TEXT or FORMAT_MD. Appends. */
void diagnose_page(const struct diagnose_question *q, const struct diagnose_answer *a, enum format format,
		   struct text_builder *b);

/* One scaling's sheet; sheet_free it. */
void diagnose_sheet(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, struct sheet *out);

/* What failed at a length, in words, on one line without its end. Appends. */
void diagnose_words(const struct diagnose_question *q, const struct diagnose_answer *a, int scaling, int length,
		    struct text_builder *b);

/* For each scaling and length a record per head (`what` head), per pair (pair), and one of the verdict. Appends. */
void diagnose_records(const struct diagnose_question *q, const struct diagnose_answer *a, struct records *out);

#endif
