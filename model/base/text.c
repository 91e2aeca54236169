#include "text.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
	if (!memory) {
		fputs("ropewalk: out of memory\n", stderr);
		exit(ERR_FAILED);
	}
	return memory;
}

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

/* A decimal number as it stands in a text. */
struct decimal {
	const char *start;    /* sign or first digit */
	const char *mantissa; /* digits, with at most one point */
	const char *exponent; /* behind the 'e'; NULL if there is none */
};

static bool find_decimal(const char *text, struct decimal *d)
{
	const char *s = d->start = skip_space(text);
	s += *s == '+' || *s == '-';
	d->mantissa = s;
	const char *point = skip_digits(s), *end = point;
	if (*point == '.')
		end = skip_digits(point + 1);
	if (end == s || (point == s && end == s + 1))
		return false;
	d->exponent = NULL;
	if (*end == 'e' || *end == 'E') {
		d->exponent = end + 1;
		s = d->exponent + (end[1] == '+' || end[1] == '-');
		end = skip_digits(s);
		if (end == s)
			return false;
	}
	return !*skip_space(end);
}

bool text_to_number(const char *text, double *out)
{
	struct decimal d;
	if (!find_decimal(text, &d))
		return false;
	double value = strtod(d.start, NULL);
	if (isinf(value))
		return false;
	*out = value;
	return true;
}

/* value = 10^power value, unless that overflows. */
static bool scale_by_tens(int64_t *value, long power)
{
	for (; *value && power > 0; power--)
		if (__builtin_mul_overflow(*value, 10, value))
			return false;
	return !*value || !power;
}

bool text_to_integer(const char *text, int64_t *out)
{
	struct decimal d;
	if (!find_decimal(text, &d))
		return false;
	int64_t value = 0, sign = *d.start == '-' ? -1 : 1;
	long zeros = 0, places = 0, exponent = d.exponent ? strtol(d.exponent, NULL, 10) : 0;
	bool fraction = false;
	/* Zeros wait until a digit follows them: those at the end belong to the power of ten. */
	for (const char *s = d.mantissa; isdigit((unsigned char)*s) || *s == '.'; s++) {
		if (*s == '.') {
			fraction = true;
			continue;
		}
		places += fraction;
		zeros++;
		if (*s == '0')
			continue;
		if (!scale_by_tens(&value, zeros) || __builtin_add_overflow(value, sign * (*s - '0'), &value))
			return false;
		zeros = 0;
	}
	if (exponent > INT_MAX || exponent < -INT_MAX)
		exponent = exponent > 0 ? INT_MAX : -INT_MAX;
	if (!scale_by_tens(&value, zeros + exponent - places))
		return false;
	*out = value;
	return true;
}

