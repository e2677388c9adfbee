/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of vector_scan.h on tensor cores.
 *
 * A block keeps the numbers of Q queries in shared memory, or reads them from global memory if they do not fit. A warp
 * takes a tile of 64 items at a time. A product may add its numbers in any order. So a lane takes 8 adjacent numbers,
 * 16 bytes, of items and queries alike: its share of both operands of two steps. The scan is limited by the memory
 * bandwidth of the items, which are read once for Q queries.
 */
#include "kernels/cuda/vector_scan.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  BLOCKS_EACH = 2, /* per multiprocessor */
  TILE = 64,
  ROWS = 16,   /* items per step */
  COLUMNS = 8, /* queries per step */
  M = TILE / ROWS,
  LANE_NUMBERS = 8,
  SHARED_BYTES_MAX = 200 * 1024
};

struct scan_range {
  size_t first, n_slots, stride, n_tiles; /* tile t starts at slot first + t * stride * TILE and ends below n_slots */
};

/* The queries of a block. */
struct block_queries {
  const uint4 *numbers; /* [Q][pitch] */
  const float4 *sizes;  /* [Q]: struct vector_sizes */
  const float *floors;  /* [Q] */
  size_t pitch;         /* in units of 16 bytes */
};

/* A row's pitch is never a multiple of 128 bytes. Then 8 lanes, 4 on each of two rows, have no bank conflict. */
static __host__ __device__ __forceinline__ size_t pitch_of(size_t stride)
{
  size_t pitch = stride / LANE_NUMBERS;

  return pitch % 8 == 0 ? pitch + 4 : pitch;
}

static __device__ __forceinline__ size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

/* Load a block's queries. Columns past the last query repeat it; their results are dropped. */
template <int Q, bool IS_SHARED>
static __device__ struct block_queries load_queries(const struct vector_scan_input &in, size_t first,
                                                    const float *floors)
{
  const uint4 *from = reinterpret_cast<const uint4 *>(in.queries.numbers);
  size_t n = in.queries.stride / LANE_NUMBERS, pitch = IS_SHARED ? pitch_of(in.queries.stride) : n;
  float4 *sizes = shared_memory<float4>();
  float *block_floors = reinterpret_cast<float *>(sizes + Q);
  uint4 *numbers = reinterpret_cast<uint4 *>(block_floors + Q);

  for (size_t q = threadIdx.x; q < Q; q += THREADS) {
    size_t query = least(first + q, in.n_queries - 1);
    sizes[q] = reinterpret_cast<const float4 *>(in.queries.sizes)[query];
    block_floors[q] = floors ? floors[query] : 0.0f;
  }
  for (size_t i = threadIdx.x; IS_SHARED && i < Q * n; i += THREADS)
    numbers[i / n * pitch + i % n] = from[least(first + i / n, in.n_queries - 1) * n + i % n];
  __syncthreads();
  return { IS_SHARED ? numbers : from, sizes, block_floors, pitch };
}

/* Compute the products of the tile's items and the queries. */
template <int Q, bool IS_SHARED>
static __device__ __forceinline__ void multiply(const struct vector_scan_input &in, const struct block_queries &queries,
                                                size_t first_query, uint32_t first_slot, float sums[M][Q / COLUMNS][4])
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;
  uint32_t n = (uint32_t)in.queries.stride / LANE_NUMBERS, pitch = (uint32_t)in.items.stride / LANE_NUMBERS;
  const uint4 *items = reinterpret_cast<const uint4 *>(in.items.numbers) + (first_slot + g) * (size_t)pitch + t;

#pragma unroll
  for (int i = 0; i < M * (Q / COLUMNS) * 4; i++)
    (&sums[0][0][0])[i] = 0.0f;
#pragma unroll 1
  for (uint32_t k = 0; k < n; k += VECTOR_SLICE / LANE_NUMBERS) {
    uint4 columns[Q / COLUMNS];
#pragma unroll
    for (int c = 0; c < Q / COLUMNS; c++) {
      uint32_t q = c * COLUMNS + g;
      columns[c] = IS_SHARED ? queries.numbers[q * (uint32_t)queries.pitch + k + t]
                             : queries.numbers[least(first_query + q, in.n_queries - 1) * queries.pitch + k + t];
    }
#pragma unroll
    for (int m = 0; m < M; m++) {
      uint4 above = __ldg(items + m * ROWS * pitch + k), below = __ldg(items + (m * ROWS + ROWS / 2) * pitch + k);
      const uint32_t a_low[4] = { above.x, below.x, above.y, below.y };
      const uint32_t a_high[4] = { above.z, below.z, above.w, below.w };
#pragma unroll
      for (int c = 0; c < Q / COLUMNS; c++) {
        const uint32_t low[2] = { columns[c].x, columns[c].y }, high[2] = { columns[c].z, columns[c].w };
        mma_f16(sums[m][c], a_low, low, sums[m][c]);
        mma_f16(sums[m][c], a_high, high, sums[m][c]);
      }
    }
  }
}

