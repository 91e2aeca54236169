#include "data/task.h"

/* A task is a file that defines `task_NAME`, and a row here. */
#define TASKS    \
	TASK(recall)

#define TASK(name) extern const struct task task_##name;
TASKS
#undef TASK

#define TASK(name) &task_##name,
static const struct task *const list[] = { TASKS };
#undef TASK

const struct entry *task_at(int index)
{
	int count = sizeof list / sizeof *list;
	return index >= 0 && index < count ? &list[index]->entry : NULL;
}
