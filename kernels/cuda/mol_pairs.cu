/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of mol_pairs.h on tensor cores.
 *
 * A block multiplies tiles of 64 items by its queries' rows, one item component at a time. Each warp keeps 32 rows in
 * registers as the tensor core's second operand, and multiplies them by 16 items of a tile at a time. The eight warps
 * form a grid of ROW_WARPS groups of rows by ITEM_WARPS tiles. The block prefetches items into a ring of buffers in
 * shared memory while it computes. Between two barriers it works on TOGETHER components.
 */
#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_pairs_passed.cuh"
#include "kernels/cuda/mol_pairs_tile.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  STAGES = 2,
  COMPONENTS_MAX = 16,  /* of one launch: their floors lie in shared memory */
  SUMS = 4 * ROW_TILES, /* of a lane and 16 items */
  AT_A_TIME = 2         /* times 16 items: one group's products hide the other's latency */
};

struct scan_range {
  uint32_t n_slots, stride, n_tiles; /* tile t starts at slot t * stride * TILE and ends below n_slots */
  size_t item_halves;                /* numbers from one item to the next */
};

/* A warp's work on one component of one tile. */
struct work {
  uint32_t tile_index, first_slot; /* the tile's */
  uint32_t first_row, first_list;  /* the warp's first row; the list of row 0 */
  struct tile tile;
};

/* Set a lane's sums of row tile j and items 16 i to 16 i + 15 to -inf where the row does not admit the item. */
static __device__ void drop_others(const struct mol_pairs_rows &rows, const struct work &work, unsigned i, int j,
                                   float sums[4])
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;

  for (unsigned k = 0; k < 4; k++) {
    uint32_t row = work.first_row + 8 * j + 2 * t + k % 2;
    if (row < rows.n && !is_admitted(rows.admitted, row, work.first_slot + STEP_ITEMS * i + g + k / 2 * 8))
      sums[k] = -INFINITY;
  }
}

/* Raise best[j] to the largest sums of a tile's items with the lane's row 8 (j / 2) + 2 t + j % 2, t = lane % 4.
 * IS_WHOLE: every row admits all 64 items, and all are present. */
template <int GROUPS, bool IS_WHOLE>
static __device__ __forceinline__ void raise_best(const half_bits *buffer, const struct work &work,
                                                  const struct mol_pairs_rows &rows,
                                                  const struct row_part<GROUPS> &part, float (&best)[2 * ROW_TILES])
{
  unsigned g = warp_lane() / 4, lane_place = ::lane_place<GROUPS>();

#pragma unroll 2
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    uint32_t items[GROUPS * GROUP_STEPS][4];
    float of_low = IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g) ? 0.0f : -INFINITY;
    float of_high = IS_WHOLE || is_present(work.tile, STEP_ITEMS * i + g + 8) ? 0.0f : -INFINITY;
    float start[4] = { of_low, of_low, of_high, of_high };
    load_items<GROUPS>(buffer, i, lane_place, items);
#pragma unroll
    for (int j = 0; j < ROW_TILES; j++) {
      float sums[4];
      multiply<GROUPS>(items, part, j, start, sums);
      if (!IS_WHOLE && rows.admitted.of)
        drop_others(rows, work, i, j, sums);
      best[2 * j] = fmaxf(best[2 * j], fmaxf(sums[0], sums[2]));
      best[2 * j + 1] = fmaxf(best[2 * j + 1], fmaxf(sums[1], sums[3]));
    }
  }
}

/* Return the largest x[j] of the lanes with the same lane % 4, where j has bits 2 to 4 of the lane's number as its
 * highest to lowest bits. */
static __device__ __forceinline__ float spread_maxima(const float (&x)[2 * ROW_TILES])
{
  float left[ROW_TILES];

  static_assert(ROW_TILES == 4, "three halvings");
#pragma unroll
  for (int j = 0; j < 4; j++) {
    bool is_high = warp_lane() & 4;
    left[j] = fmaxf(is_high ? x[j + 4] : x[j], __shfl_xor_sync(WARP_ALL, is_high ? x[j] : x[j + 4], 4));
  }
#pragma unroll
  for (int j = 0; j < 2; j++) {
    bool is_high = warp_lane() & 8;
    left[j] = fmaxf(is_high ? left[j + 2] : left[j], __shfl_xor_sync(WARP_ALL, is_high ? left[j] : left[j + 2], 8));
  }
  bool is_high = warp_lane() & 16;
  return fmaxf(is_high ? left[1] : left[0], __shfl_xor_sync(WARP_ALL, is_high ? left[0] : left[1], 16));
}

