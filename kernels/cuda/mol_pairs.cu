/* SPDX-License-Identifier: Apache-2.0 */
/* The scans of mol_pairs.h on tensor cores.
 *
 * A block multiplies tiles of 64 items by its queries' rows, one item component at a time. Each warp keeps ROW_TILES
 * times 8 rows in registers as the tensor core's second operand, and multiplies them by 16 items of a tile at a time.
 * The eight warps are ITEM_WARPS groups, which have a tile each, of ROW_WARPS warps, which share the rows. A group
 * prefetches items into a ring of buffers in shared memory while it computes (mol_pairs_walk.cuh).
 */
#include "kernels/cuda/mol_pairs_append.cuh"
#include "kernels/cuda/mol_pairs_maxima.cuh"
#include "kernels/cuda/mol_pairs_walk.cuh"

enum {
  STAGES = 2,
  COMPONENTS_MAX = 8 /* of one launch: their starts, or maxima, lie in shared memory */
};

/* Shared memory holds the groups' rings and then, for each component, a block's starts or a word for each lane; and
 * notes. */
template <int GROUPS, int ROW_TILES, int ROW_WARPS, bool IS_MAXIMA>
static size_t block_bytes(size_t n_components, size_t n_notes)
{
  typedef scan_sizes<GROUPS, ROW_TILES, ROW_WARPS> S;
  size_t each = IS_MAXIMA ? (size_t)THREADS : (size_t)S::BLOCK_ROWS;

  return S::ITEM_WARPS * STAGES * S::STAGE * sizeof(half_bits) + (n_components + 1) * each * sizeof(uint32_t) +
         WARPS * n_notes * sizeof(sums_note<ROW_TILES>);
}

/* Notes of a warp that there is room for. */
template <int GROUPS, int ROW_TILES, int ROW_WARPS> static size_t most_notes(size_t n_components)
{
  size_t others = block_bytes<GROUPS, ROW_TILES, ROW_WARPS, false>(n_components, 0);
  size_t all = device_shared_bytes(SIZE_MAX);
  size_t room = all < others ? 0 : (all - others) / (WARPS * sizeof(sums_note<ROW_TILES>));

  return room > NOTES_MAX ? (size_t)NOTES_MAX : room > WARP_LANES ? room : (size_t)WARP_LANES;
}

/* Fill the rings with zeros. */
template <class S> static __device__ __forceinline__ void clear_rings(half_bits *rings)
{
  for (unsigned i = threadIdx.x * PIECE; i < S::ITEM_WARPS * STAGES * S::STAGE; i += THREADS * PIECE)
    *reinterpret_cast<uint4 *>(rings + i) = uint4{ 0, 0, 0, 0 };
}

/* Begin the warp's next tile. With READS_AHEAD, `reads` has what was read of it, and gets what is read of the one after.
 */
template <class S>
static __device__ __forceinline__ void begin_tile(const struct mol_pairs_input &in, const struct scan_range &range,
                                                  const struct cursor &at, struct work &work, struct tile_reads &reads)
{
  work.set = at.set;
  work.tile_index = at.tile;
  work.first_slot = (uint32_t)first_slot_of(at, range);
  if (!S::READS_AHEAD)
    reads = read_tile(in, work.first_slot, range.n_slots);
  work.tile = tile_of(reads, largest_residual(in.component_dim));
  if (S::READS_AHEAD) {
    struct cursor next = at;
    next_tile<S>(next, range);
    reads = read_tile(in, first_slot_of(next, range), range.n_slots);
  }
}

/* May one of the warp's rows admit an item of its tile? */
template <class S>
static __device__ __forceinline__ bool has_admitted(const struct mol_pairs_input &in, const struct work &work)
{
  uint32_t end = least(work.first_row + S::WARP_ROWS, (uint32_t)in.rows.n);
  bool is_any = false;

  for (uint32_t row = work.first_row; row < end && !is_any; row += WARP_LANES)
    is_any = is_tile_admitted(in.rows.admitted, row, least(WARP_LANES, end - row), work.first_slot);
  return is_any;
}

