#include "model/position/distance_bias.h"
#include "model/position/inspection.h"

#include <math.h>

/* Hard-ALiBi (Jelassi et al. 2024, 2402.01032, section 4): some heads see the last m keys alone, each its own m; the
 * others see all, without positions:
 *	logit = scale q.k + (i - j < m_h ? 0 : -inf),  m_h = step (h + 1) for the first `windows` heads h, else infinite
 * Not learned. */

enum { WINDOWS, STEP };
static const struct option options[] = {
	[WINDOWS] = { .name = "windows", .kind = OPTION_NUMBER, .initial = "auto", .least = 1, .most = 1024,
		      .choices = "auto", .unit = "heads", .results = true,
		      .help = "heads with a window; auto: half of them, rounded up" },
	[STEP] = { .name = "step", .kind = OPTION_INTEGER, .initial = "2", .least = 1, .most = 1048576,
		   .unit = "tokens", .results = true,
		   .help = "head h, from 0, sees the last step (h + 1) keys, its own among them; 1 in the paper" },
	{ 0 },
};

static int windows_of(const struct method *m, int H)
{
	double windows = m->value[WINDOWS].number;
	return windows > 0 ? (int)windows : H == 1 ? 1 : (H + 1) / 2;
}

static struct err check(const struct model_options *o, int D)
{
	double windows = o->encoding.value[WINDOWS].number;
	int H = (int)o->heads, most = H > 1 ? H - 1 : 1;
	(void)D;
	if (windows != floor(windows))
		return err_usage(NULL, "hard_alibi_windows: %g is not a whole number", windows);
	if (windows <= most)
		return OK;
	return err_usage(H > 1 ? "At least one head must see all keys." : NULL,
			 "hard_alibi_windows: %.0f of %d heads: at most %d", windows, H, most);
}

/* Keys that a head sees, its own among them. */
static double window_of(const struct place *p, int head)
{
	return head < windows_of(p->method, p->H) ? (double)p->method->value[STEP].integer * (head + 1) : INFINITY;
}

static real bias(const struct place *p, const struct tile *t, const void *own, double distance)
{
	const double *window = own;
	(void)p, (void)t;
	return distance < *window ? 0 : (real)-INFINITY;
}

static void logits(const struct place *p, const struct tile *t, real *logit)
{
	double window = window_of(p, t->head);
	distance_bias(p, t, bias, &window, logit);
}

static void logits_back(const struct place *p, const struct tile *t, const real *raw, real *d_logit,
			struct tile_gradient g)
{
	(void)raw;
	distance_bias_back(p, t, NULL, d_logit, g);
}

static struct err inspect(const struct inspection *in, struct report *to)
{
	const struct place *p = in->place;
	double *window;
	report_table(to, NULL, "head", p->H);
	TRY(report_column(to, "windows", "keys seen", 0, &window));
	for (int h = 0; h < p->H; h++)
		window[h] = window_of(p, h);
	report_note(to, "Keys that a head sees, the query's own among them; a head without a number sees all.");
	return OK;
}

const struct position position_hard_alibi = {
	.entry = { .name = "hard_alibi", .help = "some heads see the last few keys alone, the others all",
		   .paper = "Jelassi et al. 2024, 2402.01032", .options = options },
	.check = check,
	.inspect = inspect,
	.logits = logits,
	.logits_back = logits_back,
};
