/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of mol_pairs.h on tensor cores.
 *
 * A block multiplies tiles of 64 items by its queries' rows, one item component at a time. Each warp keeps 32 rows in
 * registers as the tensor core's second operand, and multiplies them by 16 items of a tile at a time. The eight warps
 * form a grid of ROW_WARPS groups of rows by ITEM_WARPS tiles. The block prefetches items into a ring of buffers in
 * shared memory while it computes.
 */
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_pairs_tile.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP_LANES, STAGES = 3 };

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

/* Write the largest lower bound of each row. */
template <int GROUPS>
static __device__ void find_maxima(const half_bits *buffer, const struct work &work, uint32_t n_rows,
                                   const struct row_part<GROUPS> &part, float *maxima, uint32_t n_tiles)
{
  unsigned g = warp_lane() / 4, t = warp_lane() % 4;
  float best[2 * ROW_TILES];

#pragma unroll
  for (int j = 0; j < 2 * ROW_TILES; j++)
    best[j] = -INFINITY;
#pragma unroll 1
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    uint4 low[GROUPS], high[GROUPS];
    float of_low = is_present(work.tile, STEP_ITEMS * i + g) ? 0.0f : -INFINITY;
    float of_high = is_present(work.tile, STEP_ITEMS * i + g + 8) ? 0.0f : -INFINITY;
    float start[4] = { of_low, of_low, of_high, of_high };
    load_items<GROUPS>(buffer, i, low, high);
#pragma unroll
    for (int j = 0; j < ROW_TILES; j++) {
      float sums[4];
      multiply<GROUPS>(low, high, part, j, start, sums);
      best[2 * j] = fmaxf(best[2 * j], fmaxf(sums[0], sums[2]));
      best[2 * j + 1] = fmaxf(best[2 * j + 1], fmaxf(sums[1], sums[3]));
    }
  }
#pragma unroll
  for (int j = 0; j < 2 * ROW_TILES; j++) {
    uint32_t row = work.first_row + 8 * (j / 2) + 2 * t + j % 2;
    for (int step = 4; step < WARP_LANES; step *= 2)
      best[j] = fmaxf(best[j], __shfl_xor_sync(WARP_ALL, best[j], step));
    if (g == 0 && row < n_rows) {
      float margin = fmaf(part.norm[j], work.tile.residual, part.base[j]);
      float bound = work.tile.residual < INFINITY ? best[j] - margin : -INFINITY;
      maxima[(size_t)(work.first_list + row) * n_tiles + work.tile_index] = bound;
    }
  }
}

/* Load the values that the sums start from. The sum of an item that may reach the floor ends above 0. A row without a
 * list starts from -inf. */
template <int GROUPS>
static __device__ __forceinline__ void load_starts(const struct work &work, uint32_t n_rows,
                                                   const struct row_part<GROUPS> &part, const float *floors,
                                                   float (&start)[2 * ROW_TILES])
{
  float of_floor = 2 * slack_of(GROUPS);

#pragma unroll
  for (int j = 0; j < 2 * ROW_TILES; j++) {
    uint32_t row = work.first_row + 8 * (j / 2) + 2 * (warp_lane() % 4) + j % 2;
    start[j] = -INFINITY;
    if (row < n_rows) {
      float floor = floors[work.first_list + row];
      start[j] = fmaf(part.norm[j], work.tile.residual, part.base[j]) + fmaf(of_floor, fabsf(floor), -floor);
    }
  }
}

/* Append the items of a lane's 16 sums whose bits are set in `passed`, highest bit first, each to its row's list. */
static __device__ void append_passed(const struct mol_pairs_input &in, const struct work &work, unsigned i,
                                     unsigned passed, const struct device_lists &lists)
{
  while (passed) {
    unsigned at = (unsigned)__clz((int)passed) - 16, item = STEP_ITEMS * i + warp_lane() / 4 + at % 4 / 2 * 8;
    uint32_t row = work.first_row + 8 * (at / 4) + 2 * (warp_lane() % 4) + at % 2;
    passed &= ~(0x8000u >> at);
    if (row < in.rows.n && is_present(work.tile, item))
      append(lists, work.first_list + row, work.first_slot + item, 0.0f);
  }
}