/* Scan every tile of the range for the block's rows. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int GROUPS, int ROW_TILES, int ROW_WARPS, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, GROUPS <= 2 ? 2 : 1)
    scan(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
         struct device_lists lists, uint32_t n_notes)
{
  begin_kernel();
  typedef scan_sizes<GROUPS, ROW_TILES, ROW_WARPS> S;
  half_bits *rings = shared_memory<half_bits>(); /* [ITEM_WARPS][STAGES][STAGE] */
  uint32_t *of_components = reinterpret_cast<uint32_t *>(rings + S::ITEM_WARPS * STAGES * S::STAGE);
  uint32_t warp = threadIdx.x / WARP_LANES, group = warp / ROW_WARPS, n_components = (uint32_t)in.n_components;
  half_bits *ring = rings + group * STAGES * S::STAGE;
  struct row_starts starts = { of_components, blockIdx.y * S::BLOCK_ROWS, S::BLOCK_ROWS };
  uint32_t *behind = of_components + (n_components + 1) * S::BLOCK_ROWS;
  warp_notes<ROW_TILES> notes = { reinterpret_cast<sums_note<ROW_TILES> *>(behind) + warp * n_notes, n_notes, 0 };
  struct cursor at = { blockIdx.x * S::ITEM_WARPS + group, blockIdx.x * S::ITEM_WARPS + group, 0 };
  row_part<GROUPS, ROW_TILES> part;
  struct work work;

  work.first_row = starts.first_row + warp % ROW_WARPS * S::WARP_ROWS;
  clear_rings<S>(rings);
  if (!IS_MAXIMA)
    make_starts<ROW_TILES>(in, floors, slack_of(GROUPS), starts, of_components);
  load_rows(in.rows, work.first_row, part);
  __syncthreads();
  load_step<S>(in, range, at, ring);

  const unsigned my_place = in_register(lane_place<GROUPS>());
  const uint32_t *my_starts =
      of_components + start_place<ROW_TILES>(work.first_row - starts.first_row + 2 * (warp_lane() % 4));
  struct tile_reads reads = read_tile(in, first_slot_of(at, range), range.n_slots);
  for (uint32_t stage = 0; at.set < range.n_sets; stage = 1 - stage) {
    copy_async_wait<0>();
    group_sync<S::GROUP_THREADS>();
    struct cursor next = at;
    advance<S>(next, range, n_components);
    load_step<S>(in, range, next, ring + (1 - stage) * S::STAGE);
    if (at.component == 0)
      begin_tile<S>(in, range, at, work, reads);
    if (work.first_row < in.rows.n && (IS_MAXIMA || has_admitted<S>(in, work))) {
      const half_bits *buffer = ring + stage * S::STAGE;
      uint32_t end = least(at.component + S::TOGETHER, n_components);
#pragma unroll 1
      for (uint32_t c = at.component; c < end; c++) {
        lane_rows<GROUPS> my_rows = lane_rows_of<GROUPS>(buffer, my_place);
        if (IS_MAXIMA)
          raise_maxima<ROW_TILES>(range, work, in.rows, c, tile_maxima(my_rows, work, in.rows, part),
                                  of_components + c * THREADS + threadIdx.x, maxima);
        else
          append_items(in, my_rows, work, c, part,
                       my_starts + (work.tile.is_known ? c : n_components) * S::BLOCK_ROWS, starts, notes, lists);
        buffer += S::APART;
      }
    }
    at = next;
  }
  if (!IS_MAXIMA)
    append_notes(in, starts, notes, lists);
}

/* The same for long components: the exact dot products are both bounds. One warp per set and list. */
template <bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS)
    scan_long(struct mol_pairs_input in, struct scan_range range, const float *floors, float *maxima,
              struct device_lists lists)
{
  begin_kernel();
  size_t n_lists = in.n_components * in.rows.n, dim = in.component_dim;
  size_t n = n_lists * range.n_sets;

  for (size_t i = (size_t)blockIdx.x * WARPS + threadIdx.x / WARP_LANES; i < n; i += (size_t)gridDim.x * WARPS) {
    size_t set = i / n_lists, list = i % n_lists, m = in.first_component + list / in.rows.n;
    const float *f = in.rows.vectors + list % in.rows.n * dim;
    float best = -INFINITY;
    for (size_t tile = set; tile < range.n_tiles; tile += range.n_sets) {
      size_t first = tile * TILE * range.stride;
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
    }
    if (IS_MAXIMA) {
      best = warp_max(best);
      if (warp_lane() == 0)
        maxima[list * range.n_sets + set] = best;
    }
  }
}

