/* SPDX-License-Identifier: Apache-2.0 */
/* The screening of mol_bounds.h: append the items that may reach the floor. It needs neither the score nor its bounds,
 * only step 10 of the proof: two sums in place of five, and no division. A warp does not need the gate either if its
 * logits are all below the floors. */
#include "kernels/cuda/mol_bounds.h"

#include "kernels/cuda/mol_bounds_scan.cuh"

/* Sums over the logits of one item and query; HIDDEN is over the hidden units. */
enum { SUM_ABOVE, SUM_SQUARES, SUM_LOGITS, SUM_HIDDEN, SUMS };

/* Is the score below the floor for certain? NaN gives false. */
static __device__ __forceinline__ bool is_below_floor(const struct mol_half_factors &factors, const float sums[SUMS],
                                                      const float *query, const float *residuals)
{
  float kappa = find_kappa(factors, sums[SUM_LOGITS], sums[SUM_HIDDEN], query, residuals) + 0x1p-14f;

  return fmaf(kappa, fast_sqrt(fmaf(sums[SUM_SQUARES], 1 + 0x1p-12f, 0x1p-110f)), sums[SUM_ABOVE]) < 0.0f;
}

/* Find the floors of a lane's two rows of one set. */
template <class S>
static __device__ __forceinline__ void find_floors(const float *query, const unsigned char *items, unsigned group,
                                                   float floors[2])
{
#pragma unroll
  for (unsigned row = 0; row < 2; row++) {
    const float *residuals = residuals_of<S>(items, group * GROUP_ITEMS + warp_lane() / 4 + row * 8);
    floors[row] = fmaf(-query[QUERY_MIX_PER_RESIDUAL], residuals[MOL_RESIDUAL_COMPONENT], query[QUERY_FLOOR]);
  }
}

/* Does any of a lane's logits of one set reach its row's floor? NaN does. */
template <class S>
static __device__ __forceinline__ bool reaches(const uint32_t logits[S::STEPS][4], const float floors[2])
{
  bool is_reached = false;

#pragma unroll
  for (int row = 0; row < 2; row++) {
    uint32_t most = logits[0][row];
#pragma unroll
    for (int c = 1; c < S::M; c++)
      most = half_pair_max(most, logits[c / 2][c % 2 * 2 + row]);
    is_reached |= !(float_of((half_bits)most) < floors[row] && float_of((half_bits)(most >> 16)) < floors[row]);
  }
  return is_reached;
}

/* Does a warp's pair of queries admit any of its 16 items, or its single query any of the 32? */
template <class S, bool IS_SINGLE>
static __device__ __forceinline__ bool admits_any(const struct bound_work &work, const struct bound_place &at)
{
  uint32_t query = at.first_query + at.pair * SETS, first = first_slot<S>(work, at.tile) + at.group * GROUP_ITEMS;
  const uint32_t items = IS_SINGLE ? ~0u : 0xffff;
  const unsigned n = IS_SINGLE ? 1 : SETS;
  uint32_t bits = 0;

  for (unsigned s = 0; s < n && query + s < work.n_queries; s++)
    bits |= admitted_bits(work.admitted, query + s, first);
  return bits & items;
}

/* Screen 16 items for two queries, or 32 for one. One warp. */
template <class S, bool IS_SINGLE>
static __device__ __forceinline__ void screen(const struct bound_work &work, const bound_memory<S> &m,
                                              const unsigned char *items, const struct bound_place &at)
{
  struct bound_sets sets = choose_sets<S, IS_SINGLE>(items, at.group, at.pair);
  uint32_t logits[SETS][S::STEPS][4], squares[SETS][2] = {};
  float floors[SETS][2], half_w[SETS][S::M][4], sums[SETS][2][SUMS] = {}, mine[SUMS];
  bool is_reached = false;

  if (work.admitted.of && !admits_any<S, IS_SINGLE>(work, at))
    return;
  find_logits<S, IS_SINGLE>(m, sets, logits);
#pragma unroll
  for (unsigned s = 0; s < SETS; s++) {
    find_floors<S>(m.query[sets.query[s]], items, IS_SINGLE ? s : at.group, floors[s]);
    is_reached |= reaches<S>(logits[s], floors[s]);
  }
  if (!__any_sync(WARP_ALL, is_reached))
    return;
  run_gate<S>(m, logits, half_w, squares);
#pragma unroll
  for (unsigned s = 0; s < SETS; s++) {
    mix<S>(logits[s], half_w[s], sets.gates[s], m.gates + sets.query[s] * S::L, [&](int row, float e, float l) {
      float *sum = sums[s][row], above = e * (l - floors[s][row]);
      sum[SUM_ABOVE] += above;
      sum[SUM_SQUARES] = fmaf(above, above, sum[SUM_SQUARES]);
      sum[SUM_LOGITS] = fmaf(l, l, sum[SUM_LOGITS]);
    });
    sums[s][0][SUM_HIDDEN] = half_pair_sum(squares[s][0]);
    sums[s][1][SUM_HIDDEN] = half_pair_sum(squares[s][1]);
  }
  add_lanes<SUMS>(sums, mine);
  uint32_t slot = first_slot<S>(work, at.tile) + sets.lane_row, query = at.first_query + sets.lane_query;
  if (!is_below_floor(work.factors, mine, m.query[sets.lane_query], residuals_of<S>(items, sets.lane_row)) &&
      slot < work.end && query < work.n_queries && work.present[slot] && is_admitted(work.admitted, query, slot))
    append(work.lists, query, slot, INFINITY);
}

template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(sizes<N_COMPONENTS, DIM, false>::THREADS, 1)
    bound_append(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, false> S;

  scan_tiles<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    screen<S, false>(work, m, items, at);
  });
}

template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(sizes<N_COMPONENTS, DIM, true>::THREADS, 1)
    bound_append_single(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, true> S;

  scan_single<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    screen<S, true>(work, m, items, at);
  });
}

template <int N_COMPONENTS, int DIM> struct run_append {
  static err_code_t run(struct device_stream *stream, const struct bound_work &work, unsigned n_blocks)
  {
    return launch_either<N_COMPONENTS, DIM>(stream, work, n_blocks, bound_append_single<N_COMPONENTS, DIM>,
                                            bound_append<N_COMPONENTS, DIM>);
  }
};

err_code_t mol_bounds_append(struct device_stream *stream, const struct mol_bounds_input *input, size_t first, size_t n,
                             const float *floors, const struct device_lists *lists)
{
  struct bound_work work = {};

  if (n == 0)
    return ERR_OK;
  work.first = (uint32_t)first;
  work.end = (uint32_t)(first + n);
  work.stride = 1;
  work.n = (uint32_t)n;
  work.floors = floors;
  work.lists = *lists;
  return run_shape<run_append>(stream, input, work);
}
