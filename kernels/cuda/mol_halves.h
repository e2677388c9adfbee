/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision copies of Mixture-of-Logits items. The device keeps them besides the f32 rows; scans compute bounds
 * from them. */
#ifndef KERNELS_CUDA_MOL_HALVES_H
#define KERNELS_CUDA_MOL_HALVES_H

#include <stddef.h>
#include <stdint.h>

/* The copies by slot; all pointers are device pointers. Each slot is padded with zeros to its stride. */
struct mol_halves {
  const uint16_t *components; /* [capacity][stride of components]: [P_x][d_P] */
  const uint16_t *gates;      /* [capacity][stride of gates]: the gate of pair (n, m) at m * P_q + n, item-major */
  const uint16_t *averages;   /* [capacity][stride of averages]: [d_P] */
  const float *residuals;     /* [capacity][MOL_RESIDUALS] */
};

/* A slot's stride in numbers: n rounded up to whole groups. Groups have 8 numbers (16 bytes), those of averages 16. */
static inline size_t mol_halves_stride(size_t n, size_t group)
{
  return (n + group - 1) / group * group;
}

/* An item's residuals, which are Euclidean norms of its rounding errors, and the norm of its gates; all rounded up. */
enum {
  MOL_RESIDUAL_COMPONENT, /* the largest |g_m - half(g_m)| over the item's components */
  MOL_RESIDUAL_GATE,      /* |v - half(v)|; +inf if a gate is beyond half's range */
  MOL_GATE_NORM,          /* |half(v)| */
  MOL_RESIDUALS = 4       /* 16 bytes, which kernels copy at a time; the last number is not used */
};

#endif
