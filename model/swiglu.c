#include "model/swiglu.h"

#include "model/base/vec.h"

void swiglu(int rows, int F, const real *gate_up, real *y, real *scratch)
{
	for (int r = 0; r < rows; r++, gate_up += 2 * F, y += F) {
		const real *gate = gate_up, *up = gate_up + F;
		vec_sigmoid(gate, scratch, F);
		for (int f = 0; f < F; f++)
			y[f] = gate[f] * scratch[f] * up[f];
	}
}

void swiglu_back(int rows, int F, const real *gate_up, const real *d_y, real *d_gate_up, real *scratch)
{
	for (int r = 0; r < rows; r++, gate_up += 2 * F, d_y += F, d_gate_up += 2 * F) {
		const real *gate = gate_up, *up = gate_up + F;
		vec_sigmoid(gate, scratch, F);
		for (int f = 0; f < F; f++) {
			real s = scratch[f];
			d_gate_up[f] = d_y[f] * up[f] * (s * ((real)1 + gate[f] * ((real)1 - s)));
			d_gate_up[F + f] = d_y[f] * gate[f] * s;
		}
	}
}