template <int GROUPS>
static __device__ void append_items(const struct mol_pairs_input &in, const half_bits *buffer, const struct work &work,
                                    const struct row_part<GROUPS> &part, const float *floors,
                                    const struct device_lists &lists)
{
  bool is_open = !(work.tile.residual < INFINITY);
  float from[2 * ROW_TILES];

  load_starts<GROUPS>(work, in.rows.n, part, floors, from);
#pragma unroll 1
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    uint4 low[GROUPS], high[GROUPS];
    float sums[ROW_TILES][4];
    unsigned below = 0xffffffffu; /* the AND of all sums' bits: its sign bit is set if no item passes */
    load_items<GROUPS>(buffer, i, low, high);
#pragma unroll
    for (int j = 0; j < ROW_TILES; j++) {
      float start[4] = { from[2 * j], from[2 * j + 1], from[2 * j], from[2 * j + 1] };
      multiply<GROUPS>(low, high, part, j, start, sums[j]);
      below &= __float_as_uint(sums[j][0]) & __float_as_uint(sums[j][1]);
      below &= __float_as_uint(sums[j][2]) & __float_as_uint(sums[j][3]);
    }
    if (__any_sync(WARP_ALL, is_open || !(below >> 31))) {
      unsigned signs = 0;
#pragma unroll
      for (int j = 0; j < 4 * ROW_TILES; j++)
        signs = signs << 1 | __float_as_uint(sums[j / 4][j % 4]) >> 31;
      append_passed(in, work, i, is_open ? 0xffffu : ~signs & 0xffffu, lists);
      __syncwarp();
    }
  }
}

/* A block's current step: one component of ITEM_WARPS tiles from first_tile on. */
struct cursor {
  uint32_t first_tile, component;
};

static __device__ __forceinline__ void advance(struct cursor &at, uint32_t n_components, uint32_t n_tiles)
{
  if (++at.component == n_components) {
    at.component = 0;
    at.first_tile += n_tiles;
  }
}

/* Start to prefetch a step's items. Does nothing past the last tile. buffers [ITEM_WARPS] */
template <int GROUPS, int ITEM_WARPS>
static __device__ void load_step(const struct mol_pairs_input &in, const struct scan_range &range,
                                 const struct cursor &at, half_bits *buffers)
{
  for (unsigned i = 0; i < ITEM_WARPS && at.first_tile + i < range.n_tiles; i++)
    load_tile<GROUPS>(in, (size_t)(at.first_tile + i) * range.stride * TILE, in.first_component + at.component,
                      range.item_halves, buffers + i * (TILE * GROUPS * GROUP));
  copy_async_commit();
}