/* Write the largest lower bound of each row. */
template <int GROUPS>
static __device__ void find_maxima(const half_bits *buffer, const struct work &work, const struct mol_pairs_rows &rows,
                                   const struct row_part<GROUPS> &part, float *maxima, uint32_t n_tiles)
{
  unsigned lane = warp_lane(), j = (lane & 4) | (lane >> 2 & 2) | lane >> 4;
  uint32_t row = work.first_row + 8 * (j / 2) + 2 * (lane % 4) + j % 2;
  float best[2 * ROW_TILES];

#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++)
    best[i] = -INFINITY;
  if (work.tile.present == ~UINT64_C(0) && !rows.admitted.of)
    raise_best<GROUPS, true>(buffer, work, rows, part, best);
  else
    raise_best<GROUPS, false>(buffer, work, rows, part, best);
#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++)
    best[i] -= fmaf(part.norm[i], work.tile.residual, part.base[i]);
  float bound = spread_maxima(best);
  if (row < rows.n)
    maxima[(size_t)(work.first_list + row) * n_tiles + work.tile_index] =
        work.tile.residual < INFINITY ? bound : -INFINITY;
}

/* Load a block's floors, as far as they do not depend on the items: starts [n_components][n_rows], in shared memory.
 * The sum of an item that may reach the floor ends above 0. A row without a list starts from -inf. */
static __device__ void load_starts(const struct mol_pairs_input &in, const float *floors, uint32_t first_row,
                                   uint32_t n_rows, float of_floor, float *starts)
{
  for (uint32_t i = threadIdx.x; i < (uint32_t)in.n_components * n_rows; i += THREADS) {
    uint32_t row = first_row + i % n_rows;
    starts[i] = -INFINITY;
    if (row < in.rows.n) {
      float floor = floors[i / n_rows * in.rows.n + row];
      starts[i] = in.rows.margins[row].base + fmaf(of_floor, fabsf(floor), -floor);
    }
  }
}

/* Return x[at]. The array stays in registers. */
template <int N> static __device__ __forceinline__ float pick(const float (&x)[N], unsigned at)
{
  float left[N / 2];

#pragma unroll
  for (int i = 0; i < N / 2; i++)
    left[i] = at & N / 2 ? x[i + N / 2] : x[i];
#pragma unroll
  for (unsigned half = N / 4; half > 0; half /= 2) {
#pragma unroll
    for (unsigned i = 0; i < half; i++)
      left[i] = at & half ? left[i + half] : left[i];
  }
  return left[0];
}

/* Append the items of a lane's sums whose bits are set in `bits`, highest bit first, each to its row's list. The whole
 * warp calls this. */
static __device__ void append_passed(const struct mol_pairs_input &in, const struct work &work, unsigned i,
                                     unsigned bits, const float (&sums)[SUMS], const float (&starts)[SUMS / 2],
                                     const struct passed_items &passed, const struct device_lists &lists)
{
  while (bits) {
    unsigned at = (unsigned)__clz((int)bits) - 16, item = STEP_ITEMS * i + warp_lane() / 4 + at % 4 / 2 * 8;
    uint32_t row = work.first_row + 8 * (at / 4) + 2 * (warp_lane() % 4) + at % 2;
    if (row < in.rows.n && is_present(work.tile, item) && is_admitted(in.rows.admitted, row, work.first_slot + item))
      add_passed(passed, lists, work.first_list + row, work.first_slot + item,
                 pick(sums, at) - pick(starts, at / 4 * 2 + at % 2));
    bits &= ~(0x8000u >> at);
  }
  __syncwarp();
  uint32_t n = *passed.n;
  __syncwarp(); /* all lanes have read it before one of them goes on to add */
  if (n >= PASSED_MAX / 2)
    flush_passed(passed, lists);
}

