/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that measure a device's arithmetic, for programs that compare it with what the proofs assume. */
#ifndef TESTS_GPU_PROBE_KERNELS_H
#define TESTS_GPU_PROBE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The fast functions of kernels/cuda/warp.cuh. */
enum probe_function { PROBE_EXP2, PROBE_TANH, PROBE_SQRT, PROBE_RECIPROCAL, PROBE_FUNCTIONS };

/* What a sweep found. A result is compared with that of double precision. Results that are subnormal or flushed to zero
 * may be off by 2^-126; results beyond f32 must be infinite, and those that are not numbers NaN. */
struct probe_found {
  uint64_t worst;   /* the largest relative error as an f32's bits, times 2^32, plus that input's bits */
  uint64_t n_wrong; /* results that are wrong in another way */
};

/* Evaluate a function at n inputs, whose bits are first + i * stride, modulo 2^32. *found is device memory, zero. */
err_code_t probe_sweep(struct device_stream *stream, enum probe_function function, uint32_t first, uint32_t stride,
                       uint64_t n, struct probe_found *found);

/* What computes a product: mma_f16(), mma_halves() or warpgroup_add(). */
enum probe_product { PROBE_WARPS, PROBE_HALVES, PROBE_WARPGROUPS };

/* Compute n products d = a b + c. All are device memory, at multiples of 16.
 *
 * a  [n][16][16] halves
 * b  [n][8][16] halves: each row is a column of B
 * c  [n][16][8], d likewise; for PROBE_HALVES c is rounded to halves
 */
err_code_t probe_mma(struct device_stream *stream, enum probe_product product, size_t n, const uint16_t *a,
                     const uint16_t *b, const float *c, float *d);

/* Has the device products of warpgroups? Elsewhere warpgroup_add() calls mma_f16(). */
bool probe_has_warpgroups(void);

#ifdef __cplusplus
}
#endif

#endif
