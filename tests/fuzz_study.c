#include "tests/hostile.h"

#include "model/base/io.h"
#include "model/base/stb.h"
#include "runs/study/grid.h"

#include <string.h>

/* Study files, and the grid that is made of them. */

/* Making cells is slow beside reading: a few show as much as many. */
#define CELLS 24

static int cells_of(const struct study *s)
{
	int cells = 1;
	for (int i = 0; i < arrlen(s->line) && cells <= STUDY_CELLS; i++)
		cells *= (int)arrlen(s->line[i].value);
	return cells;
}

static void same_cells(const struct grid *a, const struct grid *b)
{
	BUG_IF(arrlen(a->cell) != arrlen(b->cell), "%d cells became %d", (int)arrlen(a->cell), (int)arrlen(b->cell));
	for (int i = 0; i < arrlen(a->cell); i++)
		BUG_IF(strcmp(a->cell[i].identity, b->cell[i].identity), "cell %d is another one", i);
}

static struct err build(const struct study *first, const struct study *second)
{
	struct grid a, b;
	int cells = cells_of(first);
	if (cells > CELLS && cells <= STUDY_CELLS)
		return OK;
	struct err e = refusal(grid_build(first, &a), NULL), f = grid_build(second, &b);
	BUG_IF(e.code != f.code, "a grid is refused one time of two: %s%s", e.text, f.text);
	if (!e.code)
		same_cells(&a, &b);
	grid_free(&a);
	grid_free(&b);
	return e;
}

static struct err read(const char *path, const char *again)
{
	struct study first, second;
	struct text_builder one = { 0 }, two = { 0 };
	TRY(refusal(study_read(path, &first), path));
	study_print(&first, &one);
	struct err e = io_write(again, one.data, one.size);
	if (!e.code)
		e = study_read(again, &second);
	BUG_IF(e.code, "what was written is refused: %s", e.text);
	study_print(&second, &two);
	BUG_IF(strcmp(one.data, two.data), "another study was read:\n%s\n%s", one.data, two.data);
	e = build(&first, &second);
	if (e.code)
		BUG_IF(io_remove(again).code, "%s stays", again);
	text_builder_free(&one);
	text_builder_free(&two);
	study_free(&first);
	study_free(&second);
	return e;
}

const struct target target_study = { "study", "a.study", read };
FUZZED(target_study)
