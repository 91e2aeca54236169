#ifndef ROPEWALK_PAIRED_H
#define ROPEWALK_PAIRED_H

#include "eval/perplexity.h"

/* Evaluations of the same sequences compared sequence by sequence: what sequences have in common does not count as
 * noise. Groups are indices into the tables' groups. */

enum measure { MEASURE_ACCURACY, MEASURE_NLL };

/* One less another, a scored token: sum d_i / scored, d_i the difference of sequence i. Standard error
 * sqrt(n/(n-1) sum (d_i - value scored_i)^2) / scored; 0 for one sequence. */
struct paired_change {
	double value, se;
};
struct paired_change paired_change(const struct eval_result *it, const struct eval_result *from, int group,
				   enum measure measure);

/* How much of the way from one to another a third has gone: r = sum (it - from) / sum (to - from), a ratio estimator,
 * standard error sqrt(n/(n-1) sum ((it - from)_i - r (to - from)_i)^2) / |sum (to - from)| (Cochran 1977, Sampling
 * Techniques, section 6.4). A way below PAIRED_LEAST (a share of the tokens, or nats), or below twice its standard
 * error, is none: its shares would be those of noise. */
#define PAIRED_LEAST 0.01
enum paired_way { WAY_SHORT, WAY_UNSURE, WAY_KNOWN };
struct paired_share {
	enum paired_way way;
	double value, se; /* where the way is known */
};
struct paired_share paired_share(const struct eval_result *it, const struct eval_result *from,
				 const struct eval_result *to, int group, enum measure measure);

#endif
