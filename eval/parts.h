#ifndef ROPEWALK_PARTS_H
#define ROPEWALK_PARTS_H

#include "eval/perplexity.h"

/* A model evaluated while some of its rotated pairs turn otherwise than the rest, to see which of them matter. */

/* Which pairs: those of a layer, of a head of it, a pair m of every head; -1: of all of them. */
struct part {
	int layer, head, pair;
};
#define PART_ALL ((struct part){ -1, -1, -1 })

enum parts_by { PARTS_BY_LAYER, PARTS_BY_HEAD, PARTS_BY_PAIR, PARTS_BY };

/* Appends the parts of a model, in order, to an stb_ds array; layers that do not rotate are none. */
void parts_add(const struct model_options *options, enum parts_by by, struct part **part);

/* How the pairs of a part turn, and all the others. */
struct part_setting {
	struct part part;
	enum pair_kind inside, outside;
};

/* Inverse frequencies [place_pairs] that a model's pairs turn by under a scaling, its own where they are learned. */
void parts_frequencies(const struct model *m, const struct method *scaling, double length, double *inv_freq);

/* Does the encoding rotate pairs? The error names those that do. */
struct err parts_check_encoding(const struct model_options *options);

/* Does a scaling act on pairs alone, so that it can be applied to some? One with zones or query scales of its own does
 * not, and one that changes no frequencies at this length has nothing to apply. */
struct err parts_check_scaling(const struct method *scaling, const struct model_options *options, double length);

/* eval_check and eval_run of the request with its pairs set so; PAIR_TRAINED is for encodings that take scalings. */
struct err parts_check(const struct eval_request *request, struct part_setting s);
struct err parts_run(const struct eval_request *request, struct part_setting s, eval_progress *progress, void *data,
		     struct eval_result *out);

#endif
