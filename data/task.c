#include "data/task.h"

/* Adding a task: its file, and its line here. */
#define TASKS(_)     \
	_(recall)    \
	_(copy)      \
	_(induction) \
	_(needle)    \
	_(reverse)   \
	_(sort)      \
	_(addition)  \
	_(text)      \
	_(tokens)    \
	_(mqar)      \
	_(posgen)

#define DECLARE(name) extern const struct task task_##name;
TASKS(DECLARE)

#define ADDRESS(name) &task_##name,
static const struct task *const list[] = { TASKS(ADDRESS) };
enum { COUNT = sizeof list / sizeof list[0] };

const struct entry *task_at(int index)
{
	return index >= 0 && index < COUNT ? &list[index]->entry : NULL;
}
