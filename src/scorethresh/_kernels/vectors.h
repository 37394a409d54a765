/* Short vectors, as wide as the registers of the processor that is compiled for: arithmetic on them needs no loop. */
#ifndef SCORETHRESH_VECTORS_H
#define SCORETHRESH_VECTORS_H

/* Bytes of a vector, and its entries of both precisions. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define FLOAT_LANES 16
#define DOUBLE_LANES 8
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#define FLOAT_LANES 8
#define DOUBLE_LANES 4
#else
#define VECTOR_BYTES 16
#define FLOAT_LANES 4
#define DOUBLE_LANES 2
#endif

/* An aligned vector of entries of a type. It may stand for those entries of an array. */
#define VECTOR(type, bytes) type __attribute__((vector_size(bytes), may_alias))
#define ALIGNED __attribute__((aligned(64)))

/* The entries of two vectors in turn: INTERLEAVE(LOW, 4, ...) of 0123 and abcd is 0a1b, INTERLEAVE(HIGH, 4, ...) 2c3d.
   `indices` is a vector of integers as wide as the entries. */
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define INTERLEAVE(half, lanes, indices, a, b) SHUFFLE_(half, lanes, indices, a, b)
#if defined(__clang__)
#define SHUFFLE_(half, lanes, indices, a, b) __builtin_shufflevector(a, b, half##_##lanes)
#else
#define SHUFFLE_(half, lanes, indices, a, b) __builtin_shuffle(a, b, (indices){half##_##lanes})
#endif

#endif
