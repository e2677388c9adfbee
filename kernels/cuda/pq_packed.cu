/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of pq_packed.h, over the tables of pq_packed_levels.cuh.
 *
 * A block keeps the level tables of Q queries in shared memory. A lane reads one row piece of up to 16 bytes for each
 * split, which is up to eight queries; Q decides how many lanes an item takes. No read has a bank conflict: items that
 * are read at the same time take their splits in different orders, so each of them reads another piece. The sums are
 * integers, and the order does not matter.
 *
 * The launch of a kernel takes the host longer than a search of few queries needs for what precedes its scan. So such a
 * search has two kernels less: all blocks make the levels before they find maxima, and find the floors before they
 * scan.
 */
#include "kernels/cuda/pq_packed.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/lists_select.cuh"
#include "kernels/cuda/pq_packed_levels.cuh"

enum {
  TILE = 64,
  QUERIES_MAX = 32, /* of a group */
  RUN_PAIRS = 256, /* adjacent pairs of items; all codes of a run stay in the cache, or none */
  RUNS = 64,       /* ... of which some stay, so both kinds are read all the time */
  AHEAD_RUNS = 32, /* a block fetches as many before it needs them, 17 MB on an H100: about what memory delivers while
                      the block waits for the floors */
  PASSED = 1 << 15 /* set in a half word that reaches its floor */
};

/* Words of consecutive queries, two queries each. */
template <int WORDS> struct alignas(4 * WORDS) words {
  uint32_t of[WORDS];
};

static_assert(ROW_BYTES < 256, "a byte of a stride");

/* What a lane needs for its sums. */
template <int Q> struct reader {
  uint32_t pieces[layout<Q>::SPREAD]; /* shared address of the piece in a split's first row, by step */
  uint32_t strides[4];                /* ROW_BYTES in the byte of a word that has the code of a step, else 0 */
  bool is_swapped;                    /* the codes' two words change places */
  unsigned item, first_query;         /* of a warp's items; of a group's queries */
};

/* A lane takes its splits in the order 0 ^ x, 1 ^ x, ..., where x < SPREAD is another for each item that is read at the
 * same time. */
template <int Q> static __device__ __forceinline__ void open_reader(const uint8_t *tables, struct reader<Q> &r)
{
  typedef layout<Q> L;
  unsigned at_once = warp_lane() / L::LANES % L::PIECES, x = at_once % L::SPREAD, copy = at_once / L::SPREAD;

  r.item = warp_lane() / L::LANES;
  r.first_query = warp_lane() % L::LANES * (2 * L::WORDS);
  r.is_swapped = x >= 4;
#pragma unroll
  for (unsigned step = 0; step < L::SPREAD; step++)
    r.pieces[step] = in_register(shared_address(tables + ((step ^ x) * L::COPIES + copy) * L::PIECE) +
                                 r.first_query * (uint32_t)sizeof(uint16_t));
#pragma unroll
  for (unsigned step = 0; step < 4; step++)
    r.strides[step] = in_register((uint32_t)ROW_BYTES << 8 * (step ^ (x & 3)));
}

/* Add the levels of an item to its sums. codes: the low word has splits 0 to 3. */
template <int Q>
static __device__ __forceinline__ void add_levels(const struct reader<Q> &r, uint32_t low, uint32_t high,
                                                  struct words<layout<Q>::WORDS> &sums)
{
  typedef layout<Q> L;
  uint32_t codes[2] = { low, high };
  struct words<L::WORDS> levels[SPLITS];

  if (L::SPREAD > 4) {
    codes[0] = r.is_swapped ? high : low;
    codes[1] = r.is_swapped ? low : high;
  }
#pragma unroll
  for (int step = 0; step < SPLITS; step++) {
    uint32_t at = add_byte_products(codes[step / 4], r.strides[step % 4], r.pieces[step % L::SPREAD]);
    levels[step] = shared_at<struct words<L::WORDS>>(at + step / L::SPREAD * ROWS_BYTES);
  }
#pragma unroll
  for (int w = 0; w < L::WORDS; w++) {
#pragma unroll
    for (int step = 0; step < SPLITS; step++)
      sums.of[w] += levels[step].of[w];
  }
}

/* Begin to copy a group's tables to shared memory. The whole block calls this; copy_async_wait() and a barrier must
 * follow. */
template <int Q> static __device__ __forceinline__ void copy_tables(const struct pq_packed_levels &levels)
{
  uint4 *tables = shared_memory<uint4>();
  const uint4 *from = reinterpret_cast<const uint4 *>(levels.tables + blockIdx.y * (size_t)layout<Q>::TABLE_BYTES);

  for (unsigned i = threadIdx.x; i < layout<Q>::TABLE_BYTES / sizeof(uint4); i += THREADS)
    copy_async(tables + i, from + i);
  copy_async_commit();
}

