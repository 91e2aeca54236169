#include "model/base/arena.h"
#include "runs/command/command.h"
#include "runs/progress.h"
#include "runs/run_folder.h"
#include "runs/run_train.h"

#include <inttypes.h>
#include <stdio.h>

static void print_plan(const struct config *c, const struct train_plan *p)
{
	char slabs[32], activations[32];
	fprintf(stderr, "%s, %s, train_length %" PRId64 ", seed %" PRId64 "\n", label_of(&c->model.encoding),
		label_of(&c->data.task), c->model.train_length, c->train.seed);
	fprintf(stderr, "%zu parameters; memory: weights, gradients and moments %s, activations and batch %s\n",
		p->parameters, memory_text(p->slabs, slabs), memory_text(p->activations + p->batch, activations));
	fprintf(stderr, "%" PRId64 " steps of %" PRId64 " tokens\n", c->train.steps,
		c->train.batch * c->model.train_length);
}

static struct err run(struct invocation *in)
{
	struct config *c = &in->config;
	struct train_plan plan;
	struct run_trained done;
	char time[32];
	TRY(config_finish(c, true));
	TRY(run_folder_check(c->run.out, c->run.force));
	TRY(run_train_check(c, &plan));
	TRY(command_start(c));
	print_plan(c, &plan);
	TRY(run_train(c->run.out, c, in->line, "train", &done));
	if (!done.steps) {
		printf("0 steps, initial weights: %s\n", c->run.out);
		return OK;
	}
	printf("loss %.4f, accuracy %.1f %%, %" PRId64 " steps in %s, %.0f tokens/s: %s\n", done.loss,
	       100 * done.accuracy, done.steps, duration_text(done.seconds, time), done.tokens_per_second, c->run.out);
	return OK;
}

const struct command command_train = {
	.name = "train",
	.words = "",
	.help = "train one model into a folder of its own",
	.more = "Prints the loss, the accuracy and the speed. Writes config, record.json, train.jsonl (a line a\n"
		"step), timing.jsonl and model.safetensors into the folder --out; runs/README.md says what is in each.\n"
		"Examples:\n"
		"  ropewalk train --out=runs/out/rope-101\n"
		"  ropewalk train --encoding='alibi(slopes=spread)' --seed=102 --out=runs/out/alibi-102",
	.lists = LIST_TRAINING | LIST_RUN,
	.run = run,
};
