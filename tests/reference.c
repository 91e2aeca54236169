#include "tests/reference.h"

#include "tests/reference_bias.h"
#include "tests/reference_parts.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One sequence at hand. */
struct sequence {
	const struct model *model;
	const struct method *encoding, *scaling; /* scaling NULL: none */
	int T, C, H, D;
	double *positions; /* [T] */
	double *distance;  /* [T][T] of a query and a key that it sees; NAN where it does not */
	double *query;     /* [T] the query's own position, for biases that go by it */
	double *scale;     /* [T] of queries */
	double *kept;      /* [layers][H][T][T] takes the logits of attention; NULL: they are not kept */
};

bool reference_knows(const struct entry *e)
{
	static const char *const known[] = { "nope", "sinusoidal", "learned", "rope", "none", "linear", "ntk",
					     "dynamic", "ntk_by_parts", "yarn", "window", "sinks", "rerope",
					     "leaky_rerope", "self_extend", "dual_chunk", "logn", "temperature" };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(e->name, known[i]))
			return true;
	return reference_has_bias(e);
}

static const struct parameter *parameter(const struct model *m, int layer, const char *what)
{
	char name[96];
	if (layer < 0)
		snprintf(name, sizeof name, "%s", what);
	else
		snprintf(name, sizeof name, "model.layers.%d.%s", layer, what);
	const struct parameter *p = layout_find(&m->layout, name);
	if (!p)
		fail_msg("the layout has no %s", name);
	return p;
}

static const real *value(const struct model *m, int layer, const char *what)
{
	return m->value + parameter(m, layer, what)->offset;
}

/* ---- The parts every encoding shares. ---- */

/* y [T][rows] = x [T][columns] W^T in fresh memory. */
static double *project(const struct model *m, int layer, const char *what, int T, const double *x)
{
	const struct parameter *p = parameter(m, layer, what);
	const real *w = m->value + p->offset;
	double *y = TAKE(double, (size_t)T * (size_t)p->rows);
	for (int t = 0; t < T; t++)
		for (int r = 0; r < p->rows; r++)
			for (int c = 0; c < p->columns; c++)
				y[t * p->rows + r] += (double)w[r * p->columns + c] * x[t * p->columns + c];
	return y;
}

/* x / sqrt(mean(x^2) + eps) * w in fresh memory. */
static double *normed(const struct model *m, int layer, const char *what, int T, int C, const double *x)
{
	const real *w = value(m, layer, what);
	double *y = TAKE(double, (size_t)T * (size_t)C);
	for (int t = 0; t < T; t++) {
		double squares = 0;
		for (int c = 0; c < C; c++)
			squares += x[t * C + c] * x[t * C + c];
		for (int c = 0; c < C; c++)
			y[t * C + c] = x[t * C + c] / sqrt(squares / C + m->options.rms_eps) * (double)w[c];
	}
	return y;
}

/* x += down(silu(gate(y)) * up(y)), y the normed x. */
static void feed_forward(const struct sequence *s, int layer, double *x)
{
	const struct model *m = s->model;
	double *y = normed(m, layer, "post_attention_layernorm.weight", s->T, s->C, x);
	double *gate = project(m, layer, "mlp.gate_proj.weight", s->T, y);
	double *up = project(m, layer, "mlp.up_proj.weight", s->T, y);
	for (int i = 0; i < s->T * (int)m->options.hidden; i++)
		up[i] *= gate[i] / (1 + exp(-gate[i]));
	double *down = project(m, layer, "mlp.down_proj.weight", s->T, up);
	for (int i = 0; i < s->T * s->C; i++)
		x[i] += down[i];
	free(y);
	free(gate);
	free(up);
	free(down);
}

/* ---- What is added to the embeddings. ---- */

static double sinusoid(const struct method *m, double position, int column, int C)
{
	int half = C / 2, pair = column / 2;
	bool cosine = column % 2;
	if (chosen(m, "layout", "concatenated")) {
		cosine = column >= (C + 1) / 2;
		pair = cosine ? column - (C + 1) / 2 : column;
	}
	double angle = position * pow(10000, -2.0 * pair / C);
	if (chosen(m, "layout", "tensor2tensor")) {
		if (column == 2 * half)
			return 0;
		cosine = column >= half;
		angle = position * exp(-(cosine ? column - half : column) * log(1e4) / fmax(half - 1, 1));
	}
	return cosine ? cos(angle) : sin(angle);
}

