/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of pq_scan.h.
 *
 * A block keeps the look-up tables of Q queries in shared memory, [M][256][Q]. A warp scores WARP_LANES / Q items at a
 * time. Lane l works for query l % Q. So the lanes of one item read one row of Q numbers, without bank conflicts. Q is
 * at most 16 and falls as M grows, until the tables fit. Each row of blocks in the grid handles Q queries of the batch.
 */
#include "kernels/cuda/pq_scan.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"

enum {
  THREADS = 512,
  WARPS = THREADS / WARP_LANES,
  TILE = 64,
  SUBITEMS = 256,
  TABLE_BYTES_MAX = 200 * 1024,
  SCORE_THREADS = 128,
  SCORE_BLOCKS_MAX = 32 /* per list */
};

struct scan_range {
  size_t first, n_slots, stride, n_tiles; /* tile t starts at slot first + t * stride * TILE and ends below n_slots */
};

template <int Q> static __device__ void load_tables(const struct pq_scan_input &in, size_t first_query, float *tables)
{
  size_t n = in.n_splits * SUBITEMS;

  for (size_t i = threadIdx.x; i < n * Q; i += THREADS) {
    size_t entry = i / Q, q = i % Q; /* writes without bank conflicts */
    tables[i] = first_query + q < in.n_queries ? in.subitem_scores[(first_query + q) * n + entry] : 0.0f;
  }
  __syncthreads();
}

/* Compute equation 5 of the RecJPQPrune paper, in the order of the splits. */
template <int Q>
static __device__ __forceinline__ float score_item(const float *tables, const uint8_t *codes, size_t n_splits)
{
  const uint32_t *words = reinterpret_cast<const uint32_t *>(codes);
  float score = 0.0f;

  for (size_t m = 0; m < n_splits; m += 4) {
    uint32_t word = words[m / 4];
#pragma unroll
    for (size_t i = 0; i < 4; i++) {
      if (m + i < n_splits) {
        float s = tables[((m + i) * SUBITEMS + (word >> 8 * i & 0xff)) * Q];
        score = m + i == 0 ? s : score + s;
      }
    }
  }
  return score;
}

/* Scan every tile of the range for Q queries. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int Q, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS) scan(struct pq_scan_input in, struct scan_range range,
                                                       const float *floors, float *maxima, struct device_lists lists)
{
  begin_kernel();
  float *tables = shared_memory<float>();
  size_t first_query = (size_t)blockIdx.y * Q, query = first_query + threadIdx.x % Q;
  unsigned sub = threadIdx.x % WARP_LANES / Q;
  bool is_query = query < in.n_queries;
  float floor = !IS_MAXIMA && is_query ? floors[query] : 0.0f;
  const uint64_t *words = in.admitted.of && is_query ? in.admitted.of[query] : NULL;

  load_tables<Q>(in, first_query, tables);
  for (size_t t = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; t < range.n_tiles;
       t += (size_t)gridDim.x * WARPS) {
    size_t first = range.first + t * range.stride * TILE;
    uint64_t admitted = words ? words[first / TILE] : ~(uint64_t)0;
    float best = -INFINITY;
    for (unsigned i = sub; i < TILE && first + i < range.n_slots; i += WARP_LANES / Q) {
      size_t slot = first + i;
      if (!in.rows.present[slot] || !(admitted >> i & 1))
        continue;
      float score = score_item<Q>(tables + threadIdx.x % Q, in.rows.bytes + slot * in.rows.row_bytes, in.n_splits);
      if (IS_MAXIMA)
        best = fmaxf(best, score);
      else if (is_query && score >= floor)
        append(lists, query, (uint32_t)slot, score);
    }
    if (IS_MAXIMA) {
      for (int step = WARP_LANES / 2; step >= Q; step /= 2)
        best = fmaxf(best, __shfl_xor_sync(WARP_ALL, best, step));
      if (sub == 0 && is_query)
        maxima[query * range.n_tiles + t] = best;
    }
  }
}

static size_t table_bytes(const struct pq_scan_input *in, size_t n_queries)
{
  return in->n_splits * SUBITEMS * n_queries * sizeof(float);
}

template <int Q, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct pq_scan_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(range.n_tiles, WARPS), n_groups = blocks_for(in->n_queries, Q);
  unsigned most = in->n_blocks / n_groups ? in->n_blocks / n_groups : 1;

  return launch(stream, dim3(n_blocks < most ? n_blocks : most, n_groups), THREADS, table_bytes(in, Q),
                scan<Q, IS_MAXIMA>, *in, range, floors, maxima, *lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct pq_scan_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  size_t limit = device_shared_bytes(TABLE_BYTES_MAX);

  if (range.n_tiles == 0 || in->n_queries == 0)
    return ERR_OK;
  if (in->n_queries > 8 && table_bytes(in, 16) <= limit)
    return run_with<16, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (in->n_queries > 2 && table_bytes(in, 8) <= limit)
    return run_with<8, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (in->n_queries > 1 && table_bytes(in, 2) <= limit)
    return run_with<2, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  return run_with<1, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
}

err_code_t pq_scan_maxima(struct device_stream *stream, const struct pq_scan_input *input, size_t n_slots,
                          size_t stride, size_t n_tiles, float *maxima)
{
  struct scan_range range = { 0, n_slots, stride, n_tiles };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t pq_scan_append(struct device_stream *stream, const struct pq_scan_input *input, size_t first, size_t n,
                          const float *floors, const struct device_lists *lists)
{
  struct scan_range range = { first, first + n, 1, (n + TILE - 1) / TILE };

  return run<false>(stream, input, range, floors, NULL, lists);
}

/* One thread per entry. The tables are read through the cache. */
static __global__ void __launch_bounds__(SCORE_THREADS) score(struct pq_scan_input in, struct device_lists lists)
{
  begin_kernel();
  size_t list = blockIdx.y;
  uint32_t n = list_length(lists, list);
  const float *tables = in.subitem_scores + list * in.n_splits * SUBITEMS;

  for (uint32_t i = blockIdx.x * SCORE_THREADS + threadIdx.x; i < n; i += gridDim.x * SCORE_THREADS) {
    size_t at = list * lists.capacity + i;
    lists.scores[at] = score_item<1>(tables, in.rows.bytes + lists.slots[at] * in.rows.row_bytes, in.n_splits);
  }
}

err_code_t pq_scan_score_lists(struct device_stream *stream, const struct pq_scan_input *input,
                               const struct device_lists *lists)
{
  unsigned n_blocks = blocks_for(lists->capacity, SCORE_THREADS);

  if (n_blocks == 0 || lists->n_lists == 0)
    return ERR_OK;
  return launch(stream, dim3(n_blocks < SCORE_BLOCKS_MAX ? n_blocks : (unsigned)SCORE_BLOCKS_MAX,
                             (unsigned)lists->n_lists), SCORE_THREADS, 0, score, *input, *lists);
}
