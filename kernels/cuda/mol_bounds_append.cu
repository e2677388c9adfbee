/* SPDX-License-Identifier: Apache-2.0 */
/* The screening of mol_bounds.h: append the items that may reach the floor. It needs neither the score nor its bounds,
 * only step 10 of the proof: two sums in place of five, and no division. A warpgroup does not need the gate either if
 * its logits are all below the floors. */
#include "kernels/cuda/mol_bounds.h"

#include "kernels/cuda/mol_bounds_scan.cuh"

/* Sums over the logits of one item and query; HIDDEN is over the hidden units. */
enum { SUM_ABOVE, SUM_SQUARES, SUM_LOGITS, SUM_HIDDEN, SUMS };

enum { OFTEN_REACHED = 64, TEST_AGAIN = 16 };

/* Is the score below the floor for certain? NaN gives false. */
static __device__ __forceinline__ bool is_below_floor(const struct mol_half_factors &factors, const float sums[SUMS],
                                                      const float *query, const float *residuals)
{
  float kappa = find_kappa(factors, sums[SUM_LOGITS], sums[SUM_HIDDEN], query, residuals) + 0x1p-14f;

  return fmaf(kappa, fast_sqrt(fmaf(sums[SUM_SQUARES], 1 + 0x1p-12f, 0x1p-110f)), sums[SUM_ABOVE]) < 0.0f;
}

/* Find the floors of a lane's two rows. */
template <class S>
static __device__ __forceinline__ void find_floors(const float *query, const unsigned char *items, unsigned strip,
                                                   float floors[2])
{
#pragma unroll
  for (unsigned row = 0; row < 2; row++) {
    const float *residuals = residuals_of<S>(items, strip * STRIP_ITEMS + warp_lane() / 4 + row * 8);
    floors[row] = fmaf(-query[QUERY_MIX_PER_RESIDUAL], residuals[MOL_RESIDUAL_COMPONENT], query[QUERY_FLOOR]);
  }
}

/* Does any of a lane's logits reach its row's floor? NaN does. */
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

/* Does a warp's query admit any of its items? A warp may have a query or items past the end. */
template <class S>
static __device__ __forceinline__ bool admits_any(const struct bound_work &work, const struct bound_place &at)
{
  uint32_t query = at.first_query + at.query, first = first_slot<S>(work, at.tile) + at.strip * STRIP_ITEMS;

  return query < work.n_queries && first < work.end && admitted_bits(work.admitted, query, first) & 0xffff;
}

/* Are the logits of a warpgroup tested? To ask its warps takes a while. After many times in a row in which some logit
 * reached the floor, the group asks only now and then. */
static __device__ __forceinline__ bool tests_logits(uint32_t n_reached)
{
  return n_reached < OFTEN_REACHED || n_reached % TEST_AGAIN == 0;
}

/* Screen a strip of items for one query. n_reached: how many times in a row some logit reached the floor, or was not
 * tested. One warpgroup. */
template <class S>
static __device__ __forceinline__ void screen(const struct bound_work &work, const bound_memory<S> &m,
                                              const unsigned char *items, const struct bound_place &at,
                                              uint32_t &n_reached)
{
  struct bound_strip strip = choose_strip<S>(items, at.strip, at.query);
  const float *sizes = m.query[at.query];
  uint32_t logits[S::STEPS][4], squares[2] = {};
  float floors[2], half_w[S::M][4], sums[2][SUMS] = {}, mine[SUMS];

  if (work.admitted.of && !warpgroup_any(admits_any<S>(work, at)))
    return;
  find_logits<S>(m, strip, logits);
  find_floors<S>(sizes, items, at.strip, floors);
  if (tests_logits(n_reached) && !warpgroup_any(reaches<S>(logits, floors))) {
    n_reached = 0;
    return;
  }
  n_reached++;
  run_gate<S>(m, logits, half_w, squares);
  mix<S>(logits, half_w, strip.gates, m.gates + at.query * S::L, [&](int row, float e, float l) {
    float *sum = sums[row], above = e * (l - floors[row]);
    sum[SUM_ABOVE] += above;
    sum[SUM_SQUARES] = fmaf(above, above, sum[SUM_SQUARES]);
    sum[SUM_LOGITS] = fmaf(l, l, sum[SUM_LOGITS]);
  });
  sums[0][SUM_HIDDEN] = half_pair_sum(squares[0]);
  sums[1][SUM_HIDDEN] = half_pair_sum(squares[1]);
  add_lanes<SUMS>(sums, mine);
  uint32_t slot = first_slot<S>(work, at.tile) + strip.lane_row, query = at.first_query + at.query;
  if (strip.is_reporter && !is_below_floor(work.factors, mine, sizes, residuals_of<S>(items, strip.lane_row)) &&
      slot < work.end && query < work.n_queries && work.present[slot] && is_admitted(work.admitted, query, slot))
    append(work.lists, query, slot, INFINITY);
}

template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(BOUND_THREADS, 1) bound_append(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, false> S;
  uint32_t n_reached = 0;

  scan_tiles<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    screen<S>(work, m, items, at, n_reached);
  });
}

template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(BOUND_THREADS, 1) bound_append_single(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, true> S;
  uint32_t n_reached = 0;

  scan_single<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    screen<S>(work, m, items, at, n_reached);
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
