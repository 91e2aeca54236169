#include "runs/claims/claims.h"

#include "runs/claims/compared.h"
#include "runs/claims/computed.h"
#include "runs/claims/pairs.h"
#include "runs/options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define YARN "yarn(ramp=rotations,beta_slow=1,beta_fast=4)"
#define ALIBI "alibi(slopes=spread)"
#define SKIPPING "rope(nope_every=2)"

/* Spots: recall under a scaling of rope, of another encoding, and another group. */
#define ROPE(scaling, multiple) { "rope", scaling, multiple, "recall" }
#define OTHER(encoding, multiple) { encoding, "none", multiple, "recall" }
#define IN(encoding, scaling, multiple, group) { encoding, scaling, multiple, group }

#define BELOW(...) { __VA_ARGS__, .relation = SPOT_BELOW }
#define ABOVE(...) { __VA_ARGS__, .relation = SPOT_ABOVE }

#define END { .a = { .encoding = NULL } }

/* Perplexity is the same as at 1x if it is below 1.1 times that. */
#define SAME 1.1

static const struct comparison breaks[] = {
	ABOVE(.a = ROPE("none", 2), .b = ROPE("none", 1), .times = SAME),
	ABOVE(.a = ROPE("none", 4), .b = ROPE("none", 1), .times = SAME),
	ABOVE(.a = ROPE("none", 8), .b = ROPE("none", 1), .times = SAME),
	END,
};
static const struct comparison extrapolates[] = {
	BELOW(.a = ROPE("none", 8), .b = ROPE("none", 1), .times = SAME),
	END,
};
static const struct comparison keeps_range[] = {
	ABOVE(.a = ROPE("linear", 8), .b = ROPE("none", 8), .measure = SPOT_ACCURACY),
	ABOVE(.a = ROPE("linear", 32), .b = ROPE("none", 32), .measure = SPOT_ACCURACY),
	END,
};
static const struct comparison loses_local[] = {
	BELOW(.a = IN("rope", "linear(factor=8)", 1, "echo"), .b = IN("rope", "none", 1, "echo"),
	      .measure = SPOT_ACCURACY),
	BELOW(.a = IN("rope", "linear", 8, "echo"), .b = IN("rope", "none", 1, "echo"), .measure = SPOT_ACCURACY),
	END,
};
static const struct comparison yarn_beats[] = {
	BELOW(.a = ROPE(YARN, 8), .b = ROPE("linear", 8)),
	BELOW(.a = ROPE(YARN, 8), .b = ROPE("ntk", 8)),
	END,
};
static const struct comparison eightfold[] = {
	ABOVE(.a = ROPE(YARN, 8), .measure = SPOT_ACCURACY, .least = 0.9),
	END,
};
static const struct comparison thirtytwofold[] = {
	ABOVE(.a = ROPE(YARN, 32), .measure = SPOT_ACCURACY, .least = 0.9),
	END,
};
static const struct comparison flat[] = {
	BELOW(.a = OTHER(ALIBI, 2), .b = OTHER(ALIBI, 1), .times = SAME),
	BELOW(.a = OTHER(ALIBI, 4), .b = OTHER(ALIBI, 1), .times = SAME),
	BELOW(.a = OTHER(ALIBI, 8), .b = OTHER(ALIBI, 1), .times = SAME),
	END,
};
static const struct comparison forgets[] = {
	BELOW(.a = IN(ALIBI, "none", 32, "far"), .b = IN(ALIBI, "none", 32, "near"), .measure = SPOT_ACCURACY),
	END,
};
static const struct comparison sinusoids_weak[] = {
	ABOVE(.a = OTHER("sinusoidal", 2), .b = OTHER("sinusoidal", 1), .times = SAME),
	ABOVE(.a = OTHER("sinusoidal", 2), .b = ROPE("none", 2)),
	ABOVE(.a = OTHER("sinusoidal", 2), .b = OTHER("t5", 2)),
	ABOVE(.a = OTHER("sinusoidal", 2), .b = OTHER(ALIBI, 2)),
	END,
};
static const struct comparison t5_between[] = {
	BELOW(.a = OTHER("t5", 8), .b = OTHER("sinusoidal", 8)),
	BELOW(.a = OTHER("t5", 8), .b = ROPE("none", 8)),
	ABOVE(.a = OTHER("t5", 8), .b = OTHER(ALIBI, 8)),
	END,
};
static const struct comparison nope_best[] = {
	BELOW(.a = OTHER("nope", 4), .b = OTHER("sinusoidal", 4)),
	BELOW(.a = OTHER("nope", 4), .b = ROPE("none", 4)),
	BELOW(.a = OTHER("nope", 4), .b = OTHER("t5", 4)),
	BELOW(.a = OTHER("nope", 4), .b = OTHER(ALIBI, 4)),
	END,
};
static const struct comparison every_layer[] = {
	ABOVE(.a = OTHER(SKIPPING, 1), .b = ROPE("none", 1), .times = SAME, .learning = true),
	ABOVE(.a = OTHER(SKIPPING, 8), .b = ROPE("none", 8), .learning = true),
	END,
};