/* Scan every tile of the range for the block's rows. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int GROUPS, int ROW_WARPS, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, GROUPS <= 2 ? 2 : 1)
    scan(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
         struct device_lists lists)
{
  enum { ITEM_WARPS = WARPS / ROW_WARPS, BUFFER = TILE * GROUPS * GROUP, BUFFERS = ITEM_WARPS * BUFFER };
  half_bits *ring = shared_memory<half_bits>(); /* [STAGES][ITEM_WARPS][BUFFER] */
  uint32_t warp = threadIdx.x / WARP_LANES, mine = warp % ITEM_WARPS, n_rows = (uint32_t)in.rows.n;
  uint32_t n_components = (uint32_t)in.n_components, n_together = gridDim.x * ITEM_WARPS, loaded = STAGES - 1;
  struct cursor load = { blockIdx.x * ITEM_WARPS, 0 }, at = load;
  struct row_part<GROUPS> part;
  struct work work;

  work.first_row = (blockIdx.y * ROW_WARPS + warp / ITEM_WARPS) * ROWS;
  for (unsigned i = threadIdx.x * 8; i < STAGES * BUFFERS; i += THREADS * 8)
    *reinterpret_cast<uint4 *>(ring + i) = uint4{ 0, 0, 0, 0 };
  load_rows<GROUPS>(in.rows, work.first_row, part);
  __syncthreads();
  for (unsigned stage = 0; stage < STAGES - 1; stage++) {
    load_step<GROUPS, ITEM_WARPS>(in, range, load, ring + stage * BUFFERS);
    advance(load, n_components, n_together);
  }

  float2 residuals = load_residuals(in, (size_t)(at.first_tile + mine) * range.stride * TILE, range.n_slots);
  for (uint32_t stage = 0; at.first_tile < range.n_tiles; stage = stage + 1 == STAGES ? 0 : stage + 1) {
    copy_async_wait<STAGES - 2>();
    __syncthreads();
    load_step<GROUPS, ITEM_WARPS>(in, range, load, ring + loaded * BUFFERS);
    advance(load, n_components, n_together);
    loaded = stage;
    if (at.component == 0) {
      work.tile_index = at.first_tile + mine;
      work.first_slot = work.tile_index * range.stride * TILE;
      work.tile = tile_of(residuals);
      residuals = load_residuals(in, (size_t)(work.tile_index + n_together) * range.stride * TILE, range.n_slots);
    }
    work.first_list = at.component * n_rows;
    if (work.tile_index < range.n_tiles && work.first_row < n_rows) {
      const half_bits *buffer = ring + stage * BUFFERS + mine * BUFFER;
      if (IS_MAXIMA)
        find_maxima<GROUPS>(buffer, work, n_rows, part, maxima, range.n_tiles);
      else
        append_items<GROUPS>(in, buffer, work, part, floors, lists);
    }
    advance(at, n_components, n_together);
  }
}

/* The same for long components: the exact dot products are both bounds. One warp per tile and list. */
template <bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS)
    scan_long(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
              struct device_lists lists)
{
  size_t n_lists = in.n_components * in.rows.n, dim = in.component_dim;
  size_t n = n_lists * range.n_tiles;

  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; i < n; i += (size_t)gridDim.x * WARPS) {
    size_t tile = i / n_lists, list = i % n_lists, first = tile * TILE * range.stride;
    size_t m = in.first_component + list / in.rows.n;
    const float *f = in.rows.vectors + list % in.rows.n * dim;
    float best = -INFINITY;
    for (size_t slot = first + warp_lane(); slot < first + TILE; slot += WARP_LANES) {
      bool is_in = slot < range.n_slots && in.items.present[slot];
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

static unsigned least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

template <int GROUPS, int ROW_WARPS, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  unsigned n_row_blocks = blocks_for(in->rows.n, ROW_WARPS * ROWS),
           n_tile_blocks = blocks_for(range.n_tiles, WARPS / ROW_WARPS);
  unsigned most = 2 * in->n_blocks / n_row_blocks;
  size_t bytes = sizeof(half_bits) * STAGES * (WARPS / ROW_WARPS) * TILE * GROUPS * GROUP;

  return launch(stream, dim3(least(n_tile_blocks, most ? most : 1), n_row_blocks), THREADS, bytes,
                scan<GROUPS, ROW_WARPS, IS_MAXIMA>, *in, range, floors, maxima, *lists);
}

template <int GROUPS, bool IS_MAXIMA>
static err_code_t run_rows(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  const int few = GROUPS <= 2 ? 2 : 4; /* keeps the ring within 96 KiB */

  if (in->rows.n <= (size_t)few * ROWS)
    return run_with<GROUPS, few, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  return run_with<GROUPS, 8, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  if (range.n_tiles == 0 || in->rows.n == 0 || in->n_components == 0)
    return ERR_OK;
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