/* The codes of items 2 pair and 2 pair + 1. */
static __device__ __forceinline__ uint4 load_codes(const struct pq_scan_input &in, size_t pair)
{
  return reinterpret_cast<const uint4 *>(in.rows.bytes)[pair];
}

/* A scan of all items: the level-2 cache has room for a part of them. Reads of the others say that they leave it first,
 * so this part stays there from one search to the next. Else each item would drive out one that the next search reads
 * sooner. */
static __device__ __forceinline__ bool is_kept(uint32_t pair, uint32_t n_kept)
{
  return pair / RUN_PAIRS % RUNS < n_kept;
}

static __device__ __forceinline__ uint4 scan_codes(const struct pq_scan_input &in, uint32_t pair, uint32_t n_kept)
{
  const uint4 *at = reinterpret_cast<const uint4 *>(in.rows.bytes) + pair;

  return is_kept(pair, n_kept) ? *at : __ldcs(at);
}

/* What a block takes at a time. */
template <int Q> struct scan_step {
  enum {
    PAIRS = WARPS * layout<Q>::ITEMS, /* a lane takes two adjacent items */
    N_RUNS = PAIRS / RUN_PAIRS,
    AHEAD = AHEAD_RUNS / N_RUNS /* steps */
  };
};

static __device__ __forceinline__ void prefetch_run(const struct pq_scan_input &in, uint32_t pair, uint32_t n_pairs,
                                                    uint32_t n_kept)
{
  if (blockIdx.y == 0 && pair + RUN_PAIRS <= n_pairs)
    prefetch(reinterpret_cast<const uint4 *>(in.rows.bytes) + pair, RUN_PAIRS * sizeof(uint4), is_kept(pair, n_kept));
}

/* Fetch the codes of a block's first steps. */
template <int Q>
static __device__ __forceinline__ void prefetch_first(const struct pq_scan_input &in, uint32_t n_pairs, uint32_t n_kept)
{
  typedef scan_step<Q> S;
  uint32_t step = threadIdx.x / S::N_RUNS, run = threadIdx.x % S::N_RUNS;

  if (threadIdx.x < AHEAD_RUNS)
    prefetch_run(in, (step * gridDim.x + blockIdx.x) * S::PAIRS + run * RUN_PAIRS, n_pairs, n_kept);
}

static __device__ __forceinline__ uint32_t larger_halves(uint32_t a, uint32_t b)
{
  return max(a >> 16, b >> 16) << 16 | max(a & 0xffff, b & 0xffff);
}

static __device__ float lower_bound(const struct pq_packed_scale &scale, uint32_t sum)
{
  if (sum == 0 || scale.rate == 0)
    return -INFINITY;
  return (float)(scale.low + ((double)sum - 10) / scale.rate - scale.margin); /* sum is 1 more than the levels' */
}

/* A mask of the lane's queries that admit the slot, a half word each. */
template <int Q>
static __device__ struct words<layout<Q>::WORDS> admitted_halves(const struct pq_scan_input &in, unsigned first_query,
                                                                 uint32_t slot)
{
  struct words<layout<Q>::WORDS> halves = {};

  for (int i = 0; i < 2 * layout<Q>::WORDS; i++) {
    size_t query = (size_t)blockIdx.y * Q + first_query + i;
    if (query < in.n_queries && is_admitted(in.admitted, query, slot))
      halves.of[i / 2] |= 0xffffu << i % 2 * 16;
  }
  return halves;
}

/* Behind the tables in shared memory. */
template <int Q> static __device__ __forceinline__ uint8_t *more_memory()
{
  return shared_memory<uint8_t>() + layout<Q>::TABLE_BYTES;
}

/* Fetch the warp's first tile. */
static __device__ __forceinline__ void prefetch_tile(const struct pq_scan_input &in, size_t stride, size_t n_tiles)
{
  size_t t = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES, slot = t * stride * TILE;

  if (warp_lane() == 0 && blockIdx.y == 0 && t < n_tiles) {
    prefetch(in.rows.bytes + slot * SPLITS, TILE * SPLITS, false);
    prefetch(in.rows.present + slot, TILE, false);
  }
}

