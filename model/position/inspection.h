#ifndef ROPEWALK_INSPECTION_H
#define ROPEWALK_INSPECTION_H

#include "model/base/report.h"
#include "model/position/zones.h"

/* What an encoding's `inspect` hook gets to know: what it would meet in a sequence of `place->T` tokens at the
 * positions 0 .. T - 1 under a scaling. */
struct inspection {
	const struct place *place;
	const struct method *scaling;
	struct scaling_request request;     /* of that length */
	const struct zones *zones;
	const struct place_parameters *own; /* [layers] the tensors of a model; NULL: there is none */
};

#endif
