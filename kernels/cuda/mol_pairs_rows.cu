/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds query rows to half precision and computes the margins of mol_pairs.h's proof. */
#include "kernels/cuda/mol_pairs_tile.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP_LANES, EACH = MOL_PAIRS_DIM_MAX / WARP_LANES };

static const double NORM_MAX = 1024; /* sums of larger rows might not fit in halves */

static __device__ float round_up(double x)
{
  return (float)(x * (1 + 0x1p-22));
}

static __device__ double warp_sum(double x)
{
  for (int step = WARP_LANES / 2; step > 0; step /= 2)
    x += __shfl_xor_sync(WARP_ALL, x, step);
  return x;
}

/* square: |f|^2, rounded_square: |f'|^2, residual_square: |f - f'|^2 of the proof */
static __device__ float margin_of(double square, double rounded_square, double residual_square, size_t dim,
                                  size_t half_dim)
{
  double largest = 1 + (double)(dim + 8) * 0x1p-23, slack = (double)slack_of(half_dim / GROUP);
  double lost = (double)MMA_LOST * (2 + sqrt(rounded_square)) + (double)MMA_HALF_LOST;
  double norm = sqrt(rounded_square) * (1 + slack), n_steps = (double)(half_dim / STEP_NUMBERS + 1);
  double base = sqrt(residual_square) + 2 * (double)dim * 0x1p-24 * sqrt(square) + slack * sqrt(rounded_square);

  return round_up((norm * (double)largest_residual(dim) + base * largest + n_steps * lost) * (1 + 2 * slack));
}

/* One warp per row. */
static __global__ void __launch_bounds__(THREADS) prepare(struct mol_pairs_rows rows, size_t dim, size_t half_dim)
{
  begin_kernel();
  size_t row = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;
  double square = 0, rounded_square = 0, residual_square = 0;
  half_bits halves[EACH];

  if (row >= rows.n)
    return;
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    size_t k = i * WARP_LANES + warp_lane();
    float f = k < dim ? rows.vectors[row * dim + k] : 0.0f;
    halves[i] = half_of(f);
    double rounded = (double)float_of(halves[i]), residual = (double)f - rounded;
    square += (double)f * (double)f;
    rounded_square += rounded * rounded;
    residual_square += residual * residual;
  }
  square = warp_sum(square);
  rounded_square = warp_sum(rounded_square);
  residual_square = warp_sum(residual_square);
  bool is_bounded = rounded_square < NORM_MAX * NORM_MAX && residual_square < INFINITY; /* false for NaN */
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    size_t k = i * WARP_LANES + warp_lane();
    if (k < half_dim)
      rows.halves[row * half_dim + k] = is_bounded ? halves[i] : (half_bits)0;
  }
  if (warp_lane() == 0)
    rows.margins[row] = is_bounded ? margin_of(square, rounded_square, residual_square, dim, half_dim) : INFINITY;
}

size_t mol_pairs_half_dim(size_t dim)
{
  return groups_of(dim) * GROUP;
}

err_code_t mol_pairs_prepare(struct device_stream *stream, const struct mol_pairs_rows *rows, size_t dim)
{
  if (rows->n == 0 || dim > MOL_PAIRS_DIM_MAX)
    return ERR_OK;
  return launch(stream, blocks_for(rows->n, WARPS), THREADS, 0, prepare, *rows, dim, mol_pairs_half_dim(dim));
}
