/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of mol_bounds.h: the largest lower bounds of a scan's tiles, and both bounds of list entries. */
#include "kernels/cuda/mol_bounds.h"

#include "kernels/cuda/mol_bounds_scan.cuh"

/* Sums over the logits of one item and query; HIDDEN is over the hidden units. */
enum { SUM_NUM, SUM_DEN, SUM_A, SUM_E, SUM_C, SUM_LOGITS, SUM_HIDDEN, SUMS };

struct bounds {
  float upper, lower;
};

/* Compute steps 6 to 8 of the proof for one item and query. The bounds are never NaN. */
static __device__ __forceinline__ struct bounds find_bounds(const struct mol_half_factors &factors,
                                                            const float sums[SUMS], const float *query,
                                                            const float *residuals)
{
  float kappa = find_kappa(factors, sums[SUM_LOGITS], sums[SUM_HIDDEN], query, residuals), kappa2 = kappa * kappa;
  float over = fast_reciprocal(sums[SUM_DEN]), score = sums[SUM_NUM] * over;
  float a = sums[SUM_A] * over * over, e = sums[SUM_E] * over * over, c = sums[SUM_C] * over * over;
  float sizes = c + score * score * a;
  c = fmaxf(c - 2 * score * e + score * score * a, 0.0f) + 0x1p-16f * sizes + 0x1p-60f; /* sizes keeps NaN */
  e -= score * a;
  float left = 1.0f - kappa2 * (a * (1 + 0x1p-15f)), x = kappa2 * e, root = fast_sqrt(x * x + kappa2 * c * left);
  float over_left = (1 + 0x1p-9f) / left;
  float rest = query[QUERY_MIX_ERROR] + query[QUERY_MIX_PER_RESIDUAL] * residuals[MOL_RESIDUAL_COMPONENT] +
               2 * query[QUERY_MIX_ROUNDING] * over_left + 0x1p-20f * fabsf(score);
  bool is_known = left >= 0x1p-4f;
  float upper = score + ((root - x) * over_left + rest), lower = score - ((root + x) * over_left + rest);
  return { is_known && upper == upper ? upper : INFINITY, is_known && lower == lower ? lower : -INFINITY };
}

/* Bound a strip's items. Each lane gets the bounds of its item. One warpgroup. */
template <class S>
static __device__ __forceinline__ struct bounds bound_strip_items(const struct bound_work &work,
                                                                  const bound_memory<S> &m, const unsigned char *items,
                                                                  const struct bound_strip &strip)
{
  uint32_t logits[S::STEPS][4], squares[2] = {};
  float half_w[S::M][4], sums[2][SUMS] = {}, mine[SUMS];

  find_logits<S>(m, strip, logits);
  run_gate<S>(m, logits, half_w, squares);
  mix<S>(logits, half_w, strip.gates, m.gates + strip.query * S::L, [&](int row, float e, float l) {
    float *sum = sums[row], r = e * l;
    sum[SUM_NUM] += r;
    sum[SUM_DEN] += e;
    sum[SUM_A] = fmaf(e, e, sum[SUM_A]);
    sum[SUM_E] = fmaf(e, r, sum[SUM_E]);
    sum[SUM_C] = fmaf(r, r, sum[SUM_C]);
    sum[SUM_LOGITS] = fmaf(l, l, sum[SUM_LOGITS]);
  });
  sums[0][SUM_HIDDEN] = half_pair_sum(squares[0]);
  sums[1][SUM_HIDDEN] = half_pair_sum(squares[1]);
  add_lanes<SUMS>(sums, mine);
  return find_bounds(work.factors, mine, m.query[strip.query], residuals_of<S>(items, strip.lane_row));
}

/* Report the largest lower bound of a strip in a scan, at number `at` of the query's. Every lane has the bound of
 * `slot`, its item. One warp. */
static __device__ __forceinline__ void report_maximum(const struct bound_work &work, uint32_t slot, uint32_t query,
                                                      uint32_t at, float lower)
{
  float best = slot < work.end && work.present[slot] ? lower : -INFINITY;

  if (work.admitted.of && query < work.n_queries && slot < work.end && !is_admitted(work.admitted, query, slot))
    best = -INFINITY;
  best = warp_max(best);
  if (warp_lane() == 0 && query < work.n_queries && at < work.n / STRIP_ITEMS)
    work.maxima[(size_t)query * (work.n / STRIP_ITEMS) + at] = best;
}

template <class S>
static __device__ __forceinline__ void find_maxima(const struct bound_work &work, const bound_memory<S> &m,
                                                   const unsigned char *items, const struct bound_place &at)
{
  struct bound_strip strip = choose_strip<S>(items, at.strip, at.query);
  struct bounds found = bound_strip_items<S>(work, m, items, strip);

  report_maximum(work, first_slot<S>(work, at.tile) + strip.lane_row, at.first_query + at.query,
                 at.tile * S::STRIPS + at.strip, found.lower);
}

