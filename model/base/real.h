#ifndef ROPEWALK_REAL_H
#define ROPEWALK_REAL_H

/* The number every tensor is made of: float in the product, double in the checking build (-DROPEWALK_DOUBLE).
 * The same sources compile both ways, so constants are written (real)0.5. */
#ifdef ROPEWALK_DOUBLE
typedef double real;
#define REAL_NAME "double"
#define REAL_DTYPE DTYPE_F64
#else
typedef float real;
#define REAL_NAME "float"
#define REAL_DTYPE DTYPE_F32
#endif

#endif
