#include "data/counts.h"

#include <stdlib.h>

/* Tokens in a row are one number, base V: contexts of `order` tokens are numbered so, as are they with what follows. */
struct counts {
	int V, orders;
	double tokens;
	/* [V^order] of contexts; the rows of the next order are what follows them. */
	uint32_t *seen[CORPUS_ORDERS];  /* [V^(order + 1)] how often */
	uint32_t *total[CORPUS_ORDERS]; /* [V^order] how often something follows */
	uint32_t *kinds[CORPUS_ORDERS]; /* [V^order] how many different tokens do */
};

static struct err reserve(int V, int orders, struct counts *n)
{
	size_t contexts = 1, width = (size_t)V;
	bool all = true;
	for (int order = 0; order < orders; order++, contexts *= width) {
		n->seen[order] = calloc(contexts * width, sizeof *n->seen[order]);
		n->total[order] = calloc(contexts, sizeof *n->total[order]);
		n->kinds[order] = calloc(contexts, sizeof *n->kinds[order]);
		all = all && n->seen[order] && n->total[order] && n->kinds[order];
	}
	return all ? OK : err_failed("Close other programs.", "no memory to count %d tokens", V);
}

static void count_token(struct counts *n, int order, size_t context, int32_t token)
{
	uint32_t *seen = &n->seen[order][context * (size_t)n->V + (size_t)token];
	n->kinds[order][context] += !*seen;
	n->total[order][context]++;
	++*seen;
}

static void count_part(const struct corpus_part *p, struct counts *n)
{
	size_t V = (size_t)n->V, context[CORPUS_ORDERS] = { 0 }, modulus[CORPUS_ORDERS] = { 1, V, V * V };
	for (size_t i = 0; i < p->tokens; i++) {
		int32_t token = corpus_token(p, i);
		for (int order = 0; order < n->orders && (size_t)order <= i; order++)
			count_token(n, order, context[order], token);
		for (int order = 1; order < n->orders; order++)
			context[order] = (context[order] * V + (size_t)token) % modulus[order];
	}
}

struct err counts_make(const struct corpus_part *part, int V, struct counts **out)
{
	int orders = part->type == CORPUS_BYTES ? CORPUS_ORDERS : 1;
	struct counts *n = calloc(1, sizeof *n);
	BUG_IF(!n, "out of memory for counts");
	*n = (struct counts){ .V = V, .orders = orders, .tokens = (double)part->tokens };
	*out = n;
	TRY(reserve(V, orders, n));
	count_part(part, n);
	return OK;
}

double counts_follow(const struct counts *n, const int32_t *before, int order, int32_t token)
{
	BUG_IF(order >= n->orders, "%d tokens before one were not counted", order);
	size_t V = (size_t)n->V;
	double p = (n->seen[0][token] + 1.0) / (n->tokens + (double)n->V);
	for (int k = 1; k <= order; k++) {
		size_t context = 0;
		for (int i = order - k; i < order; i++)
			context = context * V + (size_t)before[i];
		double kinds = n->kinds[k][context], total = n->total[k][context];
		if (total > 0)
			p = (n->seen[k][context * V + (size_t)token] + kinds * p) / (total + kinds);
	}
	return p;
}