static double learned(const struct sequence *s, double position, int column)
{
	const struct parameter *p = parameter(s->model, -1, "model.position.table");
	const real *table = s->model->value + p->offset;
	double last = p->rows - 1, largest = s->positions[s->T - 1];
	if (largest > last && chosen(s->encoding, "overflow", "clamp"))
		position = fmin(position, last);
	else if (largest > last && chosen(s->encoding, "overflow", "interpolate"))
		position *= last / largest;
	else if (largest > last)
		fail_msg("position %g is past a table of %d rows", largest, p->rows);
	int row = (int)floor(position), next = row < p->rows - 1 ? row + 1 : row;
	double part = position - row;
	return (1 - part) * (double)table[row * p->columns + column] + part * (double)table[next * p->columns + column];
}

static double *embed(const struct sequence *s, const int32_t *token)
{
	const real *table = value(s->model, -1, "model.embed_tokens.weight");
	double *x = TAKE(double, (size_t)s->T * (size_t)s->C);
	for (int t = 0; t < s->T; t++)
		for (int c = 0; c < s->C; c++) {
			double *to = &x[t * s->C + c];
			*to = (double)table[token[t] * s->C + c];
			if (is(s->encoding, "sinusoidal"))
				*to += option(s->encoding, "scale") *
				       sinusoid(s->encoding, s->positions[t], c, s->C);
			else if (is(s->encoding, "learned"))
				*to += learned(s, s->positions[t], c);
		}
	return x;
}

/* ---- What is added to the logits. ---- */

double reference_slope(bool spread, int head, int H)
{
	if (spread)
		return H == 1 ? 1.0 / 256 : exp2(-(1 + 7.0 * head / (H - 1)));
	int power = 1;
	while (2 * power <= H)
		power *= 2;
	/* Heads past the power of two take every other slope of twice as many heads. */
	return head < power ? exp2(-8.0 * (head + 1) / power) : exp2(-8.0 * (2 * (head - power) + 1) / (2 * power));
}

int reference_bucket(int buckets, int max_distance, int distance)
{
	int exact = buckets / 2;
	if (distance < exact)
		return distance;
	/* Where the share of the logarithm is a whole number a rounded one may fall below it. */
	long double share = logl((long double)distance / exact) / logl((long double)max_distance / exact);
	int bucket = exact + (int)floorl(share * (buckets - exact) + 1e-12L);
	return bucket < buckets - 1 ? bucket : buckets - 1;
}

/* ---- Rotations, and the scalings of their frequencies. ---- */

static double factor_of(const struct method *scaling, int train_length, double length)
{
	double given = option(scaling, "factor"); /* 0: auto */
	return given > 0 ? given : fmax(1, length / train_length);
}

/* The pair, as a real number, that turns this often within the trained length. */
static double pair_of(double turns, double theta, int D, int train_length)
{
	return D * log(train_length / (2 * M_PI * turns)) / (2 * log(theta));
}

/* The share of a pair's frequency that is kept (1) and not interpolated (0). */
static double kept(const struct method *scaling, double theta, int D, int train_length, int m)
{
	double fast = option(scaling, "beta_fast"), slow = option(scaling, "beta_slow");
	if (chosen(scaling, "ramp", "rotations")) {
		double turns = train_length * pow(theta, -2.0 * m / D) / (2 * M_PI);
		return turns < slow ? 0 : turns > fast ? 1 : (turns - slow) / (fast - slow);
	}
	double low = pair_of(fast, theta, D, train_length), high = pair_of(slow, theta, D, train_length);
	if (option(scaling, "truncate") != 0) {
		low = floor(low);
		high = ceil(high);
	}
	/* No pair lies on the ramp: all are slower than it, or all faster. */
	if (high < 0)
		return 0;
	if (low > D - 1)
		return 1;
	low = fmax(low, 0);
	high = fmin(high, D - 1);
	if (low == high)
		high += 0.001;
	return 1 - fmin(fmax((m - low) / (high - low), 0), 1);
}

