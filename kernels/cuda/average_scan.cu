/* SPDX-License-Identifier: Apache-2.0 */
/* The scan of averaged vectors (average_scan.h) on tensor cores.
 *
 * A warp multiplies 64 items by up to 32 queries at a time. Items are read straight from global memory, queries from
 * shared memory, where they are in half precision. A dot product may add its numbers in any order. So a lane takes four
 * adjacent numbers of every sixteen and reads 8 bytes at once.
 */
#include "kernels/cuda/average_scan.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  TILE = 64,
  TILE_ROWS = 16, /* items in one tensor-core operand */
  OPERANDS = TILE / TILE_ROWS,
  STEP = 16, /* numbers per tensor-core step */
  GROUP = 8, /* queries in one operand */
  GROUPS_MAX = 4,
  BLOCKS_RESIDENT = 2, /* per multiprocessor */
  SHARED_BYTES_MAX = 100 * 1024
};

#define ITEM_NORM_MAX  (1.0f + 0x1p-9f)
#define STEP_ERROR     (1.5f * 0x1p-21f) /* per product; 16 of them exceed MMA_ERROR */
#define ROUNDED_UP     (1.0f + 0x1p-12f)
#define UNDERFLOW_NORM 0x1p-60f

struct scan_range {
  size_t first, n_slots, stride, n_tiles; /* tile t starts at slot first + t * stride * TILE and ends below n_slots */
};

/* A query's error bound: an item's error is residual * norm + base. */
struct query_error {
  float norm, base, floor;
};

/* Shared memory holds the errors of GROUP * G queries, the warps' buffers, then the queries' numbers. The pitch avoids
 * bank conflicts between eight queries. */
struct shared_layout {
  size_t padded; /* numbers per item or query, with padding */
  size_t pitch;  /* numbers from one query to the next; 0: the queries do not fit and are read from global memory */
};

/* Load a query in half precision, where it fits, and compute its error. One warp. A query past the end is all zeros. */
static __device__ void load_query(const struct average_scan_input &in, const struct shared_layout &layout, size_t q,
                                  float floor, half_bits *numbers, struct query_error *error)
{
  float squares = 0.0f, lost = 0.0f;

  for (size_t k = warp_lane(); k < layout.padded; k += WARP_LANES) {
    float x = q < in.n_queries && k < in.dim ? in.queries[q * in.dim + k] : 0.0f;
    half_bits half = half_of(x);
    float rest = x - float_of(half);
    if (layout.pitch)
      numbers[k] = half;
    squares += x * x;
    lost += rest * rest;
  }
  float norm = fmaf(sqrtf(warp_sum(squares)), ROUNDED_UP, UNDERFLOW_NORM);
  float residual = fmaf(sqrtf(warp_sum(lost)), ROUNDED_UP, UNDERFLOW_NORM);
  float sums = (float)(layout.padded + 8) * STEP_ERROR * ITEM_NORM_MAX * (norm + residual);
  float of_subnormals = (float)(layout.padded / STEP) * MMA_LOST * (2.0f + norm + residual);
  if (warp_lane() == 0)
    *error = { norm, fmaf(ITEM_NORM_MAX, residual, sums + of_subnormals), floor };
}

/* Numbers k to k + 3 of query q. */
static __device__ __forceinline__ uint2 query_numbers(const struct average_scan_input &in,
                                                      const struct shared_layout &layout, const half_bits *numbers,
                                                      size_t first_query, unsigned q, size_t k)
{
  uint2 pairs = { 0, 0 };

  if (layout.pitch)
    return *reinterpret_cast<const uint2 *>(numbers + q * layout.pitch + k);
  if (first_query + q < in.n_queries) {
    const float *from = in.queries + (first_query + q) * in.dim;
    pairs.x = half_pair(k < in.dim ? from[k] : 0.0f, k + 1 < in.dim ? from[k + 1] : 0.0f);
    pairs.y = half_pair(k + 2 < in.dim ? from[k + 2] : 0.0f, k + 3 < in.dim ? from[k + 3] : 0.0f);
  }
  return pairs;
}

/* Fill products[i][j]: 16 items from item 16 i by 8 queries from query 8 j, in the tensor core's layout. */
template <int G>
static __device__ __forceinline__ void multiply_tile(const struct average_scan_input &in,
                                                     const struct shared_layout &layout, const half_bits *numbers,
                                                     size_t first_query, size_t first_slot,
                                                     float products[OPERANDS][G][4])
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;
  const uint16_t *rows = in.items.averages + (first_slot + g) * layout.padded + 4 * t;

