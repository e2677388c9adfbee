/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of mol_pair_lists.h: exact dot products of listed pairs, and the union of a query's lists. */
#include "kernels/cuda/mol_pair_lists.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/excluded.cuh"
#include "kernels/cuda/mol_pairs_tile.cuh"

enum {
  THREADS = 256,
  QUERY_BLOCKS_MAX = 16,
  LIST_THREADS = 128, /* of a block that works on one list: most lists are short */
  LIST_WARPS = LIST_THREADS / WARP_LANES,
  EACH = 4, /* entries of a thread whose loads and atomic operations are in flight together */
  PITCH = WARP_LANES + 1
};

static __device__ __forceinline__ size_t query_of(const struct mol_pair_queries &queries, size_t row)
{
  return (queries.first_row + row) / queries.n_components;
}

static __global__ void begin(struct mol_pair_union out, size_t n)
{
  begin_kernel();
  size_t q = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (q >= n)
    return;
  out.nth_best[q] = -INFINITY;
  out.has_overflowed[q] = 0;
}

/* mol_pair_sampled_rank(): 5.2 deviations of a Poisson distribution above its mean, and 3 more for small means. */
static __host__ __device__ uint32_t sampled_rank(uint32_t rank, size_t stride)
{
  double mean = (double)rank / (double)stride, most = ceil(mean + 5.2 * sqrt(mean) + 3);

  return most < (double)rank ? (uint32_t)most : rank;
}

static __global__ void begin_lists(size_t n_rows, struct mol_pair_queries queries, struct mol_pair_ranks ranks,
                                   struct device_lists lists)
{
  begin_kernel();
  size_t list = (size_t)blockIdx.x * THREADS + threadIdx.x, query = query_of(queries, list % n_rows);

  if (list >= lists.n_lists)
    return;
  lists.n[list] = 0;
  uint32_t rank = ranks.query_floors.more + (ranks.query_floors.of ? ranks.query_floors.of[query] : 0);
  ranks.floors[list] = rank;
  ranks.sampled[list] = sampled_rank(rank, ranks.stride);
  ranks.best[list] = ranks.query_best.more + (ranks.query_best.of ? ranks.query_best.of[query] : 0);
}

/* Load 32 numbers of each wanted item into shared memory, all of them at the same time. The warp reads one item's row
 * with each instruction, so its reads are coalesced. row is the lane's item. */
static __device__ __forceinline__ void load_numbers(const float *row, unsigned wanted, size_t k, size_t dim,
                                                    float *tile)
{
  unsigned lane = warp_lane();

  for (; wanted; wanted &= wanted - 1) {
    int i = __ffs((int)wanted) - 1;
    const float *of_item =
        reinterpret_cast<const float *>(__shfl_sync(WARP_ALL, (unsigned long long)reinterpret_cast<uintptr_t>(row), i));
    if (k + lane < dim)
      copy_async_float(tile + i * PITCH + lane, of_item + k + lane);
  }
  copy_async_commit();
  copy_async_wait<0>();
  __syncwarp();
}

/* The dot product of f and the lane's item, summed in the order of kernels_ref.c. is_wanted: it has one. */
static __device__ float dot(const float *f, const float *row, bool is_wanted, size_t dim, float *tile)
{
  unsigned wanted = __ballot_sync(WARP_ALL, is_wanted);
  const float *mine = tile + warp_lane() * PITCH;
  float sum = 0.0f;

  for (size_t k = 0; k < dim && wanted; k += WARP_LANES) {
    load_numbers(row, wanted, k, dim, tile);
    if (is_wanted && dim - k >= WARP_LANES) {
#pragma unroll
      for (size_t i = 0; i < WARP_LANES; i++)
        sum = fmaf(f[k + i], mine[i], sum);
    } else if (is_wanted) {
      for (size_t i = 0; i < dim - k; i++)
        sum = fmaf(f[k + i], mine[i], sum);
    }
    __syncwarp();
  }
  return sum;
}

/* The largest error of an estimate: step 7 of mol_pairs.h. */
static __device__ float estimate_error(const struct mol_pairs_input &in, size_t row, float floor)
{
  float slack = slack_of(groups_of(in.component_dim));

  if (in.component_dim > MOL_PAIRS_DIM_MAX)
    return 0.0f;
  return fmaf(slack, fabsf(floor), in.rows.margins[row]) * (1 + 2 * slack);
}

/* A warp's room for 32 items. Before it, the block's shared memory has the row's numbers. */
static __host__ __device__ __forceinline__ size_t row_room(size_t dim)
{
  return (dim + WARP_LANES - 1) / WARP_LANES * WARP_LANES;
}