/* The bits of sums that are not negative, the first one highest. */
static __device__ __forceinline__ unsigned passed_bits(const float (&sums)[SUMS])
{
  unsigned high = 0, low = 0; /* two chains instead of one: they do not wait for each other */

#pragma unroll
  for (int i = 0; i < SUMS / 2; i++) {
    high = high << 1 | __float_as_uint(sums[i]) >> 31;
    low = low << 1 | __float_as_uint(sums[SUMS / 2 + i]) >> 31;
  }
  return ~(high << SUMS / 2 | low) & 0xffffu;
}

/* Compute the sums of 16 items and the warp's rows. Returns the AND of their bits. */
template <int GROUPS>
static __device__ __forceinline__ unsigned multiply_all(const uint32_t (&items)[GROUPS * GROUP_STEPS][4],
                                                        const struct row_part<GROUPS> &part,
                                                        const float (&start)[2 * ROW_TILES], float (&sums)[SUMS])
{
  unsigned all = ~0u;

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    const float both[4] = { start[2 * j], start[2 * j + 1], start[2 * j], start[2 * j + 1] };
    float four[4];
    multiply<GROUPS>(items, part, j, both, four);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      sums[4 * j + k] = four[k];
      all &= __float_as_uint(four[k]);
    }
  }
  return all;
}

template <int GROUPS>
static __device__ void append_items(const struct mol_pairs_input &in, const half_bits *buffer, const struct work &work,
                                    const struct row_part<GROUPS> &part, const float *starts,
                                    const struct passed_items &passed, const struct device_lists &lists)
{
  unsigned lane_place = ::lane_place<GROUPS>();
  float start[2 * ROW_TILES];

  if (!(work.tile.residual < INFINITY)) {
    float sums[SUMS];
#pragma unroll
    for (int j = 0; j < SUMS; j++)
      sums[j] = start[j / 2] = NAN;
#pragma unroll 1
    for (unsigned i = 0; i < TILE / STEP_ITEMS; i++)
      append_passed(in, work, i, 0xffffu, sums, start, passed, lists);
    return;
  }
#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    float2 two = *reinterpret_cast<const float2 *>(starts + 8 * j + 2 * (warp_lane() % 4));
    start[2 * j] = fmaf(part.norm[2 * j], work.tile.residual, two.x);
    start[2 * j + 1] = fmaf(part.norm[2 * j + 1], work.tile.residual, two.y);
  }
#pragma unroll 1
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i += AT_A_TIME) {
    float sums[AT_A_TIME][SUMS];
    unsigned below[AT_A_TIME]; /* the AND of all sums' bits: its sign bit is set if no item passes */
#pragma unroll
    for (int n = 0; n < AT_A_TIME; n++) {
      uint32_t items[GROUPS * GROUP_STEPS][4];
      load_items<GROUPS>(buffer, i + n, lane_place, items);
      below[n] = multiply_all<GROUPS>(items, part, start, sums[n]);
    }
#pragma unroll
    for (int n = 0; n < AT_A_TIME; n++) {
      if (__any_sync(WARP_ALL, !(below[n] >> 31)))
        append_passed(in, work, i + n, passed_bits(sums[n]), sums[n], start, passed, lists);
    }
  }
}

static __host__ __device__ __forceinline__ unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* A block's current step: up to TOGETHER components, from `component` on, of ITEM_WARPS tiles from first_tile on. */
struct cursor {
  uint32_t first_tile, component;
};

/* The sizes of a scan. */
template <int GROUPS, int ROW_WARPS> struct scan_sizes {
  enum {
    ITEM_WARPS = WARPS / ROW_WARPS,
    BLOCK_ROWS = ROW_WARPS * ROWS,
    BUFFER = TILE * GROUPS * GROUP,             /* numbers of a component of a tile */
    TOGETHER = GROUPS > 1 ? 1 : 8 / ITEM_WARPS, /* stages of 32 KiB at most, and what registers allow */
    STAGE = TOGETHER * ITEM_WARPS * BUFFER,
    READS_AHEAD = GROUPS != 2 /* where registers allow, what is read of a tile is on its way during the one before */
  };
};

/* Shared memory holds the ring, then starts and the warps' buffers. */
template <int GROUPS, int ROW_WARPS> static size_t block_bytes(size_t n_components)
{
  typedef scan_sizes<GROUPS, ROW_WARPS> S;

  return STAGES * S::STAGE * sizeof(half_bits) + n_components * S::BLOCK_ROWS * sizeof(float) + WARPS * PASSED_BYTES;
}

