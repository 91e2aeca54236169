#include "runs/options.h"

#include "data/options.h"
#include "eval/options.h"
#include "model/base/stb.h"
#include "model/options.h"
#include "model/position/scaling.h"
#include "runs/command/command.h"
#include "runs/study/study_options.h"
#include "train/options.h"

#include <stdio.h>
#include <string.h>

#define OPTION_STRUCT run_options
const struct option run_option_rows[] = {
#include "model/base/option_rows.h"
#include "runs/options.def"
#include "model/base/option_end.h"
	{ 0 },
};

/* Other tools' names where the meaning is equal; rows may have more (`aliases`). */
static const struct {
	const char *theirs, *ours;
} aliases[] = {
	{ "num_hidden_layers", "layers" },
	{ "n_layer", "layers" },
	{ "hidden_size", "width" },
	{ "n_embd", "width" },
	{ "num_attention_heads", "heads" },
	{ "n_head", "heads" },
	{ "intermediate_size", "hidden" },
	{ "rms_norm_eps", "rms_eps" },
	{ "tie_word_embeddings", "tied" },
	{ "original_max_position_embeddings", "train_length" },
	{ "yarn_orig_ctx", "train_length" },
	{ "block_size", "train_length" },
	{ "learning_rate", "lr" },
	{ "batch_size", "batch" },
	{ "max_steps", "steps" },
	{ "max_iters", "steps" },
	{ "warmup_steps", "warmup" },
	{ "warmup_iters", "warmup" },
	{ "adam_beta1", "beta1" },
	{ "adam_beta2", "beta2" },
	{ "adam_epsilon", "adam_eps" },
	{ "max_grad_norm", "clip" },
	{ "grad_clip", "clip" },
	{ "rope_freq_base", "rope_theta" },
	{ "rope_scaling", "scaling" },
	{ "rope_scale", "factor" },
	{ "rope_scaling_factor", "factor" },
};

