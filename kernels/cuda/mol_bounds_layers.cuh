/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of mol_bounds.h, which bounds and screening share: logits, the cross gate, and the softmax's weights with
 * their error.
 *
 * A warp works on a strip of 16 items and one query. The tensor core's output of one layer is, lane for lane, its input
 * of the next. The logits of two item components are the 16 inputs of a step of the first layer, and 16 hidden units
 * are the inputs of a step of the second. So only weights, queries and items come from shared memory. The gate's layers
 * are products of the warp's group (warpgroup.cuh): its four warps run them together, each for its own items and query.
 */
#ifndef KERNELS_CUDA_MOL_BOUNDS_LAYERS_CUH
#define KERNELS_CUDA_MOL_BOUNDS_LAYERS_CUH

#include "kernels/cuda/mol_bounds_tile.cuh"

#define LOG2_E 1.44269504f
/* Subtracted from every exponent, to keep the squares of the softmax's weights within f32. */
#define EXPONENT_SHIFT 40.0f

enum {
  CHUNK = 32, /* hidden units that a warp has at a time */
  CHUNKS = BOUND_HIDDEN / CHUNK,
  MATRIX = 8 /* columns of one result of the tensor core */
};

/* A warp's items and query. Of its lanes, t = lane % 4 has logits of rows lane / 4 and lane / 4 + 8; it reports one of
 * them, as add_lanes() spreads them, if t is 0 or 1. */
struct bound_strip {
  const uint16_t *rows, *gates;
  uint32_t query;    /* of the block's */
  unsigned lane_row; /* in the tile */
  bool is_reporter;
};

template <class S>
static __device__ __forceinline__ struct bound_strip choose_strip(const unsigned char *items, unsigned strip,
                                                                  uint32_t query)
{
  const uint16_t *rows = reinterpret_cast<const uint16_t *>(items), *gates = rows + S::TILE * S::ROW;
  unsigned lane = warp_lane(), row = strip * STRIP_ITEMS;

  return { rows + row * S::ROW, gates + row * S::GATE_ROW, query, row + lane / 4 + lane % 2 * 8, (lane & 2) == 0 };
}

template <class S> static __device__ __forceinline__ const float *residuals_of(const unsigned char *items, unsigned row)
{
  return reinterpret_cast<const float *>(items + S::TILE * (S::ROW + S::GATE_ROW) * sizeof(uint16_t)) +
         row * MOL_RESIDUALS;
}

