/* SPDX-License-Identifier: Apache-2.0 */
/* What the append scan of mol_pairs.cu does with a component of a tile. Few of the sums pass, and several lanes of a
 * warp have one at a time only rarely. So a lane only notes all its sums of 16 items, and goes on. The warp looks at
 * what was noted when there is enough for all its lanes. */
#ifndef KERNELS_CUDA_MOL_PAIRS_APPEND_CUH
#define KERNELS_CUDA_MOL_PAIRS_APPEND_CUH

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_pairs_walk.cuh"

#define BELOW 0x80008000u /* the signs of two halves */
#define NANS  0x7e007e00u /* two halves */

enum {
  NOTES_MAX = 60 /* of a warp: room for one of each lane, and as many of the steps before */
};

/* A lane's sums of 16 items, one of which may pass. Word 2 j + i has those of rows row + 8 j and row + 8 j + 1, and of
 * item slot + 8 i. */
template <int ROW_TILES> struct alignas(16) sums_note {
  uint32_t sums[2 * ROW_TILES];
  uint32_t slot, row, component;
  uint32_t present; /* bits 0 and 8: are the two items there? */
};

/* A warp's notes, in shared memory. It looks at them when there may not be room for another one of each lane. */
template <int ROW_TILES> struct warp_notes {
  sums_note<ROW_TILES> *of; /* [most]; most is at least WARP_LANES */
  uint32_t most, n;    /* the same in all lanes */
};

/* What the sums start from, in shared memory: [n_components + 1][n_rows] words. A word has two rows, and each is there
 * twice, because a product's sums begin in two registers one after another. A lane's words of a component lie one after
 * another: those of a warp are [4][ROW_TILES][2]. After the last component come NaNs, for tiles of which nothing is
 * known: their sums are NaN, which passes. */
struct row_starts {
  const uint32_t *of;
  uint32_t first_row, n_rows; /* of the block */
};

/* What the sum of a row and an item starts from. It ends above 0 if the item may reach the floor. A row without a list
 * starts from -inf. */
static __device__ __forceinline__ float start_of(const struct mol_pairs_rows &rows, uint32_t row, const float *floors,
                                                 float of_floor)
{
  if (row >= rows.n)
    return -INFINITY;
  return rows.margins[row] + fmaf(of_floor, fabsf(floors[row]), -floors[row]);
}

/* Compute a block's starts. */
template <int ROW_TILES>
static __device__ void make_starts(const struct mol_pairs_input &in, const float *floors, float slack,
                                   const struct row_starts &starts, uint32_t *out)
{
  float of_floor = slack * (1 + 2 * slack);

  for (uint32_t i = threadIdx.x; i < starts.n_rows; i += THREADS)
    out[in.n_components * starts.n_rows + i] = NANS;
  for (uint32_t i = threadIdx.x; i < (uint32_t)in.n_components * starts.n_rows; i += THREADS) {
    uint32_t pair = i % starts.n_rows / 2, component = i / starts.n_rows;
    uint32_t warp = pair / (4 * ROW_TILES), t = pair / ROW_TILES % 4, j = pair % ROW_TILES;
    uint32_t row = starts.first_row + TILE_ROWS * (warp * ROW_TILES + j) + 2 * t;
    const float *of_component = floors + component * in.rows.n;
    out[i] = half_pair(start_of(in.rows, row, of_component, of_floor),
                       start_of(in.rows, row + 1, of_component, of_floor));
  }
}

/* The first word of a row and the one after, among a component's starts. */
template <int ROW_TILES> static __device__ __forceinline__ uint32_t start_place(uint32_t row)
{
  uint32_t tile = row / TILE_ROWS;

  return 2 * ((tile / ROW_TILES * 4 + row % TILE_ROWS / 2) * ROW_TILES + tile % ROW_TILES);
}

/* What passed of a note: bit 31 - i is the first row of word i, bit 15 - i the second one. */
template <int ROW_TILES> static __device__ __forceinline__ uint32_t passed_bits(const sums_note<ROW_TILES> &note)
{
  uint32_t bits = 0;

  static_assert(2 * ROW_TILES <= 16, "two bits each");
#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++)
    bits |= ((~note.sums[i] << 16 | ~note.sums[i] >> 16) & BELOW) >> i;
  return bits;
}

/* Append what passed of a note. */
template <int ROW_TILES>
static __device__ __forceinline__ void append_note(const struct mol_pairs_input &in, const struct row_starts &starts,
                                                   const sums_note<ROW_TILES> &note, const struct device_lists &lists)
{
  for (uint32_t bits = passed_bits(note); bits;) {
    uint32_t at = (uint32_t)__clz((int)bits), i = at % 16, is_second = at / 16, slot = note.slot + i % 2 * 8;
    uint32_t row = note.row + TILE_ROWS * (i / 2) + is_second;
    bits &= ~(0x80000000u >> at);
    if (row < in.rows.n && note.present >> i % 2 * 8 & 1 && is_admitted(in.rows.admitted, row, slot)) {
      uint32_t start = starts.of[note.component * starts.n_rows + start_place<ROW_TILES>(row - starts.first_row)];
      append(lists, note.component * in.rows.n + row, slot,
             float_of((half_bits)(note.sums[i] >> 16 * is_second)) - float_of((half_bits)(start >> 16 * is_second)));
    }
  }
}