static __device__ __forceinline__ uint32_t slot_of(uint32_t first, int row)
{
  return first + (uint32_t)row * (ROWS / 2) + warp_lane() / 4;
}

/* Load the sizes of the item in `slot`. Returns false if the item is absent or past the end. */
static __device__ __forceinline__ bool load_item(const struct vector_scan_input &in, uint32_t slot, uint32_t n_slots,
                                                 float4 &sizes)
{
  if (slot >= n_slots || !in.present[slot])
    return false;
  sizes = reinterpret_cast<const float4 *>(in.items.sizes)[slot];
  return true;
}

static __device__ __forceinline__ int column_of(int i)
{
  return i / 2 * COLUMNS + 2 * (int)(warp_lane() % 4) + i % 2;
}

/* The slack of vector_scan.h's proof. x, y, z, w are scale, norm, error and tail. */
static __device__ __forceinline__ float slack_of(const float4 &item, const float4 &query)
{
  return fmaf(query.z, item.y, fmaf(query.y, item.z, fmaf(query.w, item.w, 0x1p-100f)));
}

static __device__ __forceinline__ float upper_of(float sum, const float4 &item, const float4 &query)
{
  return fmaf(sum, item.x * query.x, slack_of(item, query));
}

static __device__ __forceinline__ float lower_of(float sum, const float4 &item, const float4 &query)
{
  float lower = fmaf(sum, item.x * query.x, -slack_of(item, query));

  return lower < INFINITY ? lower : -INFINITY;
}

template <int Q>
static __device__ __forceinline__ void append_tile(const struct vector_scan_input &in,
                                                   const struct block_queries &queries, size_t first_query,
                                                   uint32_t first_slot, uint32_t n_slots,
                                                   const float sums[M][Q / COLUMNS][4],
                                                   const struct device_lists &lists)
{
#pragma unroll
  for (int row = 0; row < 2 * M; row++) {
    uint32_t slot = slot_of(first_slot, row);
    uint32_t hits = 0;
    float4 item;
    if (!load_item(in, slot, n_slots, item))
      continue;
#pragma unroll
    for (int i = 0; i < Q / COLUMNS * 2; i++) {
      float upper = upper_of(sums[row / 2][i / 2][row % 2 * 2 + i % 2], item, queries.sizes[column_of(i)]);
      hits |= (uint32_t) !(upper < queries.floors[column_of(i)]) << i;
    }
    for (; hits; hits &= hits - 1) {
      int hit = __ffs((int)hits) - 1;
      size_t query = first_query + column_of(hit);
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < Q / COLUMNS * 2; i++) /* registers have no index */
        sum = i == hit ? sums[row / 2][i / 2][row % 2 * 2 + i % 2] : sum;
      float upper = upper_of(sum, item, queries.sizes[column_of(hit)]);
      if (query < in.n_queries && is_admitted(in.admitted, query, slot))
        append(lists, query, slot, upper == upper ? upper : INFINITY);
    }
  }
}

/* A bit for each of the lane's queries that does not admit the slot. */
template <int Q>
static __device__ uint32_t find_others(const struct vector_scan_input &in, size_t first_query, uint32_t slot)
{
  uint32_t others = 0;

#pragma unroll 1
  for (int i = 0; i < Q / COLUMNS * 2; i++) {
    size_t query = least(first_query + column_of(i), in.n_queries - 1);
    others |= is_admitted(in.admitted, query, slot) ? 0 : 1u << i;
  }
  return others;
}