/* Compute the logits, laid out as inputs of the first layer. */
template <class S>
static __device__ __forceinline__ void find_logits(const bound_memory<S> &m, const struct bound_strip &strip,
                                                   uint32_t logits[S::STEPS][4])
{
  const int d_steps = S::D / BOUND_STEP;
  const uint16_t *row = operand_row<S>(strip.rows);
  float sums[S::M][4];

#pragma unroll
  for (int step = 0; step < d_steps; step++) {
    uint2 both = m.components[(strip.query * d_steps + step) * WARP_LANES + warp_lane()];
    const uint32_t b[2] = { both.x, both.y };
#pragma unroll
    for (int c = 0; c < S::M; c++) {
      const float zeros[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
      uint32_t a[4];
      load_matrices(a, row + c * S::D + step * BOUND_STEP);
      mma_f16(sums[c], a, b, step == 0 ? zeros : sums[c]);
    }
  }
#pragma unroll
  for (int c = 0; c < S::M; c++) {
    logits[c / 2][c % 2 * 2] = half_pair(sums[c][0], sums[c][1]);
    logits[c / 2][c % 2 * 2 + 1] = half_pair(sums[c][2], sums[c][3]);
  }
}

/* Compute a chunk of hidden units, laid out as inputs of the second layer. Add their squares to `squares` by row, in
 * two halves each. */
static __device__ __forceinline__ void activate(const float (&y)[CHUNK / MATRIX][4],
                                                uint32_t hidden[CHUNK / BOUND_STEP][4], uint32_t squares[2])
{
#pragma unroll
  for (int i = 0; i < CHUNK / MATRIX; i++) {
    float h[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
      h[k] = fmaf(y[i][k], fast_tanh(y[i][k]), y[i][k]);
#pragma unroll
    for (int row = 0; row < 2; row++) {
      uint32_t both = hidden[i / 2][i % 2 * 2 + row] = half_pair(h[2 * row], h[2 * row + 1]);
      squares[row] = half_pair_fma(both, both, squares[row]);
    }
  }
}

/* Begin to compute the inputs of a chunk of hidden units. */
template <class S>
static __device__ __forceinline__ void begin_first(const bound_memory<S> &m, int chunk,
                                                   const uint32_t logits[S::STEPS][4], float (&y)[CHUNK / MATRIX][4])
{
  warpgroup_begin();
  warpgroup_set(y, m.ones, m.first, warpgroup_place(BOUND_HIDDEN, S::L, chunk * CHUNK));
#pragma unroll
  for (int step = 0; step < S::STEPS; step++)
    warpgroup_add(y, logits[step], m.first, warpgroup_place(BOUND_HIDDEN, step * BOUND_STEP, chunk * CHUNK));
  warpgroup_commit();
}

/* Begin to add a chunk's part of the second layer, to the biases if it is the first. */
template <class S>
static __device__ __forceinline__ void begin_second(const bound_memory<S> &m, int chunk,
                                                    const uint32_t hidden[CHUNK / BOUND_STEP][4],
                                                    float (&gates)[S::M][4])
{
  warpgroup_begin();
  if (chunk == 0)
    warpgroup_set(gates, m.ones, m.second, warpgroup_place(S::L, BOUND_HIDDEN, 0));
#pragma unroll
  for (int step = 0; step < CHUNK / BOUND_STEP; step++)
    warpgroup_add(gates, hidden[step], m.second, warpgroup_place(S::L, chunk * CHUNK + step * BOUND_STEP, 0));
  warpgroup_commit();
}

/* Run both layers. Writes w / 2 to `gates` and the sums of squared hidden units to `squares`, as activate() does. While
 * the tensor cores work for this warpgroup, special functions work for the others. The whole warpgroup calls this. */
template <class S>
static __device__ __forceinline__ void run_gate(const bound_memory<S> &m, const uint32_t logits[S::STEPS][4],
                                                float (&gates)[S::M][4], uint32_t squares[2])
{
  float y[CHUNK / MATRIX][4];
  uint32_t hidden[2][CHUNK / BOUND_STEP][4];

  begin_first<S>(m, 0, logits, y);
#pragma unroll
  for (int chunk = 0; chunk < CHUNKS; chunk++) {
    warpgroup_wait(chunk == 0 ? 0 : 1, y); /* but not for the last chunk's second layer */
    activate(y, hidden[chunk % 2], squares);
    if (chunk + 1 < CHUNKS)
      begin_first<S>(m, chunk + 1, logits, y);
    begin_second<S>(m, chunk, hidden[chunk % 2], gates);
  }
  warpgroup_wait(0, gates);
}

/* A logit's weight in the softmax, times a constant that all share. half_z is half the argument of its gate's SiLU. */
static __device__ __forceinline__ float softmax_weight(float half_z)
{
  return fast_exp2(fmaf(fmaf(half_z, fast_tanh(half_z), half_z), LOG2_E, -EXPONENT_SHIFT));
}

/* Call add(row, e, l) for a lane's share of its two rows: e is the softmax's weight of logit l. */
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

/* Add up the four lanes of a row. Lanes t = 0 and 1 of the four get the sums of rows 0 and 1. */
template <int N> static __device__ __forceinline__ void add_lanes(const float sums[2][N], float out[N])
{
  bool is_high = warp_lane() & 1;

#pragma unroll
  for (int i = 0; i < N; i++) {
    float mine = is_high ? sums[1][i] : sums[0][i], other = is_high ? sums[0][i] : sums[1][i];
    out[i] = mine + __shfl_xor_sync(WARP_ALL, other, 1);
    out[i] += __shfl_xor_sync(WARP_ALL, out[i], 2);
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