/* Score every entry of every list. A warp takes 32 entries at a time. */
static __global__ void __launch_bounds__(LIST_THREADS)
    score(struct mol_pairs_input in, struct mol_pair_queries queries, const float *floors, const float *estimates,
          struct device_lists lists)
{
  begin_kernel();
  size_t list = blockIdx.x, row = list % in.rows.n, dim = in.component_dim;
  size_t offset = (in.first_component + list / in.rows.n) * dim;
  float *f = shared_memory<float>(), *tile = f + row_room(dim) + threadIdx.x / WARP_LANES * WARP_LANES * PITCH;
  uint32_t n = list_length(lists, list);
  float error = estimate_error(in, row, floors[list]);
  float least = estimates[list] - 2 * error - 0x1p-22f * fabsf(estimates[list]);

  for (size_t k = threadIdx.x; k < dim; k += LIST_THREADS)
    f[k] = in.rows.vectors[row * dim + k];
  __syncthreads();
  for (uint32_t first = (blockIdx.y * LIST_WARPS + threadIdx.x / WARP_LANES) * WARP_LANES; first < n;
       first += gridDim.y * LIST_THREADS) {
    size_t at = list * lists.capacity + first + warp_lane();
    bool is_in = first + warp_lane() < n;
    uint32_t slot = is_in ? lists.slots[at] : 0;
    const float *item = reinterpret_cast<const float *>(in.items.bytes + slot * in.items.row_bytes) + offset;
    bool is_near = is_in && !(lists.scores[at] < least); /* also where there is no estimate */
    float sum = dot(f, item, is_near, dim, tile);
    if (is_in)
      lists.scores[at] = is_near && !is_excluded(queries.excluded, query_of(queries, row), slot) ? sum : -INFINITY;
  }
}

/* Add a thread's N entries to a query's candidates, those with is_in that are not among them yet. The whole warp calls
 * this. */
template <int N>
static __device__ __forceinline__ void add(const struct mol_pair_union &out, size_t query, const bool is_in[N],
                                           const uint32_t slots[N], const float scores[N])
{
  const struct device_lists &to = out.candidates;
  uint32_t seen[N], n = 0, first = 0, before = (1u << warp_lane()) - 1;
  unsigned added[N];

#pragma unroll
  for (int i = 0; i < N; i++)
    seen[i] = is_in[i] ? atomicOr(&out.seen[query * out.n_words + slots[i] / 32], 1u << slots[i] % 32) : ~0u;
#pragma unroll
  for (int i = 0; i < N; i++) {
    added[i] = __ballot_sync(WARP_ALL, !(seen[i] >> slots[i] % 32 & 1));
    n += (uint32_t)__popc(added[i]);
  }
  if (n == 0)
    return;
  if (warp_lane() == 0)
    first = atomicAdd(&to.n[query], n);
  first = __shfl_sync(WARP_ALL, first, 0);
#pragma unroll
  for (int i = 0; i < N; i++) {
    uint32_t at = first + (uint32_t)__popc(added[i] & before);
    if (added[i] >> warp_lane() & 1 && at < to.capacity) {
      to.slots[query * to.capacity + at] = slots[i];
      to.scores[query * to.capacity + at] = scores[i];
    }
    first += (uint32_t)__popc(added[i]);
  }
}

/* A block adds the entries of one list, EACH of a thread at a time. */
static __global__ void __launch_bounds__(LIST_THREADS)
    add_lists(size_t n_rows, struct mol_pair_queries queries, struct device_lists lists, const float *thresholds,
              struct mol_pair_union out)
{
  begin_kernel();
  size_t list = blockIdx.x, query = query_of(queries, list % n_rows);
  uint32_t n = list_length(lists, list);
  float least = thresholds[list];

  for (uint32_t first = blockIdx.y * LIST_THREADS * EACH; first < n; first += gridDim.y * LIST_THREADS * EACH) {
    uint32_t slots[EACH];
    float scores[EACH];
    bool is_in[EACH];
#pragma unroll
    for (uint32_t i = 0; i < EACH; i++) {
      uint32_t entry = first + i * LIST_THREADS + threadIdx.x;
      size_t at = list * lists.capacity + entry;
      scores[i] = entry < n ? lists.scores[at] : -INFINITY;
      slots[i] = entry < n ? lists.slots[at] : 0;
      is_in[i] = scores[i] >= least && scores[i] > -INFINITY;
    }
    add<EACH>(out, query, is_in, slots, scores);
  }
}

/* Combine what a query's lists report: the best threshold, and whether any list overflowed or may lack something. One
 * warp per query. Its rows lie one after another; some of them may belong to other passes. */
static __global__ void sum_up(size_t n_rows, size_t n_components, struct mol_pair_queries queries,
                              struct device_lists lists, const float *floors, const float *thresholds,
                              struct mol_pair_union out)
{
  begin_kernel();
  size_t query = blockIdx.x, first = query * queries.n_components, end = first + queries.n_components;
  float best = -INFINITY;
  bool has_overflowed = false;

