#ifndef ROPEWALK_SWIGLU_H
#define ROPEWALK_SWIGLU_H

#include "model/base/real.h"

/* SwiGLU (Shazeer 2020, 2002.05202, equation 6, without biases): y = silu(gate) up, silu(g) = g sigmoid(g).
 * gate_up [rows][2F]: gate, then up. y [rows][F]. scratch [F]. */
void swiglu(int rows, int F, const real *gate_up, real *y, real *scratch);

/* d_gate_up [rows][2F] is overwritten, and may be gate_up. */
void swiglu_back(int rows, int F, const real *gate_up, const real *d_y, real *d_gate_up, real *scratch);

#endif
