/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of mol_bounds.h, which bounds and screening share: logits, the cross gate, and the softmax's weights with
 * their error.
 *
 * A warp works on two sets, each of 16 items and one query. The two sets have the same items and two queries, or one
 * query and two groups of items. The tensor core's output of one layer is, lane for lane, its
 * input of the next. The logits of two item components are the 16 inputs of a step of the first layer, and 16 hidden
 * units are the inputs of a step of the second. So only weights, queries and items come from shared memory. All loads
 * are 4, 8 or 16 bytes per lane from different banks.
 */
#ifndef KERNELS_CUDA_MOL_BOUNDS_LAYERS_CUH
#define KERNELS_CUDA_MOL_BOUNDS_LAYERS_CUH

#include "kernels/cuda/mol_bounds_tile.cuh"

#define LOG2_E 1.44269504f
/* Subtracted from every exponent, to keep the squares of the softmax's weights within f32. */
#define EXPONENT_SHIFT 40.0f

/* A warp's two sets: the items' rows and the query of each. A lane reports one item and query of the 64, as add_lanes()
 * spreads them. */
struct bound_sets {
  const uint16_t *rows[SETS], *gates[SETS];
  uint32_t query[SETS];
  unsigned lane_row;   /* in the tile */
  uint32_t lane_query; /* of the block's */
};

/* Choose the sets of a warp: 16 items and two queries, or 32 items and a block's only query. */
template <class S, bool IS_SINGLE>
static __device__ __forceinline__ struct bound_sets choose_sets(const unsigned char *items, unsigned group,
                                                                uint32_t pair)
{
  const uint16_t *rows = reinterpret_cast<const uint16_t *>(items), *gates = rows + S::TILE * S::ROW;
  unsigned lane = warp_lane(), set = lane % 4 / 2;
  struct bound_sets sets;

#pragma unroll
  for (unsigned s = 0; s < SETS; s++) {
    unsigned row = (IS_SINGLE ? s : group) * GROUP_ITEMS;
    sets.rows[s] = rows + row * S::ROW;
    sets.gates[s] = gates + row * S::GATE_ROW;
    sets.query[s] = IS_SINGLE ? 0 : pair * SETS + s;
  }
  sets.lane_row = (IS_SINGLE ? set : group) * GROUP_ITEMS + lane / 4 + lane % 2 * 8;
  sets.lane_query = IS_SINGLE ? 0 : pair * SETS + set;
  return sets;
}

template <class S> static __device__ __forceinline__ const float *residuals_of(const unsigned char *items, unsigned row)
{
  return reinterpret_cast<const float *>(items + S::TILE * (S::ROW + S::GATE_ROW) * sizeof(uint16_t)) +
         row * MOL_RESIDUALS;
}