/* Few queries: this makes the levels first, and empties lists. */
template <int Q>
static __global__ void __launch_bounds__(THREADS, 1)
    find_maxima(struct pq_scan_input in, struct pq_packed_levels levels, uint32_t *counters, size_t n_counters,
                size_t n_slots, size_t stride, size_t n_tiles, float *maxima)
{
  prefetch_tile(in, stride, n_tiles);
  begin_kernel();
  typedef layout<Q> L;
  const struct pq_packed_scale *scales = levels.scales;
  struct reader<Q> r;

  if constexpr (Q == FEW_QUERIES) {
    struct few_memory *memory = reinterpret_cast<struct few_memory *>(more_memory<Q>());
    make_few(in, levels, shared_memory<uint8_t>(), memory);
    scales = memory->scales;
    if (blockIdx.x == 0)
      clear_counters<THREADS>(counters, n_counters);
  } else {
    copy_tables<Q>(levels);
    copy_async_wait<0>();
  }
  open_reader<Q>(shared_memory<uint8_t>(), r);
  __syncthreads();
  for (size_t t = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; t < n_tiles; t += (size_t)gridDim.x * WARPS) {
    struct words<L::WORDS> best = {};
    for (unsigned i = 2 * r.item; i < TILE; i += 2 * L::ITEMS) {
      size_t slot = t * stride * TILE + i;
      uint4 codes = load_codes(in, slot / 2);
      for (unsigned second = 0; second < 2; second++) {
        struct words<L::WORDS> sums;
        bool is_in = slot + second < n_slots && in.rows.present[slot + second];
        for (int w = 0; w < L::WORDS; w++)
          sums.of[w] = 0x00010001;
        add_levels<Q>(r, second ? codes.z : codes.x, second ? codes.w : codes.y, sums);
        if (in.admitted.of && is_in) {
          struct words<L::WORDS> halves = admitted_halves<Q>(in, r.first_query, (uint32_t)(slot + second));
          for (int w = 0; w < L::WORDS; w++)
            sums.of[w] &= halves.of[w];
        }
        for (int w = 0; w < L::WORDS; w++)
          best.of[w] = larger_halves(best.of[w], is_in ? sums.of[w] : 0);
      }
    }
#pragma unroll
    for (int w = 0; w < L::WORDS; w++) {
      for (int step = WARP_LANES / 2; step >= L::LANES; step /= 2)
        best.of[w] = larger_halves(best.of[w], __shfl_xor_sync(WARP_ALL, best.of[w], step));
    }
#pragma unroll
    for (int i = 0; i < 2 * L::WORDS; i++) {
      size_t query = (size_t)blockIdx.y * Q + r.first_query + i;
      if (r.item == 0 && query < in.n_queries)
        maxima[query * n_tiles + t] = lower_bound(scales[query], best.of[i / 2] >> i % 2 * 16 & 0xffff);
    }
  }
}

/* The value that a query's sums start from. */
static __device__ uint32_t start_of(const struct pq_packed_scale &scale, float floor)
{
  double least = ceil(((double)floor - scale.margin - scale.low) * scale.rate) - 1;
  if (!(least > 0))
    return PASSED;
  return least < PASSED ? PASSED - (uint32_t)least : 0;
}

/* What the maxima of sampled tiles say about floors. */
struct sample {
  const float *maxima; /* [n_queries][n_tiles] */
  size_t n_tiles;
  struct lists_ranks ranks;
};

/* A block's shared memory behind its tables while it scans: group_of() counts on it. */
template <int Q> struct scan_memory {
  uint16_t starts[Q];
};
template <> struct scan_memory<FEW_QUERIES> {
  uint16_t starts[FEW_QUERIES];
  struct selection selection;
};

/* Find the floor of each of few queries. All blocks do: it takes less time than to wait for one of them. */
static __device__ __forceinline__ void start_few(const struct pq_scan_input &in, const struct pq_packed_levels &levels,
                                                 const struct sample &sample, struct scan_memory<FEW_QUERIES> *memory)
{
#pragma unroll 1
  for (uint32_t query = 0; query < FEW_QUERIES; query++) {
    uint32_t start = 0;
    if (query < in.n_queries) {
      uint32_t rank = sample.ranks.more + (sample.ranks.of ? sample.ranks.of[query] : 0);
      float floor = select_threshold<THREADS, FEW_KEYS>(sample.maxima + query * sample.n_tiles,
                                                        (uint32_t)sample.n_tiles, rank, memory->selection);
      start = start_of(levels.scales[query], floor);
    }
    __syncthreads(); /* all have read the selection */
    if (threadIdx.x == 0)
      memory->starts[query] = (uint16_t)start;
  }
}

