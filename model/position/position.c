#include "model/position/position.h"

/* Adding an encoding: its file, and its line here. */
#define ENCODINGS(_)      \
	_(nope)           \
	_(sinusoidal)     \
	_(learned)        \
	_(t5)             \
	_(alibi)          \
	_(hard_alibi)     \
	_(kerple)         \
	_(fire)           \
	_(sandwich)       \
	_(shaw)           \
	_(transformer_xl) \
	_(deberta)        \
	_(rope)           \
	_(xpos)           \
	_(cope)           \
	_(fox)

#define DECLARE(name) extern const struct position position_##name;
ENCODINGS(DECLARE)

#define ADDRESS(name) &position_##name,
static const struct position *const list[] = { ENCODINGS(ADDRESS) };
enum { COUNT = sizeof list / sizeof list[0] };

const struct entry *position_at(int index)
{
	return index >= 0 && index < COUNT ? &list[index]->entry : NULL;
}

void position_verify(const struct position *p)
{
	const char *name = p->entry.name;
	BUG_IF(!p->embed != !p->embed_back, "%s: embed and embed_back come together", name);
	BUG_IF(!p->gate != !p->gate_back, "%s: gate and gate_back come together", name);
	BUG_IF(!p->gates_ready != !p->gates_ready_back, "%s: gates_ready and gates_ready_back come together", name);
	BUG_IF(p->gates_ready && !p->gate, "%s: gates_ready is for gates", name);
	BUG_IF(!p->gate != !p->gate_reals, "%s: gate and gate_reals come together", name);
	BUG_IF(!p->rotate != !p->rotate_back, "%s: rotate and rotate_back come together", name);
	BUG_IF(!p->logits != !p->logits_back, "%s: logits and logits_back come together", name);
	BUG_IF((p->centred || p->centred_span) && !(p->rotate && p->centred), "%s: centred is for rotate", name);
	BUG_IF(!p->values != !p->values_back, "%s: values and values_back come together", name);
	BUG_IF(!p->prepare != !p->prepare_back, "%s: prepare and prepare_back come together", name);
	BUG_IF(!p->prepare != !(p->table_reals || p->prepares_inv_freq), "%s: prepare has something to make", name);
	BUG_IF((p->rotary_dim || p->half_layout || p->rotates_layer || p->limit_inv_freq) && !p->rotate,
	       "%s: these are for rotate", name);
	BUG_IF(p->prepares_inv_freq && !p->rotate, "%s: inv_freq is for rotate", name);
	BUG_IF((p->carry_reals || p->saved_reals) && !p->logits, "%s: carry and saved are for logits", name);
}

void position_verify_all(void)
{
	for (int i = 0; i < COUNT; i++)
		position_verify(list[i]);
}

double place_length(const struct place *p, int end)
{
	double largest = p->positions[end - 1];
	for (int t = 0; p->unordered && t < end; t++)
		largest = p->positions[t] > largest ? p->positions[t] : largest;
	return largest + 1;
}

int place_rotary_dim(const struct place *p)
{
	return p->position->rotary_dim ? p->position->rotary_dim(p) : p->D;
}

struct place place_of(const struct model_options *o)
{
	return (struct place){
		.position = position_of(&o->encoding), .method = &o->encoding,
		.C = (int)o->width, .H = (int)o->heads, .D = (int)(o->width / o->heads), .layers = (int)o->layers,
		.train_length = (int)o->train_length,
	};
}
