#include "file_name.h"

#include "io.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* NULL: it is a path alone. */
static const char *hash_in(const char *text)
{
	const char *at = strrchr(text, '@');
	return at && at > text && strlen(at + 1) == 8 && strspn(at + 1, "0123456789abcdef") == 8 && !io_exists(text) ?
		       at : NULL;
}

static struct err check_path(const char *path)
{
	int depth = 0;
	const char *s = path;
	for (; *s && depth >= 0 && *s != ',' && *s != '#' && !iscntrl((unsigned char)*s); s++)
		depth += (*s == '(') - (*s == ')');
	if (!*s && !depth)
		return OK;
	return err_usage("Rename the file, or make a link to it.",
			 "%s: a label cannot hold a path with a comma, a #, a control character or a single "
			 "parenthesis", path);
}

struct err file_name_open(const char *text, struct file_name *out)
{
	*out = (struct file_name){ 0 };
	TRY(check_path(text));
	const char *at = hash_in(text);
	out->hash = at ? at + 1 : NULL;
	out->path = strndup(text, at ? (size_t)(at - text) : strlen(text));
	BUG_IF(!out->path, "out of memory for a path");
	return OK;
}

void file_name_close(struct file_name *n)
{
	free(n->path);
	*n = (struct file_name){ 0 };
}

struct err file_name_check(const struct file_name *n, const char *what, const char *label)
{
	const char *now = strrchr(label, '@') + 1;
	if (!n->hash || !strcmp(n->hash, now))
		return OK;
	return err_usage("Put the file back as it was; for something new, give the path alone to take it as it is now.",
			 "%s: its %s %s, not %s: it has changed", n->path, what, now, n->hash);
}

void file_name_label(const char *path, uint32_t hash, struct text_builder *b)
{
	text_add(b, "%s@%08" PRIx32, path, hash);
}