/* Write what the sums of the block's queries start from; 0 past the end. A barrier must follow. */
template <int Q>
static __device__ __forceinline__ void find_starts(const struct pq_scan_input &in,
                                                   const struct pq_packed_levels &levels, const struct sample &sample,
                                                   const float *floors, struct scan_memory<Q> *memory)
{
  if constexpr (Q == FEW_QUERIES) {
    start_few(in, levels, sample, memory);
  } else if (threadIdx.x < Q) {
    size_t query = (size_t)blockIdx.y * Q + threadIdx.x;
    memory->starts[threadIdx.x] =
        (uint16_t)(query < in.n_queries ? start_of(levels.scales[query], floors[query]) : 0);
  }
}

/* Append the item to the lists of the lane's queries whose floor it reaches. */
template <int Q>
static __device__ __forceinline__ void append_passed(const struct pq_scan_input &in, unsigned first_query,
                                                     const struct words<layout<Q>::WORDS> &sums, uint32_t slot,
                                                     uint32_t n_slots, const struct device_lists &lists)
{
  uint32_t any = 0, passed = 0;

#pragma unroll
  for (int w = 0; w < layout<Q>::WORDS; w++)
    any |= sums.of[w];
  if (!(any & (PASSED << 16 | PASSED)) || slot >= n_slots || !in.rows.present[slot])
    return;
#pragma unroll
  for (int i = 0; i < 2 * layout<Q>::WORDS; i++)
    passed |= (sums.of[i / 2] >> (15 + i % 2 * 16) & 1) << i;
  for (; passed; passed &= passed - 1) {
    size_t query = (size_t)blockIdx.y * Q + first_query + (unsigned)__ffs((int)passed) - 1;
    if (is_admitted(in.admitted, query, slot))
      append(lists, query, slot, 0.0f);
  }
}

/* Absent items have codes too. So `present` and the words of filters are read only for items that pass. */
template <int Q>
static __global__ void __launch_bounds__(THREADS, 1)
    scan(struct pq_scan_input in, struct pq_packed_levels levels, uint32_t n_slots, uint32_t n_kept,
         struct sample sample, const float *floors, struct device_lists lists)
{
  typedef layout<Q> L;
  uint32_t step = gridDim.x * scan_step<Q>::PAIRS, ahead = step * scan_step<Q>::AHEAD, n_pairs = (n_slots + 1) / 2;
  prefetch_first<Q>(in, n_pairs, n_kept);
  begin_kernel();
  struct scan_memory<Q> *memory = reinterpret_cast<struct scan_memory<Q> *>(more_memory<Q>());
  struct words<L::WORDS> starts;
  struct reader<Q> r;

  copy_tables<Q>(levels);
  /* Two loads are on their way while the items of a third are summed, and while tables and floors are made ready. */
  open_reader<Q>(shared_memory<uint8_t>(), r);
  uint32_t pair = (blockIdx.x * WARPS + threadIdx.x / WARP_LANES) * L::ITEMS + r.item;
  uint4 next = {}, after = {};
  if (pair < n_pairs)
    next = scan_codes(in, pair, n_kept);
  if (pair + step < n_pairs)
    after = scan_codes(in, pair + step, n_kept);
  find_starts<Q>(in, levels, sample, floors, memory);
  copy_async_wait<0>();
  __syncthreads();
  starts = reinterpret_cast<const struct words<L::WORDS> *>(memory->starts)[r.first_query / (2 * L::WORDS)];

#pragma unroll 1
  for (; pair < n_pairs; pair += step) {
    uint4 codes = next;
    struct words<L::WORDS> sums = starts;
    next = after;
    if (pair + 2 * step < n_pairs)
      after = scan_codes(in, pair + 2 * step, n_kept);
    if (Q < 8 && pair % RUN_PAIRS == 0) /* larger groups compute for longer than the memory takes */
      prefetch_run(in, pair + ahead, n_pairs, n_kept);
    add_levels<Q>(r, codes.x, codes.y, sums);
    append_passed<Q>(in, r.first_query, sums, 2 * pair, n_slots, lists);
    sums = starts;
    add_levels<Q>(r, codes.z, codes.w, sums);
    append_passed<Q>(in, r.first_query, sums, 2 * pair + 1, n_slots, lists);
  }
}

static size_t table_bytes(size_t group)
{
  return (group < 8 ? 1 : group / 8) * ROWS_BYTES;
}

/* Number of queries in a group: as few as have room for n, and as many as the device's shared memory allows. */
static size_t group_of(size_t n)
{
  size_t q = 2;

  while (q < n && q < QUERIES_MAX && table_bytes(2 * q) + 2 * q * sizeof(uint16_t) <= device_shared_bytes(SIZE_MAX))
    q *= 2;
  return q;
}