/* Other tools' names whose meaning is not ours: taken for an alias they would compute something else. */
static const struct {
	const char *theirs, *why, *hint;
} false_friends[] = {
	{ "rope_freq_scale", "this is 1 / factor", "Give --factor." },
	{ "yarn_attn_factor", "this multiplies the temperature that the factor implies",
	  "--attention-factor replaces it: give the product." },
	{ "partial_rotary_factor", "this is a share of head_dim",
	  "Give --rotary-dim, the components that are rotated; with Hugging Face's proportional type --p-rope." },
	{ "rotary_pct", "this is a share of head_dim", "Give --rotary-dim, the components that are rotated." },
	{ "max_position_embeddings", "this may be the trained length or the extended one",
	  "Give --train-length." },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

const struct option *option_rows(const struct scope *scope, unsigned list)
{
	switch (list) {
	case LIST_MODEL:
		return model_option_rows;
	case LIST_DATA:
		return data_option_rows;
	case LIST_TRAIN:
		return train_option_rows;
	case LIST_EVAL:
		return eval_option_rows;
	case LIST_RUN:
		return run_option_rows;
	case LIST_OWN:
		return scope->own;
	case LIST_STUDY:
		return study_option_rows;
	}
	BUG("no such option list: %u", list);
}

/* Is the name one of "a|b|c"? */
static bool among(const char *words, const char *name)
{
	while (words && *words) {
		char word[64];
		size_t length = strcspn(words, "|");
		snprintf(word, sizeof word, "%.*s", (int)length, words);
		if (same_name(word, name))
			return true;
		words += length + (words[length] == '|');
	}
	return false;
}

bool option_taken(const struct scope *scope, unsigned list, const struct option *row)
{
	return (scope->lists & list) && (list == LIST_OWN || !among(scope->without, row->name));
}

#define NAMES 512
#define FAMILIES 8

/* Every name of a scope, without aliases. */
struct names {
	struct option_name name[NAMES];
	int count;
	family_at family[FAMILIES];
	int families;
};

static struct option_name *add_name(struct names *all, const struct option *option)
{
	BUG_IF(all->count == NAMES, "more than %d option names", NAMES);
	struct option_name *n = &all->name[all->count++];
	*n = (struct option_name){ .option = option };
	snprintf(n->name, sizeof n->name, "%s", option->name);
	return n;
}

static void add_family(struct names *all, family_at family)
{
	for (int i = 0; i < all->families; i++)
		if (all->family[i] == family)
			return;
	BUG_IF(all->families == FAMILIES, "more than %d families of methods", FAMILIES);
	all->family[all->families++] = family;
}

family_at option_family(unsigned list, const struct option *o)
{
	/* A scaling's flags are for the one that is evaluated. */
	if (o->kind == OPTION_METHOD)
		return list == LIST_MODEL && !strcmp(o->name, "trained_scaling") ? NULL : o->family;
	bool scalings = (list == LIST_EVAL && !strcmp(o->name, "scaling")) ||
			(list == LIST_STUDY && !strcmp(o->name, "finetune"));
	return scalings ? scaling_at : NULL;
}

static void collect_list(const struct scope *scope, unsigned list, struct names *all)
{
	for (const struct option *o = option_rows(scope, list); o && o->name; o++) {
		if (!option_taken(scope, list, o))
			continue;
		add_name(all, o)->list = list;
		if (option_family(list, o))
			add_family(all, option_family(list, o));
	}
}

static bool shared_before(const struct names *all, family_at family, const char *name)
{
	for (int i = 0; i < all->count; i++)
		if (all->name[i].family == family && !all->name[i].entry && !strcmp(all->name[i].name, name))
			return true;
	return false;
}

static void collect_family(family_at family, struct names *all)
{
	const struct entry *e;
	for (int i = 0; (e = family(i)); i++)
		for (const struct option *o = e->options; o && o->name; o++) {
			if (o->shared && !shared_before(all, family, o->name))
				add_name(all, o)->family = family;
			struct option_name *n = add_name(all, o);
			n->family = family;
			n->entry = e;
			snprintf(n->name, sizeof n->name, "%s_%s", e->name, o->name);
		}
}

static struct names collect(const struct scope *scope)
{
	struct names all = { .count = 0 };
	for (int i = 0; i < LISTS; i++)
		if (scope->lists & (1u << i))
			collect_list(scope, 1u << i, &all);
	for (int i = 0; i < all.families; i++)
		collect_family(all.family[i], &all);
	return all;
}

static bool find_name(const struct names *all, const char *name, struct option_name *out)
{
	for (int i = 0; i < all->count; i++)
		if (same_name(all->name[i].name, name) || among(all->name[i].option->aliases, name)) {
			*out = all->name[i];
			return true;
		}
	return false;
}

bool option_lookup(const struct scope *scope, const char *name, struct option_name *out)
{
	struct names all = collect(scope);
	if (find_name(&all, name, out))
		return true;
	for (int i = 0; i < COUNT(aliases); i++)
		if (same_name(aliases[i].theirs, name))
			return find_name(&all, aliases[i].ours, out);
	return false;
}

bool option_alias_at(const struct option_name *n, int index, char text[64])
{
	for (const char *s = n->option->aliases; s && *s; s += strcspn(s, "|"), s += *s == '|')
		if (index-- == 0)
			return snprintf(text, 64, "%.*s", (int)strcspn(s, "|"), s) > 0;
	for (int i = 0; i < COUNT(aliases); i++)
		if (!strcmp(aliases[i].ours, n->name) && index-- == 0)
			return snprintf(text, 64, "%s", aliases[i].theirs) > 0;
	return false;
}

/* A shared option's METHOD_OPTION spelling is accepted but not advertised. */
static bool advertised(const struct option_name *n)
{
	return !(n->entry && n->option->shared);
}

bool option_name_at(const struct scope *scope, int index, struct option_name *out)
{
	struct names all = collect(scope);
	for (int i = 0; i < all.count; i++)
		if (advertised(&all.name[i]) && index-- == 0) {
			*out = all.name[i];
			return true;
		}
	return false;
}

static const char *next_name(int index, const void *data)
{
	const struct names *all = data;
	return index < all->count ? all->name[index].name : NULL;
}

/* "lr_rate" means lr: the first words agree. */
static const char *same_beginning(const struct names *all, const char *name)
{
	for (int i = 0; i < all->count; i++) {
		const char *other = all->name[i].name;
		size_t length = strlen(other);
		char head[64];
		snprintf(head, sizeof head, "%.*s", (int)length, name);
		if (length >= 2 && same_name(head, other) && strchr("-_", name[length]) && name[length])
			return other;
	}
	return NULL;
}

/* A name as a user would write it where `shown` stands. */
static const char *spelled(const char *name, const char *shown, char out[80])
{
	bool flag = !strncmp(shown, "--", 2);
	snprintf(out, 80, "%s%s", flag ? "--" : "", name);
	for (char *s = out; flag && *s; s++)
		*s = *s == '_' ? '-' : *s;
	return out;
}

static const struct command *command_with(const char *name, struct option_name *found)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++) {
		struct scope scope = command_scope(c);
		if (option_lookup(&scope, name, found))
			return c;
	}
	return NULL;
}

