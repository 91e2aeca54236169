/* Makes a folder's options.def into the fields of its struct; undone by option_end.h. */
#define SWITCH(name, initial, results, help) int64_t name;
#define INTEGER(name, initial, least, most, unit, results, help) int64_t name;
#define NUMBER(name, initial, least, most, unit, results, help) double name;
#define NUMBER_OR(name, initial, word, least, most, unit, results, help) double name;
#define CHOICE(name, initial, choices, results, help) int64_t name;
#define TEXT(name, initial, unit, results, help) const char *name;
#define METHOD(name, initial, family, results, help) struct method name;