template <int GROUPS, int ROW_TILES, int ROW_WARPS, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct mol_pairs_input *in, struct scan_range range,
                           const float *floors, float *maxima, const struct device_lists *lists)
{
  typedef scan_sizes<GROUPS, ROW_TILES, ROW_WARPS> S;
  unsigned n_row_blocks = blocks_for(in->rows.n, S::BLOCK_ROWS), n_set_blocks = blocks_for(range.n_sets, S::ITEM_WARPS);
  unsigned most = 2 * in->n_blocks / n_row_blocks;
  size_t n_notes = IS_MAXIMA ? 0 : most_notes<GROUPS, ROW_TILES, ROW_WARPS>(in->n_components);

  return launch(stream, dim3(least(n_set_blocks, most ? most : 1), n_row_blocks), THREADS,
                block_bytes<GROUPS, ROW_TILES, ROW_WARPS, IS_MAXIMA>(in->n_components, n_notes),
                scan<GROUPS, ROW_TILES, ROW_WARPS, IS_MAXIMA>, *in, range, floors, maxima, *lists, (uint32_t)n_notes);
}

/* Can few of a block's warps hold the rows, so that the others take other tiles? */
static bool are_few(size_t n_rows, size_t dim)
{
  return n_rows <= (dim <= 2 * GROUP ? 64 : 128);
}

template <bool IS_MAXIMA>
static err_code_t run_components(struct device_stream *stream, const struct mol_pairs_input *in,
                                 struct scan_range range, const float *floors, float *maxima,
                                 const struct device_lists *lists)
{
  bool is_few = are_few(in->rows.n, in->component_dim);

  switch (in->component_dim > MOL_PAIRS_DIM_MAX ? 0 : groups_of(in->component_dim)) {
  case 1:
    return is_few ? run_with<1, 4, 2, IS_MAXIMA>(stream, in, range, floors, maxima, lists)
                  : run_with<1, 8, 4, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  case 2:
    return is_few ? run_with<2, 4, 2, IS_MAXIMA>(stream, in, range, floors, maxima, lists)
                  : run_with<2, 4, 8, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  case 4:
    return is_few ? run_with<4, 4, 4, IS_MAXIMA>(stream, in, range, floors, maxima, lists)
                  : run_with<4, 4, 8, IS_MAXIMA>(stream, in, range, floors, maxima, lists);
  default:
    unsigned n_blocks = blocks_for(in->rows.n * in->n_components * range.n_sets, WARPS);
    return launch(stream, least(n_blocks, 8 * in->n_blocks), THREADS, 0, scan_long<IS_MAXIMA>, *in, range, floors,
                  maxima, *lists);
  }
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
                                  IS_MAXIMA ? maxima + list * range.n_sets : NULL, &their));
  }
  return ERR_OK;
}

static uint32_t halves_of(const struct mol_pairs_input *in)
{
  return (uint32_t)mol_halves_stride(in->n_item_components * in->component_dim, 8);
}

size_t mol_pairs_sets_at_a_time(size_t n_rows, size_t dim, unsigned n_blocks)
{
  bool is_few = are_few(n_rows, dim);
  size_t n_groups; /* of a block */

  if (dim <= GROUP)
    n_groups = is_few ? (size_t)scan_sizes<1, 4, 2>::ITEM_WARPS : (size_t)scan_sizes<1, 8, 4>::ITEM_WARPS;
  else if (dim <= 2 * GROUP)
    n_groups = is_few ? (size_t)scan_sizes<2, 4, 2>::ITEM_WARPS : (size_t)scan_sizes<2, 4, 8>::ITEM_WARPS;
  else
    n_groups = is_few ? (size_t)scan_sizes<4, 4, 4>::ITEM_WARPS : (size_t)scan_sizes<4, 4, 8>::ITEM_WARPS;
  return 2 * n_blocks * n_groups;
}

err_code_t mol_pairs_maxima(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                            size_t stride, size_t n_tiles, size_t n_sets, float *maxima)
{
  struct scan_range range = { (uint32_t)n_slots, (uint32_t)stride, (uint32_t)n_tiles, (uint32_t)n_sets,
                              halves_of(input) };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t mol_pairs_append(struct device_stream *stream, const struct mol_pairs_input *input, size_t n_slots,
                            const float *floors, const struct device_lists *lists)
{
  uint32_t n_tiles = (uint32_t)((n_slots + TILE - 1) / TILE);
  struct scan_range range = { (uint32_t)n_slots, 1, n_tiles, n_tiles, halves_of(input) };

  return run<false>(stream, input, range, floors, NULL, lists);
}