template <int Q>
static __device__ __forceinline__ void write_maxima(const struct vector_scan_input &in,
                                                    const struct block_queries &queries, size_t first_query,
                                                    uint32_t first_slot, uint32_t n_slots,
                                                    const float sums[M][Q / COLUMNS][4], size_t n_tiles, float *maxima)
{
  float best[Q / COLUMNS * 2];

#pragma unroll
  for (int i = 0; i < Q / COLUMNS * 2; i++)
    best[i] = -INFINITY;
#pragma unroll
  for (int row = 0; row < 2 * M; row++) {
    uint32_t slot = slot_of(first_slot, row);
    float4 item;
    if (!load_item(in, slot, n_slots, item))
      continue;
    uint32_t others = in.admitted.of ? find_others<Q>(in, first_query, slot) : 0;
#pragma unroll
    for (int i = 0; i < Q / COLUMNS * 2; i++) {
      float lower = lower_of(sums[row / 2][i / 2][row % 2 * 2 + i % 2], item, queries.sizes[column_of(i)]);
      best[i] = fmaxf(best[i], others >> i & 1 ? -INFINITY : lower);
    }
  }
#pragma unroll
  for (int i = 0; i < Q / COLUMNS * 2; i++) {
    for (int step = 4; step < WARP_LANES; step *= 2)
      best[i] = fmaxf(best[i], __shfl_xor_sync(WARP_ALL, best[i], step));
    if (warp_lane() < 4 && first_query + column_of(i) < in.n_queries)
      maxima[(first_query + column_of(i)) * n_tiles] = best[i];
  }
}

/* Scan every tile of the range for Q queries. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int Q, bool IS_SHARED, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    scan(struct vector_scan_input in, struct scan_range range, const float *floors, float *maxima,
         struct device_lists lists)
{
  begin_kernel();
  size_t first_query = (size_t)blockIdx.y * Q;
  struct block_queries queries = load_queries<Q, IS_SHARED>(in, first_query, floors);

  for (uint32_t tile = blockIdx.x * WARPS + threadIdx.x / WARP_LANES; tile < range.n_tiles; tile += gridDim.x * WARPS) {
    uint32_t first = (uint32_t)(range.first + tile * range.stride * TILE);
    float sums[M][Q / COLUMNS][4];
    if (!IS_MAXIMA && !is_tile_admitted(in.admitted, first_query, least(Q, in.n_queries - first_query), first))
      continue;
    __syncwarp();
    multiply<Q, IS_SHARED>(in, queries, first_query, first, sums);
    if (IS_MAXIMA)
      write_maxima<Q>(in, queries, first_query, first, (uint32_t)range.n_slots, sums, range.n_tiles, maxima + tile);
    else
      append_tile<Q>(in, queries, first_query, first, (uint32_t)range.n_slots, sums, lists);
  }
}

static size_t sizes_bytes(size_t n_queries)
{
  return n_queries * (sizeof(float4) + sizeof(float));
}

static size_t block_bytes(const struct vector_scan_input *in, size_t n_queries)
{
  return sizes_bytes(n_queries) + n_queries * pitch_of(in->queries.stride) * sizeof(uint4);
}

template <int Q, bool IS_SHARED, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct vector_scan_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(range.n_tiles, WARPS), most = in->n_blocks * BLOCKS_EACH;

  return launch(stream, dim3(n_blocks < most ? n_blocks : most, blocks_for(in->n_queries, Q)), THREADS,
                IS_SHARED ? block_bytes(in, Q) : sizes_bytes(Q), scan<Q, IS_SHARED, IS_MAXIMA>, *in, range, floors,
                maxima, *lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct vector_scan_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  size_t limit = device_shared_bytes(SHARED_BYTES_MAX);

  if (range.n_tiles == 0 || in->n_queries == 0)
    return ERR_OK;
  if (in->n_queries > 16 && block_bytes(in, 32) <= limit)
    return run_with<32, true, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (in->n_queries > 8 && block_bytes(in, 16) <= limit)
    return run_with<16, true, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (block_bytes(in, 8) <= limit)
    return run_with<8, true, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  return run_with<8, false, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
}

err_code_t vector_scan_maxima(struct device_stream *stream, const struct vector_scan_input *input, size_t n_slots,
                              size_t stride, size_t n_tiles, float *maxima)
{
  struct scan_range range = { 0, n_slots, stride, n_tiles };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t vector_scan_append(struct device_stream *stream, const struct vector_scan_input *input, size_t first,
                              size_t n, const float *floors, const struct device_lists *lists)
{
  struct scan_range range = { first, first + n, 1, (n + TILE - 1) / TILE };

  return run<false>(stream, input, range, floors, NULL, lists);
}
