#include "runs/study/shard.h"

#include "model/base/stb.h"
#include "model/base/text.h"
#include "runs/study/team.h"

#include <stdio.h>
#include <string.h>

#define SHARDS STUDY_CELLS

struct err shard_parse(const char *text, struct shard *out)
{
	static const char hint[] = "Write --shard=I/N with 1 <= I <= N, as --shard=2/5, or --shard=auto.";
	char index[24], count[24];
	int64_t i, n;
	*out = (struct shard){ 0 };
	if (!*text)
		return OK;
	if (!strcmp(text, "auto"))
		return team_part(&out->index, &out->count);
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : 0;
	bool good = slash && length < sizeof index && strlen(slash + 1) < sizeof count;
	if (good) {
		snprintf(index, sizeof index, "%.*s", (int)length, text);
		snprintf(count, sizeof count, "%s", slash + 1);
		good = text_to_integer(index, &i) && text_to_integer(count, &n);
	}
	if (!good)
		return err_usage(hint, "--shard: '%.60s' is no part of a whole", text);
	if (n < 1 || n > SHARDS)
		return err_usage(hint, "--shard: '%.60s': the number of parts is 1 to %d", text, SHARDS);
	if (i < 1 || i > n)
		return err_usage(hint, "--shard: '%.60s': the part is 1 to %d", text, (int)n);
	*out = (struct shard){ (int)i, (int)n };
	return OK;
}

static int first_of_weights(const struct grid *g, int cell)
{
	for (int i = 0; i < cell; i++)
		if (!strcmp(g->cell[i].trained, g->cell[cell].trained))
			return i;
	return cell;
}

void shard_cells(const struct grid *g, const struct shard *s, bool *mine)
{
	int trainings = 0;
	for (int i = 0; i < arrlen(g->cell); i++) {
		int first = g->cell[i].tuned ? g->cell[i].base : first_of_weights(g, i);
		if (first < i)
			mine[i] = mine[first];
		else
			mine[i] = !s->count || trainings++ % s->count == s->index - 1;
	}
}
