#include "model/base/arena.h"
#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/command/command.h"
#include "runs/model_input.h"
#include "runs/token_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct forward_options {
	const char *tokens, *output, *prefix;
	int64_t gradients, length;
	struct method scaling;
};

#define ROW(n, k, i, u, h) \
	.name = #n, .kind = OPTION_##k, .initial = i, .unit = u, .help = h, \
	.offset = offsetof(struct forward_options, n)
static const struct option own[] = {
	{ ROW(tokens, TEXT, "", "file", "safetensors with tokens, targets, loss_mask or scored, positions") },
	{ ROW(output, TEXT, "", "file", "safetensors to write: logits, nll, loss, and the gradients") },
	{ ROW(prefix, TEXT, "", "", "what stands before the names in --tokens, as L64.") },
	{ ROW(gradients, SWITCH, "off", "", "also write the gradient of the loss by each parameter") },
	{ ROW(scaling, METHOD, "none", "", "RoPE scaling; not given: the one that the model was trained with"), .family = scaling_at },
	{ ROW(length, INTEGER, "0", "tokens", "length an `auto` factor is for; 0: the largest position + 1"),
	  .most = 16777216 },
	{ 0 },
};

static struct err write_output(const char *path, const struct token_file *in, const struct model *m, const real *logits,
			       const struct outcome *out, const real *gradient)
{
	double loss = out->nll_sum / (double)out->scored;
	struct tensor *tensor = NULL;
	struct text_builder name = { 0 };
	const struct tensor results[] = {
		{ .name = "logits", .dtype = REAL_DTYPE, .rank = 3, .shape = { in->B, in->T, m->V }, .data = logits },
		{ .name = "nll", .dtype = DTYPE_F64, .rank = 2, .shape = { in->B, in->T }, .data = out->nll },
		{ .name = "loss", .dtype = DTYPE_F64, .rank = 1, .shape = { 1 }, .data = &loss },
	};
	for (int i = 0; i < 3; i++)
		arrput(tensor, results[i]);
	for (int i = 0; gradient && i < layout_count(&m->layout); i++) {
		const struct parameter *p = &m->layout.parameter[i];
		name.size = 0;
		text_add(&name, "grad.%s", p->name);
		struct tensor t = { .name = text_keep(name.data), .dtype = REAL_DTYPE, .data = gradient + p->offset };
		if (p->rows)
			t.shape[t.rank++] = p->rows;
		t.shape[t.rank++] = p->columns;
		arrput(tensor, t);
	}
	struct err e = safetensors_write(path, tensor, (int)arrlen(tensor), NULL, 0);
	arrfree(tensor);
	text_builder_free(&name);
	return e;
}

/* What the results take, beside the transformer. */
struct results {
	real *logits, *gradient;
};

static void place_results(struct arena *a, const struct token_file *in, const struct model *m, bool gradients,
			  struct results *r)
{
	r->logits = ARENA_TAKE(a, real, (size_t)in->B * (size_t)in->T * (size_t)m->V);
	r->gradient = gradients ? ARENA_TAKE(a, real, m->layout.size) : NULL;
}

/* Refuses what is too much, writing the file included, before anything large is reserved. */
static struct err fits(const struct transformer_request *request, size_t results)
{
	struct arena all = { 0 };
	size_t transformer;
	char need[32], have[MEMORY_AVAILABLE_TEXT];
	TRY(transformer_bytes(request, &transformer));
	arena_take(&all, transformer, 1);
	arena_take(&all, results, 2);
	if (all.used <= memory_available())
		return OK;
	return err_usage("Give fewer sequences at once, or shorter ones.",
			 "forward: %d sequences of %d tokens need %s, and %s", request->B, request->T,
			 memory_text(all.used, need), memory_available_text(have));
}

static struct err compute(const struct forward_options *o, const struct token_file *in, const struct model *m,
			  const struct method *scaling)
{
	struct arena memory = { 0 }, measure = { 0 };
	struct results r;
	struct transformer *t = NULL;
	struct transformer_request request = { .model = m, .B = in->B, .T = in->T, .positions = in->positions,
					       .scaling = scaling, .gradients = o->gradients };
	place_results(&measure, in, m, o->gradients, &r);
	struct err e = fits(&request, measure.used);
	if (!e.code)
		e = transformer_open(&request, &t);
	if (!e.code)
		e = arena_reserve(&memory, measure.used, "logits and gradients");
	if (!e.code) {
		place_results(&memory, in, m, o->gradients, &r);
		struct outcome out = transformer_forward(t, in->token, in->target, r.logits);
		if (!out.scored)
			e = err_usage("Give a target other than -1, or a mask with a 1.", "%s: nothing is scored",
				      in->path);
		if (!e.code && o->gradients)
			transformer_backward(t, r.gradient);
		if (!e.code)
			e = write_output(o->output, in, m, r.logits, &out, r.gradient);
		if (!e.code)
			printf("loss %.17g over %" PRId64 " tokens: %s\n", out.nll_sum / (double)out.scored, out.scored,
			       o->output);
	}
	transformer_close(t);
	arena_free(&memory);
	return e;
}

static struct err check_files(const struct forward_options *o, const char *model)
{
	if (!*o->tokens)
		return err_usage("Write --tokens=IN.safetensors.", "forward: --tokens is missing");
	if (!*o->output)
		return err_usage("Write --output=OUT.safetensors.", "forward: --output is missing");
	if (io_same(o->output, model) || io_same(o->output, o->tokens))
		return err_usage("Give another --output.", "%s: the output would replace %s", o->output,
				 io_same(o->output, model) ? "the model" : "the tokens");
	return io_writable(o->output);
}

static struct err work(struct config *c, const char *path, struct token_file *in, struct model *m)
{
	const struct forward_options *o = c->own;
	TRY(token_file_read(o->tokens, o->prefix, in));
	TRY(input_model(c, path, m));
	struct method scaling = config_given(c, "scaling") ? o->scaling : m->options.trained_scaling;
	TRY(token_file_check(in, m->V));
	double reached = in->positions[in->T - 1] + 1;
	TRY(scaling_check(&scaling, &m->options, reached));
	TRY(input_scaling_length(&scaling, &m->options, reached, o->length));
	TRY(command_start(c));
	return compute(o, in, m, &scaling);
}

static struct err run(struct invocation *invocation)
{
	struct config *c = &invocation->config;
	struct token_file in = { 0 };
	struct model m = { 0 };
	TRY(input_finish(c, invocation->word[0]));
	TRY(check_files(c->own, invocation->word[0]));
	struct err e = work(c, invocation->word[0], &in, &m);
	token_file_free(&in);
	model_close(&m);
	return e;
}

const struct command command_forward = {
	.name = "forward",
	.words = "MODEL.safetensors",
	.help = "run a model on given tokens: logits, NLL, gradients",
	.more = "Prints the loss. Writes logits (B,T,V), nll (B,T), loss (1) and, with --gradients, grad.NAME of each\n"
		"tensor. A model that ropewalk wrote knows its options; for others give --heads, --encoding,\n"
		"--rope-theta ...; sizes are read from the shapes.\n"
		"Example:\n"
		"  ropewalk forward runs/out/rope-101/model.safetensors --tokens=in.safetensors --output=out",
	.least = 1,
	.most = 1,
	.lists = LIST_MODEL | LIST_RUN | LIST_OWN,
	.without = "out|force|resume|save_every",
	.own = own,
	.own_size = sizeof(struct forward_options),
	.run = run,
};
