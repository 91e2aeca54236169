#include "runs/run/measures.h"

#include "model/base/stb.h"
#include "runs/run/columns.h"

#include <math.h>

#define HEAD                                                              \
	COLUMN(measure_row, TEXT, run, row.run),                          \
	COLUMN(measure_row, TEXT, encoding, row.encoding),                \
	COLUMN(measure_row, TEXT, scaling, row.scaling),                  \
	COLUMN(measure_row, NUMBER, factor, row.factor),                  \
	COLUMN(measure_row, TEXT, task, row.task),                        \
	COLUMN(measure_row, TEXT, group, row.group),                      \
	COLUMN(measure_row, INTEGER, seed, row.seed),                     \
	COLUMN(measure_row, INTEGER, eval_seed, row.eval_seed),           \
	COLUMN(measure_row, INTEGER, train_length, row.train_length),     \
	COLUMN(measure_row, INTEGER, length, row.length),                 \
	COLUMN(measure_row, NUMBER, multiple, row.multiple),              \
	COLUMN(measure_row, INTEGER, sequences, row.sequences)

static const struct column position_columns[] = {
	HEAD,
	COLUMN(measure_row, INTEGER, position, position),
	COLUMN(measure_row, INTEGER, positions, positions),
	COLUMN(measure_row, INTEGER, scored, row.cell.scored),
	COLUMN(measure_row, NUMBER, nll, row.cell.nll),
	COLUMN(measure_row, NUMBER, nll_se, row.cell.nll_se),
	COLUMN(measure_row, NUMBER, accuracy, row.cell.accuracy),
	COLUMN(measure_row, TEXT, protocol, row.protocol),
	{ 0 },
};

static const struct column grid_columns[] = {
	HEAD,
	COLUMN(measure_row, INTEGER, distance, distance),
	COLUMN(measure_row, INTEGER, position_seen, position_seen),
	COLUMN(measure_row, INTEGER, distance_seen, distance_seen),
	COLUMN(measure_row, INTEGER, scored, row.cell.scored),
	COLUMN(measure_row, NUMBER, nll, row.cell.nll),
	COLUMN(measure_row, NUMBER, accuracy, row.cell.accuracy),
	COLUMN(measure_row, TEXT, protocol, row.protocol),
	{ 0 },
};

static const struct column calibration_columns[] = {
	HEAD,
	COLUMN(measure_row, INTEGER, scored, row.cell.scored),
	COLUMN(measure_row, NUMBER, temperature, temperature),
	OPTIONAL(measure_row, NUMBER, nll, row.cell.nll),
	OPTIONAL(measure_row, NUMBER, perplexity, row.cell.perplexity),
	COLUMN(measure_row, TEXT, protocol, row.protocol),
	{ 0 },
};

static const char *impossible_position(const void *row)
{
	const struct measure_row *m = row;
	const char *bad = row_impossible(&m->row);
	return bad							       ? bad
	       : m->position < 0 || m->position >= m->row.length	       ? "position"
	       : m->positions < 1 || m->positions > m->row.length - m->position ? "positions"
	       : m->row.cell.scored < 1					       ? "scored"
									       : NULL;
}

static const char *impossible_grid(const void *row)
{
	const struct measure_row *m = row;
	const char *bad = row_impossible(&m->row);
	return bad							      ? bad
	       : m->distance < 1 || m->distance > m->row.length		      ? "distance"
	       : m->position_seen < 0 || m->position_seen > 1		      ? "position_seen"
	       : m->distance_seen != (m->distance < m->row.train_length)      ? "distance_seen"
	       : m->row.cell.scored < 1					      ? "scored"
									      : NULL;
}

static const char *impossible_calibration(const void *row)
{
	const struct measure_row *m = row;
	const char *bad = row_impossible(&m->row);
	return bad						   ? bad
	       : !(m->temperature > 0 && isfinite(m->temperature)) ? "temperature"
								   : row_impossible_perplexity(&m->row);
}

static bool is_scored(const void *row)
{
	return ((const struct measure_row *)row)->row.cell.scored > 0;
}

static void add_row(const void *row, void *rows)
{
	arrput(*(struct measure_row **)rows, *(const struct measure_row *)row);
}

static const struct {
	const char *name;
	struct row_kind kind;
} measures[] = {
	[MEASURE_BY_POSITION] = { "by_position",
				  { position_columns, sizeof(struct measure_row), NULL, impossible_position, add_row } },
	[MEASURE_RECALL_GRID] = { "recall_grid",
				  { grid_columns, sizeof(struct measure_row), NULL, impossible_grid, add_row } },
	[MEASURE_CALIBRATION] = { "calibration",
				  { calibration_columns, sizeof(struct measure_row), is_scored, impossible_calibration,
				    add_row } },
};

const char *measure_name(enum measure_kind m)
{
	return measures[m].name;
}

struct err measure_rows_read(enum measure_kind m, const char *path, struct measure_row **rows)
{
	return columns_read(path, &measures[m].kind, rows);
}

struct err measure_rows_write(enum measure_kind m, const char *path, const struct measure_row *rows, int count)
{
	return columns_write(path, &measures[m].kind, rows, count);
}