/* What a query is multiplied by before any bias. */
static double query_scale(const struct sequence *s, double position)
{
	const struct method *t = part(s->scaling, "temperature");
	double L = (double)s->model->options.train_length, scale = 1;
	if (part(s->scaling, "logn"))
		scale = fmax(1, log(position + 1) / log(L));
	if (!t)
		return scale;
	double root = 1 + 0.1 * log(factor_of(t, (int)L, s->positions[s->T - 1] + 1));
	return scale / or_else(option(t, "value"), 1 / (root * root));
}

/* The part that sets frequencies; NULL: there is none. */
static const struct method *setter(const struct method *scaling)
{
	static const char *const setters[] = { "linear", "ntk", "dynamic", "ntk_by_parts", "yarn" };
	for (size_t i = 0; i < sizeof setters / sizeof *setters; i++)
		if (part(scaling, setters[i]))
			return part(scaling, setters[i]);
	for (; scaling; scaling = scaling->plus)
		if (!reference_knows(scaling->entry))
			fail_msg("the reference does not know the scaling %s", scaling->entry->name);
	return NULL;
}

static double frequency(const struct method *scaling, double theta, int D, int train_length, double length, int m)
{
	double plain = pow(theta, -2.0 * m / D);
	scaling = setter(scaling);
	if (!scaling)
		return plain;
	if (is(scaling, "dynamic")) {
		double alpha = option(scaling, "alpha"), ratio = fmax(1, alpha * length / train_length - (alpha - 1));
		return pow(theta * pow(ratio, D / (D - 2.0)), -2.0 * m / D);
	}
	double s = factor_of(scaling, train_length, length);
	if (is(scaling, "linear"))
		return plain / s;
	if (is(scaling, "ntk"))
		return pow(theta * pow(s, D / (D - 2.0)), -2.0 * m / D);
	double keep = kept(scaling, theta, D, train_length, m);
	return keep * plain + (1 - keep) * plain / s;
}

void reference_frequencies(const struct method *scaling, double rope_theta, int D, int train_length, double length,
			   double *inv_freq, double *attention_factor)
{
	for (int m = 0; m < D / 2; m++)
		inv_freq[m] = frequency(scaling, rope_theta, D, train_length, length, m);
	const struct method *set = setter(scaling), *chunks = part(scaling, "dual_chunk");
	*attention_factor = 1;
	if (set && method_find(set->entry, "attention_factor") >= 0)
		*attention_factor = option(set, "attention_factor");
	if (set && is(set, "yarn") && *attention_factor == 0) /* auto */
		*attention_factor = 0.1 * log(factor_of(set, train_length, length)) + 1;
	if (chunks && option(chunks, "mscale") != 0)
		*attention_factor *= 1 + 0.05 * log(fmax(1, length / train_length));
}

/* How much of a head is rotated. */
static int rotary_dim(const struct sequence *s)
{
	return option(s->encoding, "rotary_dim") > 0 ? (int)option(s->encoding, "rotary_dim") : s->D;
}

/* Does this layer rotate q and k? */
static bool rotates(const struct sequence *s, int layer)
{
	if (!is(s->encoding, "rope") || option(s->encoding, "dropped") != 0)
		return false;
	int every = (int)option(s->encoding, "nope_every");
	return every == 0 || layer % every != every - 1;
}

/* Frequencies that were learned, in place of the others; pairs past the share of p_rope stand still. */
static void own_frequencies(const struct sequence *s, double *inv_freq, double *a)
{
	int r = rotary_dim(s), turning = (int)floor(option(s->encoding, "p_rope") * r / 2);
	bool tempered = chosen(s->encoding, "learned", "tempered");
	for (int m = 0; m < r / 2; m++) {
		if (tempered || chosen(s->encoding, "learned", "on"))
			inv_freq[m] *= exp((double)value(s->model, -1, "model.position.log_ratio")[m]);
		if (m >= turning)
			inv_freq[m] = 0;
	}
	if (tempered)
		*a = exp((double)value(s->model, -1, "model.position.log_attention_factor")[0]);
}

/* ---- Attention. ---- */

enum { PAIRS = 64 };

/* How keys turn against queries begin .. end - 1: by the frequencies of the length that ends with them. */
struct turn {
	int r; /* components that are rotated */
	bool half;
	double inv_freq[PAIRS], a;
	double (*whole)[PAIRS][2]; /* [T] cosine and sine at whole distances */
};