/* The command whose help lists the options: a run's are those of train. */
static const char *listed_by(const struct scope *scope)
{
	const struct command *c;
	for (int i = 0; (c = command_at(i)); i++)
		if (!strcmp(c->name, scope->command))
			return c->name;
	return "train";
}

struct err option_unknown(const struct scope *scope, const char *name, const char *shown)
{
	char hint[200] = "", word[80];
	for (int i = 0; i < COUNT(false_friends); i++)
		if (same_name(false_friends[i].theirs, name))
			return err_usage(false_friends[i].hint, "%s: not an option of ours: %s", shown,
					 false_friends[i].why);
	struct option_name found;
	const struct command *other = command_with(name, &found);
	if (other) {
		bool fixed = (scope->lists & (LIST_EVAL | LIST_TRAIN)) == LIST_EVAL && found.list != LIST_RUN;
		snprintf(hint, sizeof hint, "It is one of `ropewalk %s`%s; see `ropewalk %s --help`.", other->name,
			 fixed ? "; a trained run's options are fixed" : "", listed_by(scope));
		return err_usage(hint, "%s: not an option of %s", shown, scope->command);
	}
	struct names all = collect(scope);
	const char *nearest = nearest_name(name, next_name, &all);
	if (!nearest)
		nearest = same_beginning(&all, name);
	if (nearest)
		snprintf(hint, sizeof hint, "Did you mean %s?", spelled(nearest, shown, word));
	else
		snprintf(hint, sizeof hint, "See `ropewalk %s --help`.", listed_by(scope));
	return err_usage(hint, "%s: unknown option", shown);
}

union option_value option_get(const struct option *row, const void *options)
{
	union option_value value = { .integer = 0 };
	BUG_IF(row->kind == OPTION_METHOD, "option %s is a method", row->name);
	memcpy(&value, (const char *)options + row->offset, sizeof value);
	return value;
}

void option_put(const struct option *row, void *options, union option_value value)
{
	BUG_IF(row->kind == OPTION_METHOD, "option %s is a method", row->name);
	memcpy((char *)options + row->offset, &value, sizeof value);
}

const char *text_keep(const char *text)
{
	static struct {
		char *key;
		int value;
	} *kept;
	if (!kept)
		sh_new_strdup(kept);
	ptrdiff_t i = shgeti(kept, text);
	if (i < 0) {
		shput(kept, text, 0);
		i = shgeti(kept, text);
	}
	return kept[i].key;
}