template <class S>
static __device__ __forceinline__ void advance(struct cursor &at, uint32_t n_components, uint32_t n_tiles)
{
  at.component += S::TOGETHER;
  if (at.component >= n_components) {
    at.component = 0;
    at.first_tile += n_tiles;
  }
}

/* The first number of the items that a step has of tile i. */
static __device__ __forceinline__ const half_bits *numbers_of(const struct mol_pairs_input &in,
                                                              const struct scan_range &range, const struct cursor &at,
                                                              unsigned i)
{
  return in.halves.components + (size_t)(at.first_tile + i) * range.stride * TILE * range.item_halves +
         (in.first_component + at.component) * in.component_dim;
}

/* Start to prefetch a step's items. Does nothing past the last tile. stage: [TOGETHER][ITEM_WARPS][BUFFER] */
template <int GROUPS, class S>
static __device__ __forceinline__ void load_step(const struct mol_pairs_input &in, const struct scan_range &range,
                                                 const struct cursor &at, half_bits *stage)
{
  uint32_t n = least((uint32_t)in.n_components - at.component, S::TOGETHER), dim = (uint32_t)in.component_dim;
  uint32_t n_tiles = at.first_tile < range.n_tiles ? least(range.n_tiles - at.first_tile, S::ITEM_WARPS) : 0;
  uint32_t stride = (uint32_t)range.item_halves;

  if (in.component_dim % PIECE == 0) {
    tile_copier<GROUPS, THREADS> copier = copier_of<GROUPS, THREADS>(in, stride);
#pragma unroll 1
    for (unsigned i = 0; i < n_tiles; i++) {
      const half_bits *from = numbers_of(in, range, at, i);
#pragma unroll
      for (unsigned c = 0; c < S::TOGETHER; c++) {
        if (c < n)
          load_pieces<GROUPS>(copier, from + c * dim, stride, stage + (c * S::ITEM_WARPS + i) * S::BUFFER);
      }
    }
  } else {
#pragma unroll 1
    for (unsigned i = 0; i < n_tiles * n; i++)
      load_numbers<GROUPS, THREADS>(dim, numbers_of(in, range, at, i / n) + i % n * dim, stride,
                                    stage + (i % n * S::ITEM_WARPS + i / n) * S::BUFFER);
  }
  copy_async_commit();
}

/* Fill the ring with zeros, and load the block's starts and the warp's rows. */
template <int GROUPS, class S, bool IS_MAXIMA>
static __device__ __forceinline__ void begin_block(const struct mol_pairs_input &in, const float *floors,
                                                   uint32_t first_row, half_bits *ring, float *starts,
                                                   struct row_part<GROUPS> &part)
{
  for (unsigned i = threadIdx.x * PIECE; i < STAGES * S::STAGE; i += THREADS * PIECE)
    *reinterpret_cast<uint4 *>(ring + i) = uint4{ 0, 0, 0, 0 };
  if (!IS_MAXIMA)
    load_starts(in, floors, blockIdx.y * S::BLOCK_ROWS, S::BLOCK_ROWS, 2 * slack_of(GROUPS), starts);
  load_rows<GROUPS>(in.rows, first_row, part);
  __syncthreads();
}

/* Begin the warp's next tile. `reads` is what was read of it if READS_AHEAD, and then what was read of the one after.
 */
template <class S>
static __device__ __forceinline__ void begin_tile(const struct mol_pairs_input &in, const struct scan_range &range,
                                                  uint32_t tile, uint32_t n_together, struct work &work,
                                                  struct tile_reads &reads)
{
  work.tile_index = tile;
  work.first_slot = work.tile_index * range.stride * TILE;
  if (!S::READS_AHEAD)
    reads = read_tile(in, work.first_slot, range.n_slots);
  work.tile = tile_of(reads);
  if (S::READS_AHEAD)
    reads = read_tile(in, (size_t)(work.tile_index + n_together) * range.stride * TILE, range.n_slots);
}

/* May one of the warp's rows admit an item of its tile? */
static __device__ __forceinline__ bool has_admitted(const struct mol_pairs_input &in, const struct work &work,
                                                    uint32_t n_rows)
{
  return is_tile_admitted(in.rows.admitted, work.first_row, least(ROWS, n_rows - work.first_row), work.first_slot);
}

