/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision copies of Mixture-of-Logits items (mol_halves.h), made of their f32 rows. */
#ifndef KERNELS_CUDA_MOL_DERIVE_H
#define KERNELS_CUDA_MOL_DERIVE_H

#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/kernels.h"

/* The arrays of struct mol_halves, to be written; what lies behind the last number of each slot stays as it is: zeros.
 */
struct mol_derive_arrays {
  uint16_t *components, *gates, *averages;
  float *residuals;
};

/* Derive the items of n slots; absent ones are skipped. slots [n] of the device; rows as mol_score.h has them.
 *
 * A residual is the square root of a sum of squares in f32, which is off by less than 2^-13 of itself for as many
 * numbers as an item can have, and 2^-70 where squares underflow: it is made larger by more than that. A number beyond
 * half's range leaves an infinite residual, and NaN leaves NaN.
 *
 * Returns ERR_DEVICE. */
err_t mol_derive(struct device_stream *stream, const struct mol_shape *shape, const struct device_rows *rows,
                 const uint32_t *slots, size_t n, const struct mol_derive_arrays *to);

#ifdef __cplusplus
}
#endif

#endif