#pragma unroll
  for (int i = 0; i < OPERANDS; i++) {
#pragma unroll
    for (int j = 0; j < G; j++)
      products[i][j][0] = products[i][j][1] = products[i][j][2] = products[i][j][3] = 0.0f;
  }
  for (size_t k = 0; k < layout.padded; k += STEP) {
    uint32_t a[OPERANDS][4];
#pragma unroll
    for (int i = 0; i < OPERANDS; i++) {
      uint2 upper = *reinterpret_cast<const uint2 *>(rows + (size_t)(i * TILE_ROWS) * layout.padded + k);
      uint2 lower = *reinterpret_cast<const uint2 *>(rows + (size_t)(i * TILE_ROWS + 8) * layout.padded + k);
      a[i][0] = upper.x;
      a[i][1] = lower.x;
      a[i][2] = upper.y;
      a[i][3] = lower.y;
    }
#pragma unroll
    for (int j = 0; j < G; j++) {
      uint2 pairs = query_numbers(in, layout, numbers, first_query, j * GROUP + g, k + 4 * t);
      uint32_t b[2] = { pairs.x, pairs.y };
#pragma unroll
      for (int i = 0; i < OPERANDS; i++)
        mma_f16(products[i][j], a[i], b, products[i][j]);
    }
  }
}

/* The residuals of a tile's items `lane` and `lane + 32`; -1 if the item is absent. */
static __device__ __forceinline__ float2 load_residuals(const struct average_scan_input &in, size_t first,
                                                        size_t n_slots)
{
  size_t slot = first + warp_lane();
  float2 r = { -1.0f, -1.0f };

  if (slot < n_slots && in.present[slot])
    r.x = in.items.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_AVERAGE];
  slot += WARP_LANES;
  if (slot < n_slots && in.present[slot])
    r.y = in.items.residuals[slot * MOL_RESIDUALS + MOL_RESIDUAL_AVERAGE];
  return r;
}

/* The residual of the lane's item in a row of eight. */
static __device__ __forceinline__ float residual_of(float2 residuals, int row)
{
  return __shfl_sync(WARP_ALL, row < OPERANDS ? residuals.x : residuals.y, row % OPERANDS * 8 + (int)warp_lane() / 4);
}

/* Write the largest lower bound of each query among the lane's eight items. */
template <int G>
static __device__ __forceinline__ void write_maxima(const struct average_scan_input &in,
                                                    const float (&products)[OPERANDS][G][4], float2 residuals,
                                                    const struct query_error *errors, size_t first_query,
                                                    size_t first_slot, size_t tile, size_t n_tiles, float *maxima)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;
  float best[G][2];

#pragma unroll
  for (int j = 0; j < G; j++)
    best[j][0] = best[j][1] = -INFINITY;
#pragma unroll
  for (int row = 0; row < 2 * OPERANDS; row++) { /* a lane has two rows of each operand */
    float residual = residual_of(residuals, row);
#pragma unroll
    for (int i = 0; i < 2 * G; i++) {
      const struct query_error &e = errors[i / 2 * GROUP + 2 * t + i % 2];
      float lower = products[row / 2][i / 2][row % 2 * 2 + i % 2] - fmaf(residual, e.norm, e.base);
      if (in.admitted.of) {
        size_t query = first_query + i / 2 * GROUP + 2 * t + i % 2, slot = first_slot + row * 8 + g;
        if (query < in.n_queries && !is_admitted(in.admitted, query, (uint32_t)slot))
          lower = -INFINITY;
      }
      if (!(residual < 0.0f))
        best[i / 2][i % 2] = fmaxf(best[i / 2][i % 2], lower);
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * G; i++) {
    size_t query = first_query + i / 2 * GROUP + 2 * t + i % 2;
    if (query < in.n_queries)
      maxima[(query * n_tiles + tile) * AVERAGE_SCAN_MAXIMA + g] = best[i / 2][i % 2];
  }
}

/* Append the items whose upper bound reaches the floor. */
template <int G>
static __device__ __forceinline__ void append_tile(const struct average_scan_input &in,
                                                   const float (&products)[OPERANDS][G][4], float2 residuals,
                                                   const struct query_error *errors, size_t first_query,
                                                   size_t first_slot, struct append_buffer &buffer,
                                                   const struct device_lists &lists)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;
  uint64_t passed = 0; /* a bit for each of the lane's bounds */

#pragma unroll
  for (int row = 0; row < 2 * OPERANDS; row++) {
    float residual = residual_of(residuals, row);
    uint32_t of_row = 0;
#pragma unroll
    for (int i = 0; i < 2 * G; i++) {
      const struct query_error &e = errors[i / 2 * GROUP + 2 * t + i % 2];
      float upper = products[row / 2][i / 2][row % 2 * 2 + i % 2] + fmaf(residual, e.norm, e.base);
      of_row |= !(upper < e.floor) ? 1u << i : 0;
    }
    passed |= (uint64_t)(residual < 0.0f ? 0 : of_row) << (row * 2 * G);
  }
  while (__any_sync(WARP_ALL, passed != 0)) {
    unsigned low = (unsigned)passed, bit = (unsigned)(low ? __ffs((int)low) : __ffs((int)(passed >> 32)) + 32) - 1;
    unsigned place = bit % (2 * G) / 2 * GROUP + 2 * t + bit % 2;
    uint32_t slot = (uint32_t)(first_slot + bit / (2 * G) * 8 + g);
    bool is_hit = passed != 0 && first_query + place < in.n_queries;
    if (in.admitted.of && is_hit)
      is_hit = is_admitted(in.admitted, first_query + place, slot);
    append_buffer_push(buffer, lists, first_query, is_hit, place, slot);
    passed &= passed - 1;
  }
}

