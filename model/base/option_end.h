#undef SWITCH
#undef INTEGER
#undef NUMBER
#undef NUMBER_OR
#undef CHOICE
#undef TEXT
#undef METHOD
#undef ROW_
