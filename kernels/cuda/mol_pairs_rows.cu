/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds query rows to half precision and computes the margins of mol_pairs.h's proof. */
#include "kernels/cuda/mol_pairs_tile.cuh"

enum { THREADS = 128 };

static __device__ float round_up(double x)
{
  return (float)(x * (1 + 0x1p-22));
}

/* One thread per row. */
static __global__ void prepare(struct mol_pairs_rows rows, size_t dim, size_t half_dim)
{
  begin_kernel();
  size_t row = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (row >= rows.n)
    return;
  const float *f = rows.vectors + row * dim;
  half_bits *half = rows.halves + row * half_dim;
  double square = 0, rounded_square = 0, residual_square = 0;
  for (size_t k = 0; k < dim; k++) {
    double x = (double)f[k], rounded;
    half[k] = half_of(f[k]);
    rounded = (double)float_of(half[k]);
    square += x * x;
    rounded_square += rounded * rounded;
    residual_square += (x - rounded) * (x - rounded);
  }
  bool is_finite = rounded_square < INFINITY && residual_square < INFINITY; /* false for NaN */
  for (size_t k = 0; k < half_dim; k++)
    half[k] = k < dim && is_finite ? half[k] : (half_bits)0;
  double largest = 1 + (double)(dim + 8) * 0x1p-23, slack = (double)slack_of(half_dim / GROUP);
  double lost = (double)(half_dim / STEP_NUMBERS) * (double)MMA_LOST * (2 + sqrt(rounded_square));
  double base = sqrt(residual_square) + 2 * (double)dim * 0x1p-24 * sqrt(square) + slack * sqrt(rounded_square);
  struct mol_pairs_margin margin = { 0.0f, INFINITY };
  if (is_finite) {
    margin.norm = round_up(sqrt(rounded_square) * (1 + slack) * (1 + 2 * slack));
    margin.base = round_up((base * largest + lost) * (1 + 2 * slack));
  }
  rows.margins[row] = margin;
}

size_t mol_pairs_half_dim(size_t dim)
{
  return dim <= 2 * GROUP ? (dim + GROUP - 1) / GROUP * GROUP : (size_t)MOL_PAIRS_DIM_MAX;
}

err_code_t mol_pairs_prepare(struct device_stream *stream, const struct mol_pairs_rows *rows, size_t dim)
{
  if (rows->n == 0 || dim > MOL_PAIRS_DIM_MAX)
    return ERR_OK;
  return launch(stream, blocks_for(rows->n, THREADS), THREADS, 0, prepare, *rows, dim, mol_pairs_half_dim(dim));
}
