/* SPDX-License-Identifier: Apache-2.0 */
/* What the append scan of mol_pairs.cu does with a component of a tile. Few of the sums pass, and several lanes of a
 * warp have one at a time only rarely. So a lane only notes all its sums of 16 items, and goes on. The warp looks at
 * what was noted when there is enough for all its lanes. */
#ifndef KERNELS_CUDA_MOL_PAIRS_APPEND_CUH
#define KERNELS_CUDA_MOL_PAIRS_APPEND_CUH

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_pairs_walk.cuh"

enum {
  SUMS = 4 * ROW_TILES, /* of a lane and 16 items */
  AT_A_TIME = 2,        /* times 16 items: one group's products hide the other's latency */
  NOTES_MAX = 60        /* of a warp: with some 30 of them, there is no room for one of each lane */
};

/* A lane's sums of 16 items, one of which may pass. Sum i is that of row + 8 (i / 4) + i % 2 and of item
 * slot + i % 4 / 2 * 8. */
struct alignas(16) note {
  float sums[SUMS];
  uint32_t slot, row, component;
  float residual; /* of the tile */
};

/* A warp's notes, in shared memory. It looks at them when there may not be room for another one of each lane. */
struct notes {
  struct note *of; /* [most]; most is at least WARP_LANES */
  uint32_t most, n; /* the same in all lanes */
};

/* What the sums started from, as far as the items do not matter: [n_components][n_rows] in shared memory, for the rows
 * of a block. */
struct row_starts {
  const float *of;
  uint32_t first_row, n_rows;
};

/* Compute a block's starts. The sum of an item that may reach the floor ends above 0. A row without a list starts from
 * -inf. */
static __device__ void make_starts(const struct mol_pairs_input &in, const float *floors, float of_floor,
                                   const struct row_starts &starts, float *out)
{
  for (uint32_t i = threadIdx.x; i < (uint32_t)in.n_components * starts.n_rows; i += THREADS) {
    uint32_t row = starts.first_row + i % starts.n_rows;
    out[i] = -INFINITY;
    if (row < in.rows.n) {
      float floor = floors[i / starts.n_rows * in.rows.n + row];
      out[i] = in.rows.margins[row].base + fmaf(of_floor, fabsf(floor), -floor);
    }
  }
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

/* Append what passed of a note. */
static __device__ __forceinline__ void append_note(const struct mol_pairs_input &in, const struct scan_range &range,
                                                   const struct row_starts &starts, const struct note &note,
                                                   const struct device_lists &lists)
{
  for (unsigned bits = passed_bits(note.sums); bits;) {
    unsigned i = (unsigned)__clz((int)bits) - 16;
    uint32_t row = note.row + 8 * (i / 4) + i % 2, slot = note.slot + i % 4 / 2 * 8;
    bits &= ~(0x8000u >> i);
    if (row < in.rows.n && slot < range.n_slots && in.items.present[slot] && is_admitted(in.rows.admitted, row, slot)) {
      float start = fmaf(margin_of(in.rows, row).norm, note.residual,
                         starts.of[note.component * starts.n_rows + row - starts.first_row]);
      append(lists, note.component * in.rows.n + row, slot, note.sums[i] - start);
    }
  }
}

/* Append what passed of a warp's notes, and forget them. */
static __device__ void append_notes(const struct mol_pairs_input &in, const struct scan_range &range,
                                    const struct row_starts &starts, struct notes &notes,
                                    const struct device_lists &lists)
{
  __syncwarp();
  for (uint32_t i = warp_lane(); i < notes.n; i += WARP_LANES)
    append_note(in, range, starts, notes.of[i], lists);
  __syncwarp();
  notes.n = 0;
}

/* Note the sums of the lanes whose bits are set. The whole warp calls this. */
static __device__ __forceinline__ void note_sums(struct notes &notes, unsigned lanes, const float (&sums)[SUMS],
                                                 uint32_t slot, uint32_t row, uint32_t component, float residual)
{
  if (lanes >> warp_lane() & 1) {
    uint4 *to = reinterpret_cast<uint4 *>(notes.of + notes.n + __popc(lanes & ((1u << warp_lane()) - 1)));
#pragma unroll
    for (int i = 0; i < SUMS / 4; i++)
      to[i] = uint4{ __float_as_uint(sums[4 * i]), __float_as_uint(sums[4 * i + 1]), __float_as_uint(sums[4 * i + 2]),
                     __float_as_uint(sums[4 * i + 3]) };
    to[SUMS / 4] = uint4{ slot, row, component, __float_as_uint(residual) };
  }
  notes.n += (uint32_t)__popc(lanes);
}

/* x, given zero = 0, which the compiler does not know. The sums of a product begin in four registers in a row, and the
 * compiler would copy equal numbers there before each product. */
static __device__ __forceinline__ float own_register(float x, uint32_t zero)
{
  return __uint_as_float(__float_as_uint(x) | zero);
}

/* Compute the sums of 16 items and the warp's rows. Returns the AND of their bits: its sign bit is set if no item
 * passes. */
template <int GROUPS>
static __device__ __forceinline__ unsigned multiply_all(const uint32_t (&items)[GROUPS * GROUP_STEPS][4],
                                                        const struct row_part<GROUPS> &part,
                                                        const float (&start)[ROW_TILES][4], float (&sums)[SUMS])
{
  unsigned all = ~0u;

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    float four[4];
    multiply<GROUPS>(items, part, j, start[j], four);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      sums[4 * j + k] = four[k];
      all &= __float_as_uint(four[k]);
    }
  }
  return all;
}

