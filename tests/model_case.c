#include "tests/model_case.h"

#include <stdio.h>
#include <stdlib.h>

struct model_options small_options(const char *encoding)
{
	struct method method;
	assert_ok(method_parse("encoding", position_at, encoding, &method));
	return model_case_options(&method);
}

struct model_options sized_options(const char *encoding, int width, int heads)
{
	struct model_options o = small_options(encoding);
	o.width = width;
	o.heads = heads;
	return o;
}

struct model_options rope_options(double theta, int D, int train_length)
{
	char label[64];
	snprintf(label, sizeof label, "rope(theta=%.17g)", theta);
	struct model_options o = sized_options(label, D, 1);
	o.train_length = train_length;
	return o;
}

int all_encodings(struct method method[ENCODINGS])
{
	int count = 0;
	for (int i = 0; position_at(i); i++) {
		method[count] = method_default(position_at(i));
		if (method_find(position_at(i), "overflow") >= 0)
			assert_ok(method_parse("encoding", position_at, "learned(overflow=clamp)", &method[count]));
		count++;
	}
	assert_true(count >= 10 && count <= ENCODINGS);
	return count;
}

struct method scaling_named(const char *label)
{
	struct method m;
	assert_ok(method_parse("scaling", scaling_at, label, &m));
	return m;
}

void case_open(struct model_case *c, const struct model_options *options, const char *scaling, int B, int T,
	       const double *positions)
{
	struct method method = scaling_named(scaling);
	case_open_method(c, options, &method, B, T, positions);
}

void case_open_method(struct model_case *c, const struct model_options *options, const struct method *scaling, int B,
		      int T, const double *positions)
{
	assert_ok(model_case_open(options, scaling, B, T, positions, c));
}

void case_close(struct model_case *c)
{
	model_case_close(c);
}

double case_loss(struct model_case *c)
{
	struct outcome o = transformer_forward(c->transformer, c->token, c->target, NULL);
	return o.nll_sum / (double)o.scored;
}

real *case_logits(struct model_case *c)
{
	real *logits = TAKE(real, (size_t)c->B * (size_t)c->T * (size_t)c->model.V);
	transformer_forward(c->transformer, c->token, c->target, logits);
	return logits;
}
