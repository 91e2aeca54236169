#ifndef ROPEWALK_LOADING_H
#define ROPEWALK_LOADING_H

#include "model/base/err.h"

/* What the libraries are told before they are loaded. They read the environment then, and BLAS starts threads of its own
 * and maps memory for each, so the program starts once more with what they should find there; where it cannot, or where
 * a loader or an emulator carries it, which would not start once more with it, all stays as it was. To be called before
 * they are initialised, where that is possible, and from main, when it is known whether BLAS knows this processor:
 * `argv` and `envp` are main's. An error if BLAS would find less memory than it takes while it loads, for it would ask
 * for ever. */
struct err loading_prepare(char **argv, char **envp);

#endif