/* Append what passed of a warp's notes, and forget them. */
template <int ROW_TILES>
static __device__ void append_notes(const struct mol_pairs_input &in, const struct row_starts &starts,
                                    warp_notes<ROW_TILES> &notes, const struct device_lists &lists)
{
  __syncwarp();
  for (uint32_t i = warp_lane(); i < notes.n; i += WARP_LANES)
    append_note(in, starts, notes.of[i], lists);
  __syncwarp();
  notes.n = 0;
}

/* Note the sums of the lanes whose bits are set. The whole warp calls this. */
template <int ROW_TILES>
static __device__ __forceinline__ void note_sums(warp_notes<ROW_TILES> &notes, unsigned lanes,
                                                 const uint32_t (&sums)[2 * ROW_TILES], const struct work &work,
                                                 unsigned i, uint32_t component)
{
  if (lanes >> warp_lane() & 1) {
    uint4 *to = reinterpret_cast<uint4 *>(notes.of + notes.n + __popc(lanes & ((1u << warp_lane()) - 1)));
    unsigned item = STEP_ITEMS * i + warp_lane() / 4;
#pragma unroll
    for (int word = 0; word < 2 * ROW_TILES; word += 4)
      to[word / 4] = uint4{ sums[word], sums[word + 1], sums[word + 2], sums[word + 3] };
    to[ROW_TILES / 2] = uint4{ work.first_slot + item, work.first_row + 2 * (warp_lane() % 4), component,
                               (uint32_t)(work.tile.present >> item) };
  }
  notes.n += (uint32_t)__popc(lanes);
}

/* Load a lane's starts of a component. */
template <int ROW_TILES>
static __device__ __forceinline__ void load_starts(const uint32_t *mine, uint32_t (&start)[ROW_TILES][2])
{
  static_assert(ROW_TILES % 2 == 0, "two row tiles at a time");
#pragma unroll
  for (int j = 0; j < ROW_TILES; j += 2) {
    uint4 both = *reinterpret_cast<const uint4 *>(mine + 2 * j);
    start[j][0] = both.x;
    start[j][1] = both.y;
    start[j + 1][0] = both.z;
    start[j + 1][1] = both.w;
  }
}

/* Compute the sums of items 16 i to 16 i + 15. Returns the AND of all. */
template <int GROUPS, int ROW_TILES>
static __device__ __forceinline__ uint32_t multiply_all(const lane_rows<GROUPS> &my_rows, unsigned i,
                                                        const row_part<GROUPS, ROW_TILES> &part,
                                                        const uint32_t (&start)[ROW_TILES][2],
                                                        uint32_t (&sums)[2 * ROW_TILES])
{
  uint32_t items[GROUPS * GROUP_STEPS][4], all = BELOW;

  load_items<GROUPS>(my_rows, i, items);
#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    uint32_t two[2];
    multiply(items, part, j, start[j], two);
    sums[2 * j] = two[0];
    sums[2 * j + 1] = two[1];
    all &= two[0] & two[1];
  }
  return all;
}

/* Append the items of the warp's tile that may reach the floors of a component's lists. The products of the next 16
 * items run while the sums of the last ones are tested.
 *
 * my_starts: of the lane and this component, or NaNs */
template <int GROUPS, int ROW_TILES>
static __device__ __forceinline__ void append_items(const struct mol_pairs_input &in,
                                                    const lane_rows<GROUPS> &my_rows, const struct work &work,
                                                    uint32_t component, const row_part<GROUPS, ROW_TILES> &part,
                                                    const uint32_t *my_starts, const struct row_starts &starts,
                                                    warp_notes<ROW_TILES> &notes, const struct device_lists &lists)
{
  uint32_t start[ROW_TILES][2];

  load_starts<ROW_TILES>(my_starts, start);
  uint32_t sums[2][2 * ROW_TILES], all[2];
  all[0] = multiply_all(my_rows, 0, part, start, sums[0]);
#pragma unroll
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i++) {
    if (i + 1 < TILE / STEP_ITEMS)
      all[(i + 1) % 2] = multiply_all(my_rows, i + 1, part, start, sums[(i + 1) % 2]);
    unsigned lanes = __ballot_sync(WARP_ALL, all[i % 2] != BELOW);
    if (lanes == 0)
      continue;
    note_sums(notes, lanes, sums[i % 2], work, i, component);
    if (notes.n + WARP_LANES > notes.most)
      append_notes(in, starts, notes, lists);
  }
}

#endif
