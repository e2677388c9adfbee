/* SPDX-License-Identifier: Apache-2.0 */
/* Macros that the SIMD code shares: how its functions are inlined and named. Private to the variant files. */
#ifndef KERNELS_X86_SIMD_MACROS_H
#define KERNELS_X86_SIMD_MACROS_H

#include "kernels/variants.h"

/* The name of a kernel with the instruction set as its suffix. */
#define SIMD_JOIN_(stem, suffix) stem##_##suffix
#define SIMD_JOIN(stem, suffix)  SIMD_JOIN_(stem, suffix)
#define VARIANT(stem)            SIMD_JOIN(stem, SIMD_SUFFIX)

/* A tile of registers. Its sizes are constants and its loops are unrolled (UNROLL): its arrays become registers. */
#define TILE static inline __attribute__((always_inline))
/* Never inlined. In a function of its own the compiler keeps the inner loop's pointers in registers. */
#define OWN static __attribute__((noinline))
/* Not used by every file that includes it. */
#define SHARED static __attribute__((unused))

#endif
