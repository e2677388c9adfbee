/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision copies of MoL items (mol_derive.h). A warp derives one item. */
#include "kernels/cuda/mol_derive.h"

#include "kernels/cuda/warp.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP_LANES };

/* The sizes of an item's arrays, in numbers. */
struct item_sizes {
  size_t n_query, n_item, dim;
  size_t components_stride, gates_stride, averages_stride;
};

/* Return a norm, rounded up, from each lane's share of its square. */
static __device__ __forceinline__ float norm_of(float squares)
{
  return fmaf(sqrtf(warp_sum(squares)), 1.0f + 0x1p-12f, 0x1p-60f);
}

static __device__ __forceinline__ float square_lost(float x, half_bits half)
{
  float lost = x - float_of(half);

  return lost * lost;
}

/* Round n numbers to half precision. Returns the residual in every lane. */
static __device__ float round_numbers(const float *from, size_t n, uint16_t *to)
{
  float squares = 0.0f;

  for (size_t k = warp_lane(); k < n; k += WARP_LANES) {
    half_bits half = half_of(from[k]);
    to[k] = half;
    squares += square_lost(from[k], half);
  }
  return norm_of(squares);
}

/* Round the gates. Gate (n, m) is at n * n_item + m in the row and at m * n_query + n in the copy. Returns the residual
 * and sets *norm to the copy's norm. */
static __device__ float round_gates(const float *from, const struct item_sizes &sizes, uint16_t *to, float *norm)
{
  float squares = 0.0f, of_copy = 0.0f;

  for (size_t p = warp_lane(); p < sizes.n_query * sizes.n_item; p += WARP_LANES) {
    float x = from[p % sizes.n_query * sizes.n_item + p / sizes.n_query];
    half_bits half = half_of(x);
    to[p] = half;
    squares += square_lost(x, half);
    of_copy = fmaf(float_of(half), float_of(half), of_copy);
  }
  *norm = norm_of(of_copy);
  return norm_of(squares);
}

/* The larger of two numbers, or NaN if either is NaN. */
static __device__ __forceinline__ float larger(float a, float b)
{
  return a >= b || a != a ? a : b;
}

static __device__ void derive_item(const float *row, const struct item_sizes &sizes, size_t slot,
                                   const struct mol_derive_arrays &to)
{
  size_t n_components = sizes.n_item * sizes.dim, n_gates = sizes.n_query * sizes.n_item;
  uint16_t *components = to.components + slot * sizes.components_stride;
  float *residuals = to.residuals + slot * MOL_RESIDUALS;
  float of_component = 0.0f, gate_norm;

  for (size_t m = 0; m < sizes.n_item; m++)
    of_component = larger(of_component, round_numbers(row + m * sizes.dim, sizes.dim, components + m * sizes.dim));
  float of_gate = round_gates(row + n_components, sizes, to.gates + slot * sizes.gates_stride, &gate_norm);
  round_numbers(row + n_components + n_gates, sizes.dim, to.averages + slot * sizes.averages_stride);
  if (warp_lane() == 0) {
    residuals[MOL_RESIDUAL_COMPONENT] = of_component;
    residuals[MOL_RESIDUAL_GATE] = of_gate;
    residuals[MOL_GATE_NORM] = gate_norm;
  }
}

static __global__ void __launch_bounds__(THREADS) derive(struct device_rows rows, struct item_sizes sizes,
                                                         const uint32_t *slots, size_t n, struct mol_derive_arrays to)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i < n && rows.present[slots[i]]) /* the same for all lanes */
    derive_item(reinterpret_cast<const float *>(rows.bytes + slots[i] * rows.row_bytes), sizes, slots[i], to);
}

err_code_t mol_derive(struct device_stream *stream, const struct mol_shape *shape, const struct device_rows *rows,
                      const uint32_t *slots, size_t n, const struct mol_derive_arrays *to)
{
  size_t n_query = shape->n_query_components, n_item = shape->n_item_components, dim = shape->component_dim;
  struct item_sizes sizes = { n_query,
                              n_item,
                              dim,
                              mol_halves_stride(n_item * dim, 8),
                              mol_halves_stride(n_query * n_item, 8),
                              mol_halves_stride(dim, 16) };

  if (n == 0)
    return ERR_OK;
  return launch(stream, blocks_for(n, WARPS), THREADS, 0, derive, *rows, sizes, slots, n, *to);
}
