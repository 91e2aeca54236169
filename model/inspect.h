#ifndef ROPEWALK_INSPECT_H
#define ROPEWALK_INSPECT_H

#include "model/base/report.h"
#include "model/transformer.h"

/* The numbers of an encoding and a scaling, taken from the code that training and evaluation run: zones as attention
 * gets them, what the encoding's `inspect` hook says, and a model's learned tables. */
struct inspect_request {
	const struct model_options *options; /* a head has width / heads reals */
	int width;                           /* C, where it is not options->width; 0 */
	int length;                          /* tokens, at positions 0 .. length - 1 */
	const struct method *scaling;
	const struct model *model; /* whose options these are; NULL */
};

/* Fills a zeroed report: report_free it, also after an error. Errors: options that the encoding or the scaling cannot
 * take, a length it does not reach, too little memory. */
struct err inspect(const struct inspect_request *q, struct report *to);

#endif