static void angle(const struct turn *t, double distance, int m, double found[2])
{
	found[0] = cos(distance * t->inv_freq[m]);
	found[1] = sin(distance * t->inv_freq[m]);
}

static void enter_turn(const struct sequence *s, int end, struct turn *t)
{
	assert_true(s->D <= 2 * PAIRS);
	t->r = rotary_dim(s);
	t->half = chosen(s->encoding, "layout", "half");
	reference_frequencies(s->scaling, option(s->encoding, "theta"), t->r, (int)s->model->options.train_length,
			      s->positions[end - 1] + 1, t->inv_freq, &t->a);
	own_frequencies(s, t->inv_freq, &t->a);
	for (int d = 0; d < s->T; d++)
		for (int m = 0; m < t->r / 2; m++)
			angle(t, d, m, t->whole[d][m]);
}

/* q.k of rows [D], the query turned by their distance, and both made longer; without turn as they are. */
static double product(const struct sequence *s, const double *q, const double *k, double distance, const struct turn *t)
{
	double dot = 0, turned[2];
	bool whole = distance >= 0 && distance < s->T && distance == floor(distance);
	int r = t ? t->r : 0;
	for (int m = 0; m < r / 2; m++) {
		int one = t->half ? m : 2 * m, two = t->half ? m + r / 2 : 2 * m + 1;
		const double *by = whole ? t->whole[(int)distance][m] : turned, x = q[one], y = q[two];
		if (!whole)
			angle(t, distance, m, turned);
		dot += t->a * t->a * ((x * by[0] - y * by[1]) * k[one] + (x * by[1] + y * by[0]) * k[two]);
	}
	for (int d = r; d < s->D; d++)
		dot += q[d] * k[d];
	return dot;
}

/* Scalable softmax: s ln n of the query whose key is the n-th. */
static double ssmax(const struct sequence *s, int layer, int head, int i)
{
	return s->model->options.ssmax ? (double)value(s->model, layer, "self_attn.ssmax")[head] * log(i + 1.0) : 1;
}

/* score [T][T] of a head: below the diagonal q.k / sqrt(D) + bias, -inf where the key is not seen. */
static void scores(const struct sequence *s, int layer, int head, const double *q, const double *k, double *score)
{
	struct turn turn = { .whole = take((size_t)s->T, sizeof *turn.whole) };
	struct turn *turned = rotates(s, layer) ? &turn : NULL;
	const struct method *dynamic = part(s->scaling, "dynamic");
	int block = turned && dynamic ? (int)option(dynamic, "block") : 0;
	reference_biases(s->model, layer, head, s->T, s->query, s->distance, score);
	for (int begin = 0, end; begin < s->T; begin = end) {
		end = block && begin + block < s->T ? begin + block : s->T;
		if (turned)
			enter_turn(s, end, &turn);
		for (int i = begin; i < end; i++)
			for (int j = 0; j <= i; j++) {
				double r = s->distance[i * s->T + j], *to = &score[i * s->T + j];
				if (isnan(r))
					*to = -INFINITY;
				else
					*to += product(s, q + i * s->C, k + j * s->C, r, turned) * s->scale[i] *
					       ssmax(s, layer, head, i) / sqrt(s->D);
			}
	}
	free(turn.whole);
}

/* output [T][C] of one head = softmax(score) v. */
static void attend(const struct sequence *s, int layer, int head, const double *q, const double *k, const double *v,
		   double *output)
{
	double *score = TAKE(double, s->T * s->T);
	scores(s, layer, head, q, k, score);
	if (s->kept)
		memcpy(s->kept + (size_t)(layer * s->H + head) * (size_t)s->T * (size_t)s->T, score,
		       sizeof *score * (size_t)s->T * (size_t)s->T);
	for (int i = 0; i < s->T; i++) {
		double *row = score + i * s->T, greatest = -INFINITY, sum = 0;
		for (int j = 0; j <= i; j++)
			greatest = fmax(greatest, row[j]);
		for (int j = 0; j <= i; j++)
			sum += row[j] = exp(row[j] - greatest);
		for (int j = 0; j <= i; j++)
			for (int d = 0; d < s->D; d++)
				output[i * s->C + d] += row[j] / sum * v[j * s->C + d];
	}
	free(score);
}

