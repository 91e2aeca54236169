#include "runs/command/explain.h"

#include "runs/stop.h"

struct err explain_run(struct invocation *in, double multiple, explain_work *work)
{
	struct config *c = &in->config;
	struct examined x;
	TRY(examined_open(in->word[0], c, multiple, &x));
	struct err e = work(c, &x);
	examined_close(&x);
	return e;
}

struct err explain_parts(const struct config *c, const struct parts_question *q, struct parts_answers *out)
{
	TRY(run_parts_check(q));
	TRY(command_start(c));
	stop_catch();
	return run_parts(q, out);
}