size_t pq_packed_n_scales(size_t n_queries)
{
  size_t q = group_of(n_queries);

  return (n_queries + q - 1) / q * q;
}

size_t pq_packed_table_bytes(size_t n_queries)
{
  size_t q = group_of(n_queries);

  return pq_packed_n_scales(n_queries) / q * table_bytes(q);
}

/* What the functions of pq_packed.h are called with, where they differ. */
struct run {
  struct device_stream *stream;
  const struct pq_scan_input *in;
  const struct pq_packed_levels *levels;
  const struct device_lists *lists;
  size_t n_slots, stride, n_tiles;
  float *maxima;        /* of pq_packed_maxima() */
  struct sample sample; /* of pq_packed_append() */
  float *floors;
};

/* The grid of a scan: one block for each multiprocessor, divided among the groups of queries. */
static dim3 grid_of(const struct run &run, unsigned n_blocks, unsigned n_groups)
{
  unsigned most = run.in->n_blocks / n_groups ? run.in->n_blocks / n_groups : 1;

  return dim3(n_blocks < most ? n_blocks : most, n_groups);
}

template <int Q> static err_code_t maxima_with(const struct run &run)
{
  dim3 grid = grid_of(run, blocks_for(run.n_tiles, WARPS), blocks_for(run.in->n_queries, Q));
  size_t more = Q == FEW_QUERIES ? sizeof(struct few_memory) : 0;

  if constexpr (Q != FEW_QUERIES)
    TRY(launch(run.stream, dim3(blocks_for(run.in->n_queries, Q) * Q, SPLITS), SUBITEMS, sizeof(struct scale_memory),
               prepare<Q>, *run.in, *run.levels, run.lists->n, run.lists->n_lists));
  return launch(run.stream, grid, THREADS, layout<Q>::TABLE_BYTES + more, find_maxima<Q>, *run.in, *run.levels,
                run.lists->n, run.lists->n_lists, run.n_slots, run.stride, run.n_tiles, run.maxima);
}

/* Of RUNS runs, as many as take half of the cache: where both of its partitions keep what one of them reads from
 * the other's memory, an item may be there twice. */
static uint32_t kept_runs(size_t n_items)
{
  size_t room = device_cache_bytes() / 2, bytes = n_items * SPLITS;

  return (uint32_t)(room < bytes ? room * RUNS / bytes : (size_t)RUNS);
}

template <int Q> static err_code_t append_with(const struct run &run)
{
  dim3 grid = grid_of(run, blocks_for(run.n_slots, (size_t)WARPS * 2 * layout<Q>::ITEMS),
                      blocks_for(run.in->n_queries, Q));

  if constexpr (Q != FEW_QUERIES)
    TRY(lists_threshold_of(run.stream, run.sample.maxima, run.in->n_queries, run.sample.n_tiles, run.sample.ranks,
                           run.floors));
  return launch(run.stream, grid, THREADS, layout<Q>::TABLE_BYTES + sizeof(struct scan_memory<Q>), scan<Q>, *run.in,
                *run.levels, (uint32_t)run.n_slots, kept_runs(run.n_slots), run.sample, (const float *)run.floors,
                *run.lists);
}

/* Call the variant of a function for the group's number of queries. */
static err_code_t call(const struct run &run, err_code_t (*const (&variants)[5])(const struct run &run))
{
  size_t i = 0;

  if (run.in->n_queries == 0)
    return ERR_OK;
  while ((size_t)2 << i < group_of(run.in->n_queries))
    i++;
  return variants[i](run);
}

err_code_t pq_packed_maxima(struct device_stream *stream, const struct pq_scan_input *input,
                            const struct pq_packed_levels *levels, const struct device_lists *lists, size_t n_slots,
                            size_t stride, size_t n_tiles, float *maxima)
{
  struct run run = { stream, input, levels, lists, n_slots, stride, n_tiles, maxima, {}, NULL };

  return call(run, { maxima_with<2>, maxima_with<4>, maxima_with<8>, maxima_with<16>, maxima_with<32> });
}

err_code_t pq_packed_append(struct device_stream *stream, const struct pq_scan_input *input,
                            const struct pq_packed_levels *levels, size_t n_slots, const float *maxima,
                            size_t n_tiles, struct lists_ranks ranks, float *floors, const struct device_lists *lists)
{
  struct run run = { stream, input, levels, lists, n_slots, 1, n_tiles, NULL, { maxima, n_tiles, ranks }, floors };

  return call(run, { append_with<2>, append_with<4>, append_with<8>, append_with<16>, append_with<32> });
}