static void attention(const struct sequence *s, int layer, double *x)
{
	const struct model *m = s->model;
	double *y = normed(m, layer, "input_layernorm.weight", s->T, s->C, x);
	double *q = project(m, layer, "self_attn.q_proj.weight", s->T, y);
	double *k = project(m, layer, "self_attn.k_proj.weight", s->T, y);
	double *v = project(m, layer, "self_attn.v_proj.weight", s->T, y);
	double *heads = TAKE(double, s->T * s->C);
	for (int h = 0; h < s->H; h++)
		attend(s, layer, h, q + h * s->D, k + h * s->D, v + h * s->D, heads + h * s->D);
	double *output = project(m, layer, "self_attn.o_proj.weight", s->T, heads);
	for (int i = 0; i < s->T * s->C; i++)
		x[i] += output[i];
	free(y);
	free(q);
	free(k);
	free(v);
	free(heads);
	free(output);
}

/* ---- The whole. ---- */

/* Logits [T][V] of a sequence in fresh memory. */
static double *sequence_logits(const struct sequence *s, const int32_t *token)
{
	const struct model *m = s->model;
	double *x = embed(s, token);
	for (int layer = 0; layer < m->options.layers; layer++) {
		attention(s, layer, x);
		if (m->options.hidden)
			feed_forward(s, layer, x);
	}
	double *last = normed(m, -1, "model.norm.weight", s->T, s->C, x);
	double *logits = project(m, -1, m->options.tied ? "model.embed_tokens.weight" : "lm_head.weight", s->T, last);
	free(x);
	free(last);
	return logits;
}

static double surprise(int V, const double *logits, int32_t target)
{
	double greatest = logits[0], sum = 0;
	for (int i = 0; i < V; i++)
		greatest = fmax(greatest, logits[i]);
	for (int i = 0; i < V; i++)
		sum += exp(logits[i] - greatest);
	return greatest + log(sum) - logits[target];
}

static void sequence_open(const struct model *m, const struct method *scaling, int T, const double *positions,
			  struct sequence *s)
{
	const struct model_options *o = &m->options;
	int L = (int)o->train_length;
	*s = (struct sequence){ .model = m, .encoding = &o->encoding, .scaling = scaling, .T = T, .C = (int)o->width,
				.H = (int)o->heads, .D = (int)(o->width / o->heads), .positions = TAKE(double, T),
				.distance = TAKE(double, T * T), .query = TAKE(double, T), .scale = TAKE(double, T) };
	if (!reference_knows(s->encoding->entry))
		fail_msg("the reference does not know the encoding %s", s->encoding->entry->name);
	for (int t = 0; t < T; t++)
		s->positions[t] = positions ? positions[t] : t;
	for (int i = 0; i < T; i++) {
		s->scale[i] = query_scale(s, s->positions[i]);
		s->query[i] = reference_query_position(scaling, L, s->positions, i);
		for (int j = 0; j <= i; j++)
			s->distance[i * T + j] = reference_distance(scaling, L, T, s->positions, i, j);
	}
}

static void sequence_close(struct sequence *s)
{
	free(s->positions);
	free(s->distance);
	free(s->query);
	free(s->scale);
}

double reference_forward(const struct model *m, const struct method *scaling, int B, int T, const double *positions,
			 const int32_t *token, const int32_t *target, double *logits, double *nll)
{
	struct sequence s;
	double sum = 0;
	sequence_open(m, scaling, T, positions, &s);
	for (int b = 0; b < B; b++) {
		double *row = sequence_logits(&s, token + b * T);
		for (int t = 0; t < T; t++) {
			int n = b * T + t;
			double loss = target[n] < 0 ? 0 : surprise(m->V, row + t * m->V, target[n]);
			sum += loss;
			if (nll)
				nll[n] = loss;
		}
		if (logits)
			memcpy(logits + (size_t)b * T * m->V, row, sizeof *row * (size_t)T * (size_t)m->V);
		free(row);
	}
	sequence_close(&s);
	return sum;
}

void reference_scores(const struct model *m, const struct method *scaling, int T, const int32_t *token, double *score)
{
	struct sequence s;
	sequence_open(m, scaling, T, NULL, &s);
	s.kept = score;
	free(sequence_logits(&s, token));
	sequence_close(&s);
}