/* Scan for maxima. */
template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(BOUND_THREADS, 1) bound_maxima(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, false> S;

  scan_tiles<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    find_maxima<S>(work, m, items, at);
  });
}

template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(BOUND_THREADS, 1) bound_maxima_single(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, true> S;

  scan_single<S>(work, [&](const bound_memory<S> &m, const unsigned char *items, const struct bound_place &at) {
    find_maxima<S>(work, m, items, at);
  });
}

/* Bound a tile of list entries and write their bounds. One warpgroup. */
template <class S>
static __device__ __forceinline__ void bound_entries(const struct bound_work &work, const bound_memory<S> &m,
                                                     const unsigned char *items, uint32_t n, uint32_t tile)
{
  struct bound_strip strip = choose_strip<S>(items, 0, 0);
  struct bounds found = bound_strip_items<S>(work, m, items, strip);
  uint32_t i = tile * S::TILE + strip.lane_row;

  if (!strip.is_reporter || i >= n)
    return;
  work.lists.scores[(size_t)blockIdx.y * work.lists.capacity + i] = found.upper;
  work.lowers[(size_t)blockIdx.y * work.lists.capacity + i] = found.lower;
}

/* Bound the entries of lists. */
template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(BOUND_THREADS, 1) bound_lists(struct bound_work work)
{
  begin_kernel();
  typedef sizes<N_COMPONENTS, DIM, true> S;
  uint32_t n = list_length(work.lists, blockIdx.y);

  work_on_own_tiles<S>(
      work, (n + S::TILE - 1) / S::TILE,
      [&](uint32_t tile, unsigned char *items) { load_entries<S>(work, n, tile, items); },
      [&](const bound_memory<S> &m, const unsigned char *items, uint32_t tile) {
        bound_entries<S>(work, m, items, n, tile);
      });
}

template <int N_COMPONENTS, int DIM> struct run_maxima {
  static err_code_t run(struct device_stream *stream, const struct bound_work &work, unsigned n_blocks)
  {
    return launch_either<N_COMPONENTS, DIM>(stream, work, n_blocks, bound_maxima_single<N_COMPONENTS, DIM>,
                                            bound_maxima<N_COMPONENTS, DIM>);
  }
};

template <int N_COMPONENTS, int DIM> struct run_lists {
  static err_code_t run(struct device_stream *stream, const struct bound_work &work, unsigned n_blocks)
  {
    typedef sizes<N_COMPONENTS, DIM, true> S;

    return launch_single<S>(stream, work, (unsigned)work.lists.n_lists, blocks_for(work.lists.capacity, S::TILE),
                            n_blocks, bound_lists<N_COMPONENTS, DIM>);
  }
};

template <int N_COMPONENTS, int DIM> static size_t least_bytes()
{
  typedef sizes<N_COMPONENTS, DIM, false> SHARED;
  typedef sizes<N_COMPONENTS, DIM, true> SINGLE;
  size_t scan = memory_bytes<SHARED>(SHARED::WARPGROUP_QUERIES, SHARED::STAGES, bound_warps()),
         lists = memory_bytes<SINGLE>(1, device_warps_together(), WARPS_OF_A_QUERY);

  return scan > lists ? scan : lists;
}

template <int N_COMPONENTS> static size_t least_bytes_of(size_t dim)
{
  return dim == 16   ? least_bytes<N_COMPONENTS, 16>()
         : dim == 32 ? least_bytes<N_COMPONENTS, 32>()
         : dim == 64 ? least_bytes<N_COMPONENTS, 64>()
                     : least_bytes<N_COMPONENTS, 128>();
}

size_t bound_least_bytes(const struct mol_shape *shape)
{
  return shape->n_item_components == 4 ? least_bytes_of<4>(shape->component_dim)
                                       : least_bytes_of<8>(shape->component_dim);
}

err_code_t mol_bounds_maxima(struct device_stream *stream, const struct mol_bounds_input *input, size_t n_slots,
                             size_t stride, size_t n_tiles, float *maxima)
{
  struct bound_work work = {};

  if (n_slots == 0 || n_tiles == 0)
    return ERR_OK;
  work.end = (uint32_t)n_slots;
  work.stride = (uint32_t)stride;
  work.n = (uint32_t)(n_tiles * DEVICE_TILE);
  work.maxima = maxima;
  return run_shape<run_maxima>(stream, input, work);
}

err_code_t mol_bounds_lists(struct device_stream *stream, const struct mol_bounds_input *input,
                            const struct device_lists *lists, float *lowers)
{
  struct bound_work work = {};

  if (lists->capacity == 0 || lists->n_lists == 0)
    return ERR_OK;
  work.lists = *lists;
  work.lowers = lowers;
  return run_shape<run_lists>(stream, input, work);
}