  first = first > queries.first_row ? first - queries.first_row : 0;
  end = end > queries.first_row ? end - queries.first_row : 0;
  end = end < n_rows ? end : n_rows;
  for (size_t i = warp_lane(); first < end && i < (end - first) * n_components; i += WARP_LANES) {
    size_t list = i / (end - first) * n_rows + first + i % (end - first);
    best = fmaxf(best, thresholds[list]);
    has_overflowed |= lists.n[list] > lists.capacity || thresholds[list] < floors[list];
  }
  best = warp_max(best);
  has_overflowed = __any_sync(WARP_ALL, has_overflowed);
  if (warp_lane() == 0) {
    out.nth_best[query] = fmaxf(out.nth_best[query], best);
    if (has_overflowed || out.candidates.n[query] > out.candidates.capacity)
      out.has_overflowed[query] = 1;
  }
}

static __global__ void __launch_bounds__(THREADS)
    add_all(const uint8_t *present, size_t n_slots, struct mol_pair_queries queries, struct mol_pair_union out)
{
  begin_kernel();
  size_t query = blockIdx.x;

  for (size_t first = (size_t)blockIdx.y * THREADS; first < n_slots; first += (size_t)gridDim.y * THREADS) {
    size_t slot = first + threadIdx.x;
    bool is_in = slot < n_slots && present[slot] && is_admitted(queries.admitted, query, (uint32_t)slot) &&
                 !is_excluded(queries.excluded, query, (uint32_t)slot);
    const uint32_t slots[1] = { is_in ? (uint32_t)slot : 0 };
    const float scores[1] = { 0.0f };
    add<1>(out, query, &is_in, slots, scores);
  }
}

err_code_t mol_pair_union_begin(struct device_stream *stream, const struct mol_pair_union *out)
{
  size_t n = out->candidates.n_lists;

  TRY(lists_clear(stream, &out->candidates));
  TRY(device_fill(stream, out->seen, 0, n * out->n_words * sizeof *out->seen));
  return n ? launch(stream, blocks_for(n, THREADS), THREADS, 0, begin, *out, n) : ERR_OK;
}

static size_t n_lists_of(const struct mol_pairs_input *in)
{
  return in->rows.n * in->n_components;
}

err_code_t mol_pair_lists_begin(struct device_stream *stream, const struct mol_pairs_input *input,
                                const struct mol_pair_queries *queries, const struct mol_pair_ranks *ranks,
                                const struct device_lists *lists)
{
  return lists->n_lists ? launch(stream, blocks_for(lists->n_lists, THREADS), THREADS, 0, begin_lists, input->rows.n,
                                 *queries, *ranks, *lists)
                        : ERR_OK;
}

/* A block for each list, which loops over what is left of a long one. More where that leaves the device idle. */
static dim3 list_blocks(const struct mol_pairs_input *in, const struct device_lists *lists, unsigned n_entries)
{
  size_t n_lists = n_lists_of(in);
  unsigned most = blocks_for(lists->capacity + 1, n_entries), share = blocks_for(4 * in->n_blocks, n_lists);

  return dim3((unsigned)n_lists, share < most ? share : most);
}

uint32_t mol_pair_sampled_rank(uint32_t rank, size_t stride)
{
  return sampled_rank(rank, stride);
}

err_code_t mol_pair_lists_score(struct device_stream *stream, const struct mol_pairs_input *input,
                                const struct mol_pair_queries *queries, const float *floors, const float *estimates,
                                const struct device_lists *lists)
{
  if (n_lists_of(input) == 0)
    return ERR_OK;
  return launch(stream, list_blocks(input, lists, LIST_THREADS), LIST_THREADS,
                (row_room(input->component_dim) + LIST_WARPS * WARP_LANES * PITCH) * sizeof(float), score, *input,
                *queries, floors, estimates, *lists);
}

err_code_t mol_pair_union_add(struct device_stream *stream, const struct mol_pairs_input *input,
                              const struct mol_pair_queries *queries, const struct device_lists *lists,
                              const float *floors, const float *thresholds, const struct mol_pair_union *out)
{
  size_t n_rows = input->rows.n, n_lists = n_lists_of(input);

  if (n_lists == 0)
    return ERR_OK;
  TRY(launch(stream, list_blocks(input, lists, LIST_THREADS * EACH), LIST_THREADS, 0, add_lists, n_rows, *queries,
             *lists, thresholds, *out));
  return launch(stream, (unsigned)queries->n, WARP_LANES, 0, sum_up, n_rows, input->n_components, *queries, *lists,
                floors, thresholds, *out);
}

err_code_t mol_pair_union_all(struct device_stream *stream, const uint8_t *present, size_t n_slots,
                              const struct mol_pair_queries *queries, const struct mol_pair_union *out)
{
  struct device_lists none = {};

  if (queries->n == 0 || n_slots == 0)
    return ERR_OK;
  unsigned n_blocks = blocks_for(n_slots, 4 * THREADS);
  dim3 blocks((unsigned)queries->n, n_blocks < QUERY_BLOCKS_MAX ? n_blocks : (unsigned)QUERY_BLOCKS_MAX);
  TRY(launch(stream, blocks, THREADS, 0, add_all, present, n_slots, *queries, *out));
  return launch(stream, (unsigned)queries->n, WARP_LANES, 0, sum_up, (size_t)0, (size_t)0, *queries, none,
                (const float *)NULL, (const float *)NULL, *out);
}