/* Scan every tile of the range for 8 G queries. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int G, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, BLOCKS_RESIDENT)
    scan(struct average_scan_input in, struct shared_layout layout, struct scan_range range, const float *floors,
         float *maxima, struct device_lists lists)
{
  begin_kernel();
  struct query_error *errors = shared_memory<struct query_error>();
  uint32_t *buffers = reinterpret_cast<uint32_t *>(errors + GROUPS_MAX * GROUP);
  half_bits *numbers = reinterpret_cast<half_bits *>(buffers + WARPS * APPEND_BUFFER_BYTES / 4);
  size_t first_query = (size_t)blockIdx.y * G * GROUP, step = range.stride * TILE;
  size_t n_queries = in.n_queries - first_query < G * GROUP ? in.n_queries - first_query : (size_t)(G * GROUP);
  size_t warp = threadIdx.x / WARP_LANES, tile = (size_t)blockIdx.x * WARPS + warp;
  struct append_buffer buffer = append_buffer_open(buffers + warp * (APPEND_BUFFER_BYTES / 4));

  for (unsigned q = (unsigned)warp; q < G * GROUP; q += WARPS)
    load_query(in, layout, first_query + q, !IS_MAXIMA && first_query + q < in.n_queries ? floors[first_query + q] : 0,
               numbers + q * layout.pitch, &errors[q]);
  __syncthreads();
  float2 residuals = load_residuals(in, range.first + tile * step, range.n_slots);
  for (; tile < range.n_tiles; tile += (size_t)gridDim.x * WARPS) {
    size_t first = range.first + tile * step;
    float products[OPERANDS][G][4];
    float2 next = load_residuals(in, first + (size_t)gridDim.x * WARPS * step, range.n_slots);
    if (IS_MAXIMA || is_tile_admitted(in.admitted, first_query, n_queries, first)) {
      multiply_tile<G>(in, layout, numbers, first_query, first, products);
      if (IS_MAXIMA)
        write_maxima<G>(in, products, residuals, errors, first_query, first, tile, range.n_tiles, maxima);
      else
        append_tile<G>(in, products, residuals, errors, first_query, first, buffer, lists);
    }
    residuals = next;
  }
  if (!IS_MAXIMA)
    append_buffer_flush(buffer, lists, first_query);
}

static size_t block_bytes(const struct shared_layout *layout, size_t n_groups)
{
  return GROUPS_MAX * GROUP * sizeof(struct query_error) + WARPS * APPEND_BUFFER_BYTES +
         n_groups * GROUP * layout->pitch * sizeof(half_bits);
}

template <int G, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct average_scan_input *in,
                           struct shared_layout layout, struct scan_range range, const float *floors, float *maxima,
                           const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(range.n_tiles, WARPS), n_groups = blocks_for(in->n_queries, G * GROUP);
  unsigned most = in->n_blocks * BLOCKS_RESIDENT / n_groups ? in->n_blocks * BLOCKS_RESIDENT / n_groups : 1;

  if (block_bytes(&layout, G) > device_shared_bytes(SHARED_BYTES_MAX))
    layout.pitch = 0;
  return launch(stream, dim3(n_blocks < most ? n_blocks : most, n_groups), THREADS, block_bytes(&layout, G),
                scan<G, IS_MAXIMA>, *in, layout, range, floors, maxima, *lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct average_scan_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  size_t padded = mol_halves_stride(in->dim, STEP);
  struct shared_layout layout = { padded, (padded / STEP | 1) * STEP };

  if (range.n_tiles == 0 || in->n_queries == 0)
    return ERR_OK;
  if (in->n_queries > GROUP && block_bytes(&layout, GROUPS_MAX) <= device_shared_bytes(SHARED_BYTES_MAX))
    return run_with<GROUPS_MAX, IS_MAXIMA>(stream, in, layout, range, floors, maxima, lists);
  return run_with<1, IS_MAXIMA>(stream, in, layout, range, floors, maxima, lists);
}

err_code_t average_scan_maxima(struct device_stream *stream, const struct average_scan_input *input, size_t n_slots,
                               size_t stride, size_t n_tiles, float *maxima)
{
  struct scan_range range = { 0, n_slots, stride, n_tiles };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t average_scan_append(struct device_stream *stream, const struct average_scan_input *input, size_t first,
                               size_t n, const float *floors, const struct device_lists *lists)
{
  struct scan_range range = { first, first + n, 1, (n + TILE - 1) / TILE };

  return run<false>(stream, input, range, floors, NULL, lists);
}
