#include "model/swiglu.h"

#include "model/base/vec.h"

#include <string.h>

void swiglu(int rows, int F, const real *gate_up, real *y, real *scratch)
{
	for (int r = 0; r < rows; r++, gate_up += 2 * F, y += F) {
		const real *gate = gate_up, *up = gate_up + F;
		vec_sigmoid(gate, scratch, F);
		for (int f = 0; f < F; f++)
			y[f] = gate[f] * scratch[f] * up[f];
	}
}

/* F elements of a row, at most VEC_LANES, by way of copies, as what is written may be what is read. */
static inline void row_back(int F, const real *gate, const real *up, const real *sigmoid, const real *d_y, real *d_gate,
			    real *d_up)
{
	real to_gate[VEC_LANES], to_up[VEC_LANES];
	for (int f = 0; f < F; f++) {
		real s = sigmoid[f];
		to_gate[f] = d_y[f] * up[f] * (s * ((real)1 + gate[f] * ((real)1 - s)));
		to_up[f] = d_y[f] * gate[f] * s;
	}
	memcpy(d_gate, to_gate, (size_t)F * sizeof *d_gate);
	memcpy(d_up, to_up, (size_t)F * sizeof *d_up);
}

void swiglu_back(int rows, int F, const real *gate_up, const real *d_y, real *d_gate_up, real *scratch)
{
	int whole = F / VEC_LANES * VEC_LANES;
	for (int r = 0; r < rows; r++, gate_up += 2 * F, d_y += F, d_gate_up += 2 * F) {
		vec_sigmoid(gate_up, scratch, F);
		for (int f = 0; f < whole; f += VEC_LANES)
			row_back(VEC_LANES, gate_up + f, gate_up + F + f, scratch + f, d_y + f, d_gate_up + f,
				 d_gate_up + F + f);
		row_back(F - whole, gate_up + whole, gate_up + F + whole, scratch + whole, d_y + whole,
			 d_gate_up + whole, d_gate_up + F + whole);
	}
}
