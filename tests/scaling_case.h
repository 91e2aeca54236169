#ifndef ROPEWALK_TESTS_SCALING_CASE_H
#define ROPEWALK_TESTS_SCALING_CASE_H

#include "model/position/scaling.h"
#include "tests/model_case.h"

#include <jansson.h>

/* What scalings answer, and the golden files of frequencies that they are held against. */

#define PAIRS 64

/* Of a model of one head. */
struct answer {
	struct scaling_request request; /* without its method; factor: that in force */
	int pairs;
	double inv_freq[PAIRS], attention_factor;
};

struct answer ask(const char *label, double theta, int D, int train_length, double length);

/* The same to the bit, or the test fails. */
void same_bits(const struct answer *a, const struct answer *b);

/* The base that gives the second frequency. */
double base_of(const struct answer *a);

/* The number of a JSON object by this name, or `missing`. */
double number(const json_t *object, const char *key, double missing);

/* |a - b| <= relative |b|, and each within absolute + relative |wanted|, or the test fails and names the case. */
void close_to(double a, double b, double relative, const char *file, size_t at, const char *what);
void array_close(const double *found, const json_t *wanted, double absolute, double relative, const char *file,
		 size_t at, const char *what);

/* Cosines and sines at a position, attention factor included. */
void golden_angles(const struct answer *a, double position, const json_t *cosines, const json_t *sines,
		   const char *file, size_t at);

/* The scaling of a case as a user would write it; NULL where we have no words for its settings. */
typedef const char *(*labelled)(const json_t *settings, const json_t *expected, char label[256]);

/* Checks inv_freq and attention_factor of every case that has a label, and how many did and did not. */
void golden(const char *file, labelled write, size_t checked, size_t left_out);

#endif