const char *number_to_text(double value, char text[NUMBER_TEXT])
{
	if (isnan(value) || isinf(value)) {
		snprintf(text, NUMBER_TEXT, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
		return text;
	}
	int precision = 1;
	do
		snprintf(text, NUMBER_TEXT, "%.*e", precision - 1, value);
	while (strtod(text, NULL) != value && precision++ < 17);
	/* %g turns to an exponent as soon as the digits do not reach the point: 500 is not to become 5e+02. */
	int exponent = atoi(strchr(text, 'e') + 1);
	if (exponent >= precision && exponent < 16)
		precision = exponent + 1;
	snprintf(text, NUMBER_TEXT, "%.*g", precision, value);
	return text;
}

static char same_dash(char c)
{
	return c == '-' ? '_' : c;
}

bool same_name(const char *a, const char *b)
{
	while (*a && same_dash(*a) == same_dash(*b))
		a++, b++;
	return !*a && !*b;
}

#define NAME_MOST 127

/* For the nearest of names a capital is no other letter. */
static char letter(char c)
{
	return (char)tolower((unsigned char)same_dash(c));
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that lead from a to b (optimal string alignment); more
 * than NAME_MOST for names longer than that. */
static int edit_distance(const char *a, const char *b)
{
	static const int too_far = NAME_MOST + 1;
	int row[3][NAME_MOST + 1];
	size_t rows = strlen(a), columns = strlen(b);
	if (rows > NAME_MOST || columns > NAME_MOST)
		return too_far;
	for (size_t j = 0; j <= columns; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= rows; i++) {
		int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
		now[0] = (int)i;
		for (size_t j = 1; j <= columns; j++) {
			char x = letter(a[i - 1]), y = letter(b[j - 1]);
			now[j] = least(last[j - 1] + (x != y), least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && x == letter(b[j - 2]) && letter(a[i - 2]) == y)
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return row[rows % 3][columns];
}

const char *nearest_name(const char *name, const char *(*next)(int i, const void *data), const void *data)
{
	size_t third = strlen(name) / 3;
	int best = (third < 3 ? (int)third : 3) + 1;
	const char *nearest = NULL, *other;
	for (int i = 0; (other = next(i, data)); i++) {
		int distance = edit_distance(name, other);
		if (distance < best) {
			best = distance;
			nearest = other;
		}
	}
	return nearest;
}

static char *trimmed_copy(const char *start, const char *end)
{
	while (start < end && isspace((unsigned char)*start))
		start++;
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	return checked(strndup(start, (size_t)(end - start)));
}

char **text_list(const char *text, int *count)
{
	char **list = checked(malloc(sizeof *list));
	size_t room = 1;
	int pieces = 0, depth = 0;
	if (*skip_space(text))
		for (const char *s = text, *start = text;; s++) {
			depth += *s == '(';
			depth -= *s == ')' && depth > 0;
			if (*s && (*s != ',' || depth))
				continue;
			if ((size_t)pieces + 1 == room)
				list = checked(realloc(list, sizeof *list * (room *= 2)));
			list[pieces++] = trimmed_copy(start, s);
			start = s + 1;
			if (!*s)
				break;
		}
	list[pieces] = NULL;
	*count = pieces;
	return list;
}

void text_list_free(char **list)
{
	if (!list)
		return;
	for (char **piece = list; *piece; piece++)
		free(*piece);
	free(list);
}

/* The code point that `s` begins with and, in *bytes, how many it has; 0 bytes where it is not UTF-8. */
static uint32_t code_point(const unsigned char *s, size_t *bytes)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = *s < 0x80 ? 1 : *s < 0xc0 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf8 ? 4 : 0;
	uint32_t value = length > 1 ? *s & (0x7fu >> length) : *s;
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			length = 0;
		value = value << 6 | (s[i] & 0x3f);
	}
	bool surrogate = value >= 0xd800 && value < 0xe000;
	*bytes = length && value >= least[length] && value <= 0x10ffff && !surrogate ? length : 0;
	return value;
}

/* Controls, what has no width, line and paragraph separators, changes of direction. */
static bool unprintable(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
}

void text_printable(const char *text, char *out, size_t room)
{
	char *end = out + room - 1;
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t bytes;
		bool escaped = unprintable(code_point(s, &bytes)) || !bytes;
		size_t taken = bytes ? bytes : 1;
		if ((size_t)(end - out) < (escaped ? 4 * taken : taken))
			break;
		for (size_t i = 0; i < taken; i++)
			out += escaped ? sprintf(out, "\\x%02x", s[i]) : (*out = (char)s[i], 1);
		s += taken;
	}
	*out = '\0';
}

void text_add(struct text_builder *b, const char *format, ...)
{
	va_list list, again;
	va_start(list, format);
	va_copy(again, list);
	int length = vsnprintf(NULL, 0, format, list);
	va_end(list);
	BUG_IF(length < 0, "the format '%s' cannot be printed", format);
	size_t need = b->size + (size_t)length + 1;
	if (need > b->room) {
		b->room = need + b->room;
		b->data = checked(realloc(b->data, b->room));
	}
	vsnprintf(b->data + b->size, b->room - b->size, format, again);
	va_end(again);
	b->size += (size_t)length;
}

void text_builder_free(struct text_builder *b)
{
	free(b->data);
	*b = (struct text_builder){ 0 };
}
