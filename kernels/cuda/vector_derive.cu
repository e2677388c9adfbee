/* SPDX-License-Identifier: Apache-2.0 */
/* Half-precision copies of vectors (vector_derive.h). A warp reads its vector twice: to find the largest number, and to
 * round. */
#include "kernels/cuda/vector_derive.h"

#include "kernels/cuda/warp.cuh"

enum { THREADS = 128, WARPS = THREADS / WARP_LANES, TOGETHER = 8 };

/* Limits of the scales' exponents. An item's scale, a query's and their product must fit f32: 2^42 * 2^84 < 2^127.
 * Items are below 2^42. */
enum { SCALE_MIN = -126, ITEM_SCALE_MAX = 42, QUERY_SCALE_MAX = 84 };

static __device__ __forceinline__ double warp_sum_f64(double x)
{
  for (int step = 16; step > 0; step /= 2)
    x += __shfl_xor_sync(WARP_ALL, x, step);
  return x;
}

/* Return the exponent of a vector's scale. One warp. */
template <class T> static __device__ int exponent_of(const T *x, size_t n, int most)
{
  int exponent = SCALE_MIN;

  for (size_t k = warp_lane(); k < n; k += WARP_LANES)
    exponent = x[k] == 0 ? exponent : max(exponent, ilogb((double)x[k]));
  for (int step = 16; step > 0; step /= 2)
    exponent = max(exponent, __shfl_xor_sync(WARP_ALL, exponent, step));
  return min(exponent, most);
}

/* Return (1 + 2^-20) x, rounded up to f32. This exceeds what a sum of 2^16 squares in double may lose. */
static __device__ __forceinline__ float inflate(double x)
{
  return nextafterf((float)(x * (1 + 0x1p-20)), INFINITY);
}

struct rounded {
  double scale, norm, norm16, error; /* all but scale in units of scale */
};

template <class T>
static __device__ struct rounded round_vector(const T *x, size_t n, int exponent, uint16_t *numbers, size_t stride)
{
  double inverse = ldexp(1.0, -exponent), norm2 = 0, norm16 = 0, error2 = 0;

  for (size_t k = warp_lane(); k < stride; k += WARP_LANES) {
    double value = k < n ? (double)x[k] * inverse : 0.0;
    half_bits half = half_of((float)value); /* the error below is that of the stored number, however it is rounded */
    double stored = (double)float_of(half), error = value - stored;
    numbers[k] = half;
    norm2 += value * value;
    norm16 += stored * stored;
    error2 += error * error;
  }
  return { ldexp(1.0, exponent), sqrt(warp_sum_f64(norm2)), sqrt(warp_sum_f64(norm16)), sqrt(warp_sum_f64(error2)) };
}

/* A norm in units of the scale, as the proof in vector_scan.h needs it: at least 1, which it is unless the scale's
 * exponent was clamped; 0 for a vector of zeros. */
static __device__ __forceinline__ double size_of(double norm)
{
  return norm > 0 && norm < 1 ? 1 : norm; /* keeps NaN */
}

/* The most that a scan's sums may lose, as a fraction of |x| + |error|: see the proof in vector_scan.h. */
static __device__ __forceinline__ double loss_of(size_t stride)
{
  return 0x1p-20 + 1.0625 * (double)MMA_ERROR * (double)(stride / 16);
}

static __global__ void __launch_bounds__(THREADS)
    derive_items(struct device_rows rows, size_t n, size_t tail_at, const uint32_t *slots, size_t n_slots,
                 struct vector_halves items)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i >= n_slots || !rows.present[slots[i]]) /* the same for all lanes */
    return;
  size_t slot = slots[i];
  const float *x = reinterpret_cast<const float *>(rows.bytes + slot * rows.row_bytes);
  int exponent = exponent_of(x, n, ITEM_SCALE_MAX);
  struct rounded r = round_vector(x, n, exponent, items.numbers + slot * items.stride, items.stride);
  double error = r.error + loss_of(items.stride) * (size_of(r.norm) + r.error);

  if (warp_lane() == 0)
    items.sizes[slot] = { (float)r.scale, inflate(r.norm * r.scale), inflate(error * r.scale),
                          inflate((double)x[tail_at]) };
}

/* Return the tail of a query: |diag(sigma)^(1/2) a| over n <= k < n_all, where q = diag(sigma) a. One warp. The factor
 * exceeds what the sum may lose. */
static __device__ double tail_of(const double *q, const double *sigma, size_t n, size_t n_all)
{
  double sum = 0;

  for (size_t first = n; first < n_all; first += TOGETHER * WARP_LANES) {
    double mine[TOGETHER], of[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) { /* all reads are under way at the same time */
      size_t k = first + i * WARP_LANES + warp_lane();
      mine[i] = k < n_all ? q[k] : 0.0;
      of[i] = k < n_all ? sigma[k] : 0.0;
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; i++)
      sum += of[i] > 0 ? mine[i] * (mine[i] / of[i]) : 0.0;
  }
  return sqrt(warp_sum_f64(sum)) * (1 + 0x1p-40);
}

static __global__ void __launch_bounds__(THREADS) derive_queries(const double *q, const double *sigma, size_t n_queries,
                                                                 size_t n_all, size_t n, struct vector_halves queries)
{
  begin_kernel();
  size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES;

  if (i >= n_queries)
    return;
  int exponent = exponent_of(q + i * n_all, n, QUERY_SCALE_MAX);
  struct rounded r = round_vector(q + i * n_all, n, exponent, queries.numbers + i * queries.stride, queries.stride);
  double tail = sigma ? tail_of(q + i * n_all, sigma, n, n_all) : 0;

  if (warp_lane() == 0)
    queries.sizes[i] = { (float)r.scale, inflate(size_of(r.norm16) * r.scale), inflate(r.error * r.scale),
                         inflate(tail) };
}

err_code_t vector_derive_items(struct device_stream *stream, const struct device_rows *rows, size_t n, size_t tail_at,
                               const uint32_t *slots, size_t n_slots, const struct vector_halves *items)
{
  return n_slots == 0 ? ERR_OK
                      : launch(stream, blocks_for(n_slots, WARPS), THREADS, 0, derive_items, *rows, n, tail_at, slots,
                               n_slots, *items);
}

err_code_t vector_derive_queries(struct device_stream *stream, const double *q, const double *sigma, size_t n_queries,
                                 size_t n_all, size_t n, const struct vector_halves *queries)
{
  return n_queries == 0 ? ERR_OK
                        : launch(stream, blocks_for(n_queries, WARPS), THREADS, 0, derive_queries, q, sigma, n_queries,
                                 n_all, n, *queries);
}
