/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the half-precision copies of Mixture-of-Logits items (mol_halves.h) from their f32 rows. */
#ifndef KERNELS_CUDA_MOL_DERIVE_H
#define KERNELS_CUDA_MOL_DERIVE_H

#include "kernels/cuda/mol_halves.h"
#include "kernels/cuda/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/mol.h"

/* The arrays of struct mol_halves, writable. The padding after a slot's last number is not written and stays zero. */
struct mol_derive_arrays {
  uint16_t *components, *gates, *averages;
  float *residuals;
};

/* Derive the items of n slots, skipping absent ones. slots [n] on the device; rows in mol_score.h's layout.
 *
 * A norm is the square root of a sum of squares in f32. For the number of terms that an item can have, its relative
 * error is less than 2^-13, plus an absolute error of 2^-70 where squares underflow. It is rounded up by more than
 * that. A number beyond half's range gives infinite norms, and NaN gives NaN.
 *
 * Returns ERR_DEVICE on failure. */
err_t mol_derive(struct device_stream *stream, const struct mol_shape *shape, const struct device_rows *rows,
                 const uint32_t *slots, size_t n, const struct mol_derive_arrays *to);

#ifdef __cplusplus
}
#endif

#endif
