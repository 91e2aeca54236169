#include "model/base/arena.h"
#include "model/base/memory.h"
#include "model/base/stb.h"
#include "model/base/threads.h"
#include "runs/progress.h"
#include "runs/run/run_folder.h"
#include "runs/study/study_plan.h"
#include "runs/version.h"

#include <inttypes.h>

static void print_head(const struct plan *plan, const struct totals *t, FILE *to)
{
	const struct shard *shard = &plan->job->shard;
	fprintf(to, "study %s: models: %d", plan->job->folder, t->models);
	if (shard->count)
		fprintf(to, " of %d (shard %d of %d)", (int)arrlen(plan->cell), shard->index, shard->count);
	fprintf(to, "; %d to train, %d to evaluate, %d finished", t->training, t->evaluating, t->finished);
	if (t->diverged)
		fprintf(to, ", %d diverged", t->diverged);
	fprintf(to, "\n");
}

/* Names of rows that lead to the same model, as a variant does whose options the command line has set. */
static void print_aliases(const struct grid *g, FILE *to)
{
	for (int i = 0; i < arrlen(g->alias); i++)
		for (int j = 0; j < arrlen(g->cell); j++)
			if (g->cell[j].group == g->alias[i].group) {
				fprintf(to, "  %s: the same models as %s, which stand in the tables\n", g->alias[i].label,
					g->cell[j].label);
				break;
			}
}

static void print_warnings(const struct plan *plan, const struct totals *t, FILE *to)
{
	for (int i = 0; i < arrlen(plan->cell); i++) {
		const struct err *e = &plan->cell[i].damaged;
		if (e->code)
			fprintf(to, "warning: a model is left as it is: %s\n  %s\n", e->text, e->hint);
	}
	if (t->other_version)
		fprintf(to, "warning: %d finished models were trained by another version of the program (this is "
			"commit %s); --force trains them anew\n", t->other_version, version_commit());
}

static void print_time(const struct totals *t, FILE *to)
{
	char time[32];
	int threads = threads_count();
	if (t->seconds > 0)
		fprintf(to, "  time: about %s on %d thread%s, estimated from a few trial steps\n",
			duration_about(t->seconds, time), threads, threads > 1 ? "s" : "");
}

static void print_cell(const struct cell_plan *p, const char *name, FILE *to)
{
	char time[32];
	fprintf(to, "  %s: %s%s%d evaluation%s", p->path ? run_folder_name(p->path) : name,
		p->sibling >= 0 ? "weights of another, " : p->train ? "training, " : "",
		p->anew ? "anew, " : "", p->missing, p->missing == 1 ? "" : "s");
	if (p->seconds > 0)
		fprintf(to, ", about %s", duration_about(p->seconds, time));
	fprintf(to, "\n");
}

void plan_print(const struct plan *plan, bool cells, FILE *to)
{
	char memory[32], disk[32];
	struct totals t = plan_totals(plan);
	print_head(plan, &t, to);
	print_aliases(plan->job->grid, to);
	fprintf(to, "  training: %zu parameters at most, %s, %" PRId64 " tokens\n", t.parameters,
		memory_text(t.bytes, memory), t.train_tokens);
	if (t.adopting)
		fprintf(to, "  %d more take over the weights of one that only evaluation tells apart from them\n",
			t.adopting);
	fprintf(to, "  evaluation: %d of %d (model, scaling, length), %" PRId64 " tokens\n", t.missing, t.possible,
		t.eval_tokens);
	if (t.space)
		fprintf(to, "  disk: %s\n", memory_text(t.space, disk));
	print_time(&t, to);
	if (plan->job->study->minutes > 0)
		fprintf(to, "  the whole study takes about %g minutes on two cores, says its file\n",
			plan->job->study->minutes);
	for (int i = 0; cells && i < arrlen(plan->cell); i++)
		if (cell_has_work(&plan->cell[i]) && !plan->cell[i].foreign)
			print_cell(&plan->cell[i], plan->job->grid->cell[i].name, to);
	print_warnings(plan, &t, to);
}
