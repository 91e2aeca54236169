/* Makes a folder's options.def into rows of struct option for the struct OPTION_STRUCT; undone by option_end.h. */
#define ROW_(n, k, i, ls, ms, c, u, r, h, f)                                                                \
	{ .name = #n, .kind = k, .initial = i, .least = ls, .most = ms, .choices = c, .unit = u, .help = h, \
	  .results = r, .offset = offsetof(struct OPTION_STRUCT, n), .family = f },
#define SWITCH(n, i, r, h) ROW_(n, OPTION_SWITCH, i, 0, 1, "off|on", "", r, h, NULL)
#define INTEGER(n, i, ls, ms, u, r, h) ROW_(n, OPTION_INTEGER, i, ls, ms, NULL, u, r, h, NULL)
#define NUMBER(n, i, ls, ms, u, r, h) ROW_(n, OPTION_NUMBER, i, ls, ms, NULL, u, r, h, NULL)
#define NUMBER_OR(n, i, w, ls, ms, u, r, h) ROW_(n, OPTION_NUMBER, i, ls, ms, w, u, r, h, NULL)
#define CHOICE(n, i, c, r, h) ROW_(n, OPTION_CHOICE, i, 0, 0, c, "", r, h, NULL)
#define TEXT(n, i, u, r, h) ROW_(n, OPTION_TEXT, i, 0, 0, NULL, u, r, h, NULL)
#define METHOD(n, i, f, r, h) ROW_(n, OPTION_METHOD, i, 0, 0, NULL, "", r, h, f)
