/* Includes the file LOOP twice: `real` is float in loops whose NAME ends in _float32, double in those of _float64. */
#define real float
#define NAME(loop) loop##_float32
#include LOOP
#undef real
#undef NAME
#define real double
#define NAME(loop) loop##_float64
#include LOOP
#undef real
#undef NAME
#undef LOOP