/* Multiply a component of the warp's tile by the warp's rows. starts: of these rows */
template <int GROUPS, bool IS_MAXIMA>
static __device__ __forceinline__ void multiply_component(const struct mol_pairs_input &in,
                                                          const struct scan_range &range, const half_bits *buffer,
                                                          const struct work &work, const struct row_part<GROUPS> &part,
                                                          const float *starts, const struct passed_items &passed,
                                                          float *maxima, const struct device_lists &lists)
{
  if (IS_MAXIMA)
    find_maxima<GROUPS>(buffer, work, in.rows, part, maxima, range.n_tiles);
  else
    append_items<GROUPS>(in, buffer, work, part, starts, passed, lists);
}

/* Scan every tile of the range for the block's rows. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int GROUPS, int ROW_WARPS, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, GROUPS <= 2 ? 2 : 1)
    scan(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
         struct device_lists lists)
{
  begin_kernel();
  typedef scan_sizes<GROUPS, ROW_WARPS> S;
  half_bits *ring = shared_memory<half_bits>(); /* [STAGES][S::STAGE] */
  float *starts = reinterpret_cast<float *>(ring + STAGES * S::STAGE);
  uint32_t warp = threadIdx.x / WARP_LANES, mine = warp % S::ITEM_WARPS, n_rows = (uint32_t)in.rows.n;
  uint32_t *buffers = reinterpret_cast<uint32_t *>(starts + in.n_components * S::BLOCK_ROWS);
  uint32_t n_components = (uint32_t)in.n_components, n_together = gridDim.x * S::ITEM_WARPS;
  uint32_t row_of_block = warp / S::ITEM_WARPS * ROWS;
  struct passed_items passed = open_passed(buffers + warp * (PASSED_BYTES / 4));
  struct cursor at = { blockIdx.x * S::ITEM_WARPS, 0 };
  struct row_part<GROUPS> part;
  struct work work;

  work.first_row = blockIdx.y * S::BLOCK_ROWS + row_of_block;
  begin_block<GROUPS, S, IS_MAXIMA>(in, floors, work.first_row, ring, starts, part);
  load_step<GROUPS, S>(in, range, at, ring);

  struct tile_reads reads = read_tile(in, (size_t)(at.first_tile + mine) * range.stride * TILE, range.n_slots);
  for (uint32_t stage = 0; at.first_tile < range.n_tiles; stage = 1 - stage) {
    copy_async_wait<0>();
    __syncthreads();
    struct cursor next = at;
    advance<S>(next, n_components, n_together);
    load_step<GROUPS, S>(in, range, next, ring + (1 - stage) * S::STAGE);
    if (at.component == 0)
      begin_tile<S>(in, range, at.first_tile + mine, n_together, work, reads);
    if (work.tile_index < range.n_tiles && work.first_row < n_rows && (IS_MAXIMA || has_admitted(in, work, n_rows))) {
#pragma unroll 1
      for (uint32_t c = 0; c < S::TOGETHER && at.component + c < n_components; c++) {
        work.first_list = (at.component + c) * n_rows;
        multiply_component<GROUPS, IS_MAXIMA>(
            in, range, ring + stage * S::STAGE + (c * S::ITEM_WARPS + mine) * S::BUFFER, work, part,
            starts + (at.component + c) * S::BLOCK_ROWS + row_of_block, passed, maxima, lists);
      }
    }
    advance<S>(at, n_components, n_together);
  }
  if (!IS_MAXIMA)
    flush_passed(passed, lists);
}