/* Compute the logits of both sets, laid out as inputs of the first layer. */
template <class S, bool IS_SINGLE>
static __device__ __forceinline__ void find_logits(const bound_memory<S> &m, const struct bound_sets &sets,
                                                   uint32_t logits[SETS][S::STEPS][4])
{
  const int d_steps = S::D / BOUND_STEP;
  const uint16_t *rows[SETS];
  float sums[SETS][S::M][4];

#pragma unroll
  for (int s = 0; s < SETS; s++)
    rows[s] = operand_row<S>(sets.rows[s]);
#pragma unroll
  for (int step = 0; step < d_steps; step++) {
    uint32_t b[SETS][2];
#pragma unroll
    for (int s = 0; s < (IS_SINGLE ? 1 : SETS); s++) {
      uint2 both = m.components[(sets.query[s] * d_steps + step) * WARP_LANES + warp_lane()];
      b[s][0] = both.x;
      b[s][1] = both.y;
    }
#pragma unroll
    for (int c = 0; c < S::M; c++) {
      uint32_t a[4];
#pragma unroll
      for (int s = 0; s < SETS; s++) {
        const float zeros[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
        if (s == 0 || IS_SINGLE)
          load_matrices(a, rows[s] + c * S::D + step * BOUND_STEP);
        mma_f16(sums[s][c], a, b[IS_SINGLE ? 0 : s], step == 0 ? zeros : sums[s][c]);
      }
    }
  }
#pragma unroll
  for (int s = 0; s < SETS; s++) {
#pragma unroll
    for (int c = 0; c < S::M; c++) {
      logits[s][c / 2][c % 2 * 2] = half_pair(sums[s][c][0], sums[s][c][1]);
      logits[s][c / 2][c % 2 * 2 + 1] = half_pair(sums[s][c][2], sums[s][c][3]);
    }
  }
}

/* Compute 16 hidden units of one set, laid out as inputs of the second layer. Add their squares to `squares` by row, in
 * two halves each. */
static __device__ __forceinline__ void activate(const float y[2][4], uint32_t hidden[4], uint32_t squares[2])
{
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float h[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
      h[k] = fmaf(y[i][k], fast_tanh(y[i][k]), y[i][k]);
#pragma unroll
    for (int row = 0; row < 2; row++) {
      uint32_t both = hidden[2 * i + row] = half_pair(h[2 * row], h[2 * row + 1]);
      squares[row] = half_pair_fma(both, both, squares[row]);
    }
  }
}

/* Compute 16 hidden units' inputs of both sets. */
template <class S>
static __device__ __forceinline__ void run_first(const bound_memory<S> &m, int chunk,
                                                 const uint32_t logits[SETS][S::STEPS][4], float y[SETS][2][4])
{
  const uint4 *first = m.first + chunk * S::STEPS * WARP_LANES + warp_lane();
  const float4 *bias = m.bias1 + warp_lane() % 4;

#pragma unroll
  for (int i = 0; i < 2; i++) {
#pragma unroll
    for (int s = 0; s < SETS; s++)
      load_quad(y[s][i], bias + (chunk * 2 + i) * 4);
  }
#pragma unroll
  for (int step = 0; step < S::STEPS; step++) {
    uint4 w = first[step * WARP_LANES];
    const uint32_t b[2][2] = { { w.x, w.y }, { w.z, w.w } };
#pragma unroll
    for (int s = 0; s < SETS; s++) {
      mma_f16(y[s][0], logits[s][step], b[0], y[s][0]);
      mma_f16(y[s][1], logits[s][step], b[1], y[s][1]);
    }
  }
}

/* Activate 16 hidden units of both sets and add their part of the second layer. */
template <class S>
static __device__ __forceinline__ void run_second(const bound_memory<S> &m, int chunk, const float y[SETS][2][4],
                                                  float gates[SETS][S::M][4], uint32_t squares[SETS][2])
{
  const uint4 *second = m.second + chunk * S::STEPS * WARP_LANES + warp_lane();
  uint32_t hidden[SETS][4];

#pragma unroll
  for (int s = 0; s < SETS; s++)
    activate(y[s], hidden[s], squares[s]);
#pragma unroll
  for (int step = 0; step < S::STEPS; step++) {
    uint4 w = second[step * WARP_LANES];
    const uint32_t b[2][2] = { { w.x, w.y }, { w.z, w.w } };
#pragma unroll
    for (int s = 0; s < SETS; s++) {
      mma_f16(gates[s][2 * step], hidden[s], b[0], gates[s][2 * step]);
      mma_f16(gates[s][2 * step + 1], hidden[s], b[1], gates[s][2 * step + 1]);
    }
  }
}

/* Run both layers. Writes w / 2 to `gates` and the sums of squared hidden units to `squares`, as activate() does. The
 * tensor cores begin with the next 16 hidden units while the special functions work on these. CHUNKS is even. */
template <class S>
static __device__ __forceinline__ void run_gate(const bound_memory<S> &m, const uint32_t logits[SETS][S::STEPS][4],
                                                float gates[SETS][S::M][4], uint32_t squares[SETS][2])
{
  const float4 *bias2 = m.bias2 + warp_lane() % 4;
  float y[2][SETS][2][4];

  static_assert(S::CHUNKS % 2 == 0, "two chunks at a time");
#pragma unroll
  for (int c = 0; c < S::M; c++) {
#pragma unroll
    for (int s = 0; s < SETS; s++)
      load_quad(gates[s][c], bias2 + c * 4);
  }
  run_first<S>(m, 0, logits, y[0]);
#pragma unroll 1
  for (int chunk = 0; chunk < S::CHUNKS - 2; chunk += 2) {
    run_first<S>(m, chunk + 1, logits, y[1]);
    run_second<S>(m, chunk, y[0], gates, squares);
    run_first<S>(m, chunk + 2, logits, y[0]);
    run_second<S>(m, chunk + 1, y[1], gates, squares);
  }
  run_first<S>(m, S::CHUNKS - 1, logits, y[1]);
  run_second<S>(m, S::CHUNKS - 2, y[0], gates, squares);
  run_second<S>(m, S::CHUNKS - 1, y[1], gates, squares);
}

/* A logit's weight in the softmax, times a constant that all share. half_z is half the argument of its gate's SiLU. */
static __device__ __forceinline__ float softmax_weight(float half_z)
{
  return fast_exp2(fmaf(fmaf(half_z, fast_tanh(half_z), half_z), LOG2_E, -EXPONENT_SHIFT));
}

/* Call add(row, e, l) for a lane's share of both rows of one set: e is the softmax's weight of logit l. */
template <class S, class ADD>
static __device__ __forceinline__ void mix(const uint32_t logits[S::STEPS][4], const float gates[S::M][4],
                                           const uint16_t *item_gates, const float *query_gates, ADD add)
{
  unsigned column = warp_lane() % 4 * 2;

#pragma unroll
  for (int c = 0; c < S::M; c++) {
    float2 u = *reinterpret_cast<const float2 *>(query_gates + c * 8 + column);
#pragma unroll
    for (int row = 0; row < 2; row++) {
      uint32_t l = logits[c / 2][c % 2 * 2 + row];
      uint32_t v =
          *reinterpret_cast<const uint32_t *>(item_gates + (warp_lane() / 4 + row * 8) * S::GATE_ROW + c * 8 + column);
      add(row, softmax_weight(fmaf(u.x, float_of((half_bits)v), gates[c][2 * row])), float_of((half_bits)l));
      add(row, softmax_weight(fmaf(u.y, float_of((half_bits)(v >> 16)), gates[c][2 * row + 1])),
          float_of((half_bits)(l >> 16)));
    }
  }
}

/* Add up the four lanes of a row. Lane t of the four gets the sums of set t / 2, row t % 2. */
template <int N> static __device__ __forceinline__ void add_lanes(const float sums[SETS][2][N], float out[N])
{
  bool is_second = warp_lane() & 2, is_high = warp_lane() & 1;

#pragma unroll
  for (int i = 0; i < N; i++) {
    float of_set[2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
      float mine = is_second ? sums[1][row][i] : sums[0][row][i], other = is_second ? sums[0][row][i] : sums[1][row][i];
      of_set[row] = mine + __shfl_xor_sync(WARP_ALL, other, 2);
    }
    float mine = is_high ? of_set[1] : of_set[0], other = is_high ? of_set[0] : of_set[1];
    out[i] = mine + __shfl_xor_sync(WARP_ALL, other, 1);
  }
}

/* Return exp(delta) - 1 or slightly more. */
static __device__ __forceinline__ float exp_less_one(float delta)
{
  float small = delta * fmaf(delta, fmaf(delta, 0.25f, 0.5f), 1.0f); /* an upper bound for delta <= 1, by the series */
  float large = fast_exp2(delta * 1.4428f) - 1.0f;                   /* 1.4428 is log2 e and a relative 7e-5 more */

  return (delta < 1.0f ? small : large) * (1 + 0x1p-10f);
}

/* Return kappa of steps 6 and 7 of the proof for one item and query, from the squared norms of its logits and of its
 * hidden units. */
static __device__ __forceinline__ float find_kappa(const struct mol_half_factors &factors, float logits, float hidden,
                                                   const float *query, const float *residuals)
{
  float l = fast_sqrt(logits), h = fast_sqrt(fmaf(hidden, 1 + 0x1p-6f, 0x1p-17f));
  float logit_error =
      fmaf(query[QUERY_PER_RESIDUAL], residuals[MOL_RESIDUAL_COMPONENT], fmaf(0x1p-11f, l, query[QUERY_ERROR]));
  float gate_error = factors.gate_errors * residuals[MOL_RESIDUAL_GATE] + factors.gates * residuals[MOL_GATE_NORM];

  return exp_less_one(factors.constant + factors.logit_errors * logit_error + factors.logits * l + factors.hidden * h +
                      query[QUERY_MAX_GATE] * gate_error);
}

#endif