#define STUDY "claims"

static const struct claim list[] = {
	{ .id = "direct-breaks", .words = "Direct extrapolation of RoPE breaks past the trained length.",
	  .statement = "The perplexity of unscaled rope at 2x, 4x and 8x is above 1.1 times that at 1x.",
	  .source = "Chen et al. 2023, 2306.15595", .study = STUDY, .comparison = breaks },
	{ .id = "relative-extrapolates", .words = "RoPE extrapolates, because it is relative.",
	  .statement = "The perplexity of unscaled rope at 8x is below 1.1 times that at 1x.", .study = STUDY,
	  .comparison = extrapolates },
	{ .id = "linear-keeps-range", .words = "Linear interpolation keeps the range.",
	  .statement = "Without fine-tuning, accuracy in recall is above that of unscaled rope at 8x and 32x.",
	  .source = "Chen et al. 2023, 2306.15595", .study = STUDY, .comparison = keeps_range },
	{ .id = "linear-loses-local", .words = "Linear interpolation loses local precision without fine-tuning.",
	  .statement = "Accuracy in echo (the token before) is below that of unscaled rope at 1x: with factor 8 at "
		       "1x, and at 8x.",
	  .source = "Peng et al. 2023, 2309.00071", .study = STUDY, .comparison = loses_local },
	{ .id = "ntk-ends",
	  .words = "NTK-aware scaling leaves the fastest pair alone and divides the slowest by the factor.",
	  .statement = "ntk's frequencies beside the trained ones: the first is unchanged, the last divided by s, "
		       "for D = 32, 64, 128, theta = 500, 10000 and s = 2, 8, 32.",
	  .source = "bloc97 2023; Peng et al. 2023, 2309.00071", .compute = claim_ntk_ends },
	{ .id = "yarn-beats-both", .words = "YaRN beats linear interpolation and NTK without fine-tuning.",
	  .statement = "At 8x the perplexity under yarn (rotation ramp, 1 to 4) is below that under linear and under "
		       "ntk.",
	  .source = "Peng et al. 2023, 2309.00071", .study = STUDY, .comparison = yarn_beats },
	{ .id = "dynamic-is-free-inside", .words = "Dynamic NTK costs nothing inside the trained length.",
	  .statement = "At every length up to the trained one its frequencies are those of plain rope to the bit, "
		       "with alpha 1 and 4.",
	  .source = "emozilla 2023; Peng et al. 2023, 2309.00071", .compute = claim_dynamic_inside },
	{ .id = "alibi-flat", .words = "ALiBi stays flat.",
	  .statement = "alibi's perplexity (slopes spread) at 2x, 4x and 8x is below 1.1 times that at 1x.",
	  .source = "Press et al. 2021, 2108.12409", .study = STUDY, .comparison = flat },
	{ .id = "alibi-forgets", .words = "ALiBi forgets what is far.",
	  .statement = "At 32x alibi's accuracy where the evidence is at least a trained length back is below that "
		       "where it is nearer.",
	  .study = STUDY, .comparison = forgets },
	{ .id = "learned-ends", .words = "A learned table cannot go past its end.",
	  .statement = "Trained at 64, the encoding takes position 63 and refuses position 64.",
	  .compute = claim_learned_ends },
	{ .id = "sinusoids-weak", .words = "Sinusoids extrapolate worst.",
	  .statement = "At 2x the perplexity of sinusoidal is above 1.1 times that at 1x, and above that of rope, t5 "
		       "and alibi.",
	  .source = "Press et al. 2021, 2108.12409", .study = STUDY, .comparison = sinusoids_weak },
	{ .id = "t5-between", .words = "T5's buckets lie in between.",
	  .statement = "At 8x the perplexity of t5 is below that of sinusoidal and unscaled rope, and above alibi's.",
	  .source = "Press et al. 2021, 2108.12409", .study = STUDY, .comparison = t5_between },
	{ .id = "nope-best", .words = "No positional encoding generalises best to longer inputs.",
	  .statement = "At 4x the perplexity of nope is below that of sinusoidal, unscaled rope, t5 and alibi.",
	  .source = "Kazemnejad et al. 2023, 2305.19466", .study = STUDY, .comparison = nope_best },
	{ .id = "rope-in-every-layer", .words = "RoPE is needed in every layer.",
	  .statement = "Without rotation in every second layer perplexity is above 1.1 times that of rope at 1x, and "
		       "above it at 8x.",
	  .study = STUDY, .comparison = every_layer },
	{ .id = "fast-near-slow-far", .words = "Fast pairs serve neighbours, slow pairs serve distance.",
	  .statement = "At 1x, holding still the pairs that turn fully within the trained length costs more accuracy "
		       "in echo (the token before) than holding still the others, and less in recall.",
	  .source = "Barbero et al. 2024, 2410.06205", .study = STUDY, .examine = claim_fast_pairs },
	{ .id = "near-is-large", .words = "Near keys get large scores and far keys small ones.",
	  .statement = "The score of two vectors of ones (D = 128, theta = 10000) falls with each step of distance "
		       "up to 2047, and is smaller everywhere from 1024 on than anywhere below 256.",
	  .source = "Su et al. 2021, 2104.09864, section 3.3 (of an upper bound)", .compute = claim_near_is_large },
	{ .id = "t5-parameter-per-distance", .words = "T5 needs a parameter for every distance.",
	  .statement = "The parameters of t5 (16 buckets) number at least as many as the distances, at trained "
		       "lengths of 64 and 65536.",
	  .compute = claim_t5_parameters },
	{ .id = "shuffling-changes-nothing", .words = "Without positions, shuffling the input changes nothing.",
	  .statement = "In a causal decoder of two layers without encoding the logits of the last token stay when "
		       "the 31 tokens before it are shuffled (random weights).",
	  .source = "denied by Haviv et al. 2022, 2203.16634", .compute = claim_order_lost },
	{ .id = "only-rotations", .words = "Only rotations by m theta give scores that depend on the distance alone.",
	  .statement = "Scores of equal vectors at equal distances, positions 0 to 63: neither reflections nor "
		       "rotations by m^2 theta give the same number for each distance, and rotations do.",
	  .compute = claim_rotations_alone },
	{ .id = "norms-stay", .words = "RoPE never changes a norm.",
	  .statement = "The norm of a random vector (D = 128) before and after plain rope, at positions up to 131072.",
	  .source = "Su et al. 2021, 2104.09864", .compute = claim_norms_stay },
	{ .id = "8x-without-training", .words = "From 4K to 32K without training.",
	  .statement = "At 8x rope under yarn (rotation ramp, 1 to 4) still answers 90 % in recall.", .study = STUDY,
	  .comparison = eightfold },
	{ .id = "32x-without-training", .words = "From 4K to 128K without training.",
	  .statement = "At 32x rope under yarn (rotation ramp, 1 to 4) still answers 90 % in recall.", .study = STUDY,
	  .comparison = thirtytwofold },
};