/* The norms of a lane's rows 8 j + 2 t and 8 j + 2 t + 1, where t is lane % 4. */
struct row_norms {
  float of[ROW_TILES][2];
};

static __device__ __forceinline__ struct row_norms load_norms(const struct mol_pairs_rows &rows, size_t first)
{
  struct row_norms norms;

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
#pragma unroll
    for (int i = 0; i < 2; i++)
      norms.of[j][i] = margin_of(rows, first + 8 * j + 2 * (warp_lane() % 4) + i).norm;
  }
  return norms;
}

/* Append the items of the warp's tile that may reach the floors of a component's lists.
 *
 * my_starts: of the warp's first row and this component, from the lane's first row on */
template <int GROUPS>
static __device__ __forceinline__ void append_items(const struct mol_pairs_input &in, const struct scan_range &range,
                                                    const lane_rows<GROUPS> &lane_rows, const struct work &work,
                                                    uint32_t component, const struct row_part<GROUPS> &part,
                                                    const struct row_norms &norms, const float *my_starts,
                                                    const struct row_starts &starts, struct notes &notes,
                                                    const struct device_lists &lists)
{
  bool is_known = work.tile.residual < INFINITY; /* else all items pass */
  uint32_t zero = GROUPS == 1 ? range.item_halves >> 31 : 0; /* where there are registers */
  float start[ROW_TILES][4];

#pragma unroll
  for (int j = 0; j < ROW_TILES; j++) {
    float2 two = *reinterpret_cast<const float2 *>(my_starts + 8 * j);
#pragma unroll
    for (int k = 0; k < 4; k++)
      start[j][k] = own_register(fmaf(norms.of[j][k % 2], work.tile.residual, k % 2 ? two.y : two.x), k < 2 ? 0 : zero);
  }
#pragma unroll(GROUPS == 1 ? TILE / STEP_ITEMS / AT_A_TIME : 1)
  for (unsigned i = 0; i < TILE / STEP_ITEMS; i += AT_A_TIME) {
    float sums[AT_A_TIME][SUMS];
    unsigned below[AT_A_TIME], all = ~0u;
#pragma unroll
    for (int n = 0; n < AT_A_TIME; n++) {
      uint32_t items[GROUPS * GROUP_STEPS][4];
      load_items<GROUPS>(lane_rows, i + n, items);
      below[n] = multiply_all<GROUPS>(items, part, start, sums[n]);
      all &= below[n];
    }
    if (!__any_sync(WARP_ALL, !is_known || !(all >> 31)))
      continue;
#pragma unroll
    for (int n = 0; n < AT_A_TIME; n++) {
      unsigned lanes = __ballot_sync(WARP_ALL, !is_known || !(below[n] >> 31));
      if (!lanes)
        continue;
      if (!is_known) {
#pragma unroll
        for (int j = 0; j < SUMS; j++)
          sums[n][j] = NAN;
      }
      note_sums(notes, lanes, sums[n], work.first_slot + STEP_ITEMS * (i + n) + warp_lane() / 4,
                work.first_row + 2 * (warp_lane() % 4), component, work.tile.residual);
      if (notes.n + WARP_LANES > notes.most)
        append_notes(in, range, starts, notes, lists);
    }
  }
}

#endif