/* The same for long components: the exact dot products are both bounds. One warp per tile and list. */
template <bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS)
    scan_long(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
              struct device_lists lists)
{
  begin_kernel();
  size_t n_lists = in.n_components * in.rows.n, dim = in.component_dim;
  size_t n = n_lists * range.n_tiles;

  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; i < n; i += (size_t)gridDim.x * WARPS) {
    size_t tile = i / n_lists, list = i % n_lists, first = tile * TILE * range.stride;
    size_t m = in.first_component + list / in.rows.n;
    const float *f = in.rows.vectors + list % in.rows.n * dim;
    float best = -INFINITY;
    for (size_t slot = first + warp_lane(); slot < first + TILE; slot += WARP_LANES) {
      bool is_in = slot < range.n_slots && in.items.present[slot] &&
                   is_admitted(in.rows.admitted, list % in.rows.n, (uint32_t)slot);
      float sum = 0.0f;
      if (is_in) {
        const float *g = reinterpret_cast<const float *>(in.items.bytes + slot * in.items.row_bytes) + m * dim;
        for (size_t k = 0; k < dim; k++)
          sum = fmaf(f[k], g[k], sum);
      }
      if (IS_MAXIMA)
        best = is_in ? fmaxf(best, sum) : best;
      else
        append_warp(lists, list, is_in && !(sum < floors[list]), (uint32_t)slot, sum);
    }
    if (IS_MAXIMA) {
      best = warp_max(best);
      if (warp_lane() == 0)
        maxima[list * range.n_tiles + tile] = best;
    }
  }
}

template <int GROUPS, int ROW_WARPS, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  unsigned n_row_blocks = blocks_for(in->rows.n, ROW_WARPS * ROWS),
           n_tile_blocks = blocks_for(range.n_tiles, WARPS / ROW_WARPS);
  unsigned most = 2 * in->n_blocks / n_row_blocks;

  return launch(stream, dim3(least(n_tile_blocks, most ? most : 1), n_row_blocks), THREADS,
                block_bytes<GROUPS, ROW_WARPS>(in->n_components), scan<GROUPS, ROW_WARPS, IS_MAXIMA>, *in, range,
                floors, maxima, *lists);
}

template <int GROUPS, bool IS_MAXIMA>
static err_code_t run_rows(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  const int few = GROUPS <= 2 ? 2 : 4; /* keeps the ring within 64 KiB */

  if (in->rows.n <= (size_t)few * ROWS)
    return run_with<GROUPS, few, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  return run_with<GROUPS, 8, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
}

template <bool IS_MAXIMA>
static err_code_t run_components(struct device_stream *stream, const struct mol_pairs_input *in,
                                 struct scan_range range, const float *floors, float *maxima,
                                 const struct device_lists *lists)
{
  if (in->component_dim <= GROUP)
    return run_rows<1, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (in->component_dim <= 2 * GROUP)
    return run_rows<2, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  if (in->component_dim <= MOL_PAIRS_DIM_MAX)
    return run_rows<4, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  unsigned n_blocks = blocks_for(in->rows.n * in->n_components * range.n_tiles, WARPS);
  return launch(stream, least(n_blocks, 8 * in->n_blocks), THREADS, 0, scan_long<IS_MAXIMA>, *in, range, floors, maxima,
                *lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  struct mol_pairs_input some = *in;
  struct device_lists their = *lists;

  if (range.n_tiles == 0 || in->rows.n == 0)
    return ERR_OK;
  for (size_t first = 0; first < in->n_components; first += COMPONENTS_MAX) {
    size_t n_left = in->n_components - first, list = first * in->rows.n;
    some.first_component = in->first_component + first;
    some.n_components = n_left < COMPONENTS_MAX ? n_left : (size_t)COMPONENTS_MAX;
    if (!IS_MAXIMA) {
      their.n = lists->n + list;
      their.slots = lists->slots + list * lists->capacity;
      their.scores = lists->scores + list * lists->capacity;
    }
    TRY(run_components<IS_MAXIMA>(stream, &some, range, IS_MAXIMA ? NULL : floors + list,
                                  IS_MAXIMA ? maxima + list * range.n_tiles : NULL, &their));
  }
  return ERR_OK;
}

static size_t halves_of(const struct mol_pairs_input *in)
{
  return mol_halves_stride(in->n_item_components * in->component_dim, 8);
}

err_code_t mol_pairs_maxima(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                            size_t stride, size_t n_tiles, float *maxima)
{
  struct scan_range range = { (uint32_t)n_slots, (uint32_t)stride, (uint32_t)n_tiles, halves_of(input) };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t mol_pairs_append(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                            const float *floors, const struct device_lists *lists)
{
  struct scan_range range = { (uint32_t)n_slots, 1, (uint32_t)((n_slots + TILE - 1) / TILE), halves_of(input) };

  return run<false>(stream, input, range, floors, NULL, lists);
}