const struct claim *claim_at(int index)
{
	int count = sizeof list / sizeof *list;
	return index >= 0 && index < count ? &list[index] : NULL;
}

const char *claim_id_at(int index, const void *unused)
{
	const struct claim *c = claim_at(index);
	(void)unused;
	return c ? c->id : NULL;
}

const char *claim_verdict_name(enum claim_verdict v)
{
	static const char *const names[CLAIM_VERDICTS] = {
		[CLAIM_HOLDS] = "holds",
		[CLAIM_FAILS] = "does not hold",
		[CLAIM_UNTESTABLE] = "cannot be tested",
		[CLAIM_UNMEASURED] = "not measured",
	};
	return names[v];
}

void finding_add(struct finding *f, const char *format, ...)
{
	char text[600];
	struct text_builder b = { 0 };
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	text_add(&b, "%s%s%s", f->measured ? f->measured : "", f->measured ? "\n" : "", text);
	f->measured = text_keep(b.data);
	text_builder_free(&b);
}

static struct err test_by_study(const struct claim *c, struct claim_sources *from, struct finding *out)
{
	const struct results *r;
	TRY(claim_source_open(from, c->study, &r));
	if (!r) {
		out->verdict = CLAIM_UNMEASURED;
		out->reason = "its study has not been run";
		return OK;
	}
	return c->comparison ? claim_compare(c->comparison, r, out) : c->examine(r, out);
}

struct err claim_test(const struct claim *c, struct claim_sources *from, struct finding *out)
{
	*out = (struct finding){ .p = NAN };
	return c->study ? test_by_study(c, from, out) : c->compute(out);
}
