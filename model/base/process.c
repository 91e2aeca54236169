#include "process.h"

#include "err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The first line of a small file of the system; "" if there is none. */
static void first_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* Field 22 of /proc/PID/stat; "dead" for one that only waits for its parent to look. The second field, the program's
 * name, may hold anything but ends at the last parenthesis. */
static void start_of(long pid, char text[32])
{
	char path[64], line[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	first_line(path, line, sizeof line);
	char *field = strrchr(line, ')');
	bool dead = field && strchr("ZXx", field[1] ? field[2] : 'Z');
	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	if (dead)
		field = NULL;
	snprintf(text, 32, "%.*s", field ? (int)strcspn(field + 1, " ") : 4, field ? field + 1 : dead ? "dead" : "");
}

static void namespace_of_self(char text[64])
{
	ssize_t size = readlink("/proc/self/ns/pid", text, 63);
	text[size > 0 ? size : 0] = '\0';
}

struct process process_self(void)
{
	struct process p = { .pid = (long)getpid() };
	if (gethostname(p.host, sizeof p.host - 1) || !*p.host)
		snprintf(p.host, sizeof p.host, "localhost");
	first_line("/proc/sys/kernel/random/boot_id", p.boot_id, sizeof p.boot_id);
	namespace_of_self(p.pid_namespace);
	start_of(p.pid, p.started);
	return p;
}

void process_print(const struct process *p, struct text_builder *b)
{
	text_add(b, "host = %s\nboot_id = %s\npid = %ld\npid_namespace = %s\nstarted = %s\n", p->host, p->boot_id,
		 p->pid, p->pid_namespace, p->started);
}

/* The value of a line `name = value`; false if there is none. What is no plain text must not reach a terminal. */
static bool value_of(const char *text, const char *name, char *out, size_t size)
{
	size_t length = strlen(name), n = 0;
	*out = '\0';
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, length) || strncmp(line + length, " = ", 3))
			continue;
		for (const char *s = line + length + 3; *s && *s != '\n' && n + 1 < size; s++)
			out[n++] = *s >= ' ' && *s <= '~' ? *s : '?';
		out[n] = '\0';
		return true;
	}
	return false;
}

void process_parse(const char *text, struct process *out)
{
	char pid[32];
	int64_t number = 0;
	value_of(text, "host", out->host, sizeof out->host);
	value_of(text, "boot_id", out->boot_id, sizeof out->boot_id);
	value_of(text, "pid_namespace", out->pid_namespace, sizeof out->pid_namespace);
	value_of(text, "started", out->started, sizeof out->started);
	if (!value_of(text, "pid", pid, sizeof pid) || !text_to_integer(pid, &number) || number < 1 ||
	    number > INT32_MAX)
		number = 0;
	out->pid = (long)number;
}

/* Host names are given twice; boots are not. */
static bool same_machine(const struct process *a, const struct process *b)
{
	return *a->boot_id && *b->boot_id ? !strcmp(a->boot_id, b->boot_id) : !strcmp(a->host, b->host);
}

enum process_state process_alive(const struct process *p)
{
	struct process self = process_self();
	char started[32];
	if (!p->pid || !same_machine(p, &self) || strcmp(p->pid_namespace, self.pid_namespace))
		return PROCESS_UNKNOWN;
	if (kill((pid_t)p->pid, 0) && errno == ESRCH)
		return PROCESS_DEAD;
	start_of(p->pid, started);
	if (!strcmp(started, "dead"))
		return PROCESS_DEAD;
	/* Where /proc hides the processes of other users nothing is said. */
	bool other = *started && *p->started && strcmp(p->started, started);
	return other ? PROCESS_DEAD : PROCESS_ALIVE;
}

void process_token(char *text, size_t size)
{
	static const char digit[] = "0123456789abcdef";
	unsigned char byte[64];
	BUG_IF(size - 1 > sizeof byte, "a token of %zu digits", size - 1);
	BUG_IF(getentropy(byte, size - 1), "the system has no random numbers");
	for (size_t i = 0; i + 1 < size; i++)
		text[i] = digit[byte[i] % 16];
	text[size - 1] = '\0';
}
