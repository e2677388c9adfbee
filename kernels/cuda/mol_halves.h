/* SPDX-License-Identifier: Apache-2.0 */
/* What the device keeps of Mixture-of-Logits items besides their f32 rows: half-precision copies, for filters. */
#ifndef KERNELS_CUDA_MOL_HALVES_H
#define KERNELS_CUDA_MOL_HALVES_H

#include <stddef.h>
#include <stdint.h>

/* Half-precision copies of MoL items, by slot; all pointers are of the device. */
struct mol_halves {
  const uint16_t *components; /* [capacity][stride of components]: P_x times d_P, row after row, then zeros */
  const uint16_t *gates;      /* [capacity][stride of gates]: gate m * P_q + n belongs to pair (n, m), item-major; then
                                 zeros */
  const uint16_t *averages;   /* [capacity][stride of averages]: d_P, then zeros */
  const float *residuals;     /* [capacity][MOL_RESIDUALS] */
};

/* Strides in numbers: whole groups of 8 (16 bytes); averages of 16. */
static inline size_t mol_halves_stride(size_t n, size_t group)
{
  return (n + group - 1) / group * group;
}

/* What rounding left, all rounded up: */
enum {
  MOL_RESIDUAL_COMPONENT, /* the largest |g_m - half(g_m)| over the item's components (Euclidean) */
  MOL_RESIDUAL_GATE,      /* |v - half(v)| (Euclidean); +inf where a gate is beyond half's range */
  MOL_RESIDUAL_AVERAGE,   /* |a - half(a)| */
  MOL_RESIDUAL_SPARE,
  MOL_RESIDUALS
};

#endif
