#ifndef ROPEWALK_REPORT_PRINT_H
#define ROPEWALK_REPORT_PRINT_H

#include "model/base/report.h"

#include <stdio.h>

/* A report for people: facts a line each, tables in aligned columns (five digits), notes. */
void report_print(const struct report *r, FILE *to);

/* A report for programs: one JSON object, a member a line. Numbers are the shortest text that reads back equal; null
 * where there is none or it has no end. */
void report_json(const struct report *r, FILE *to);

#endif
