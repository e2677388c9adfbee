/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of mol_bounds.h.
 *
 * A warp works on two sets, each of 16 items and one query. In a scan the two sets have the same items and two queries;
 * in lists they have one query and two groups of items. The tensor core's output of one layer is, lane for lane, its
 * input of the next. The logits of two item components are the 16 inputs of a step of the first layer, and 16 hidden
 * units are the inputs of a step of the second. So only weights, queries and items come from shared memory. All loads
 * are 4, 8 or 16 bytes per lane from different banks. A tile of items is prefetched while the one before is computed.
 */
#include "kernels/cuda/mol_bounds.h"

#include "kernels/cuda/mol_bounds_tile.cuh"

/* Sums over the logits of one item and query; HIDDEN is over the hidden units. */
enum { SUM_NUM, SUM_DEN, SUM_A, SUM_E, SUM_C, SUM_LOGITS, SUM_GATES, SUM_HIDDEN, SUMS };

#define LOG2_E 1.44269504f
/* Subtracted from every exponent, to keep the squares of the softmax's weights within f32. */
#define EXPONENT_SHIFT 40.0f

/* A warp's two sets: the items' rows and the query of each. */
struct bound_sets {
  const uint16_t *rows[SETS], *gates[SETS];
  uint32_t query[SETS];
};

/* Compute the logits of both sets, laid out as inputs of the first layer. */
template <class S, bool IS_LISTS>
static __device__ __forceinline__ void find_logits(const bound_memory<S> &m, const struct bound_sets &sets,
                                                   uint32_t logits[SETS][S::STEPS][4])
{
  const int per_load = S::D == 16 ? 1 : 2, d_steps = S::D / BOUND_STEP;
  float sums[SETS][S::M][4];

#pragma unroll
  for (int step = 0; step < d_steps; step += per_load) {
    uint2 b[SETS][2];
#pragma unroll
    for (int s = 0; s < (IS_LISTS ? 1 : SETS); s++) {
#pragma unroll
      for (int i = 0; i < per_load; i++)
        b[s][i] = m.components[(sets.query[s] * d_steps + step + i) * WARP_LANES + warp_lane()];
    }
#pragma unroll
    for (int c = 0; c < S::M; c++) {
      uint32_t a[2][4];
#pragma unroll
      for (int s = 0; s < SETS; s++) {
        const uint2 *of_query = b[IS_LISTS ? 0 : s];
        if (s == 0 || IS_LISTS)
          load_rows<S>(sets.rows[s], c, step, a);
#pragma unroll
        for (int i = 0; i < per_load; i++) {
          const float zeros[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
          const uint32_t operand[2] = { of_query[i].x, of_query[i].y };
          mma_f16(sums[s][c], a[i], operand, step + i == 0 ? zeros : sums[s][c]);
        }
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

/* Compute 16 hidden units of one set, laid out as inputs of the second layer. Add their squares to `squares` by row. */
static __device__ __forceinline__ void activate(const float y[2][4], uint32_t hidden[4], float squares[2])
{
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float h[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      h[k] = fmaf(y[i][k], fast_tanh(y[i][k]), y[i][k]);
      squares[k / 2] = fmaf(h[k], h[k], squares[k / 2]);
    }
    hidden[2 * i] = half_pair(h[0], h[1]);
    hidden[2 * i + 1] = half_pair(h[2], h[3]);
  }
}

/* Run both layers. Writes w / 2 to `gates` and the sums of squared hidden units to `squares`. */
template <class S>
static __device__ __forceinline__ void run_gate(const bound_memory<S> &m, const uint32_t logits[SETS][S::STEPS][4],
                                                float gates[SETS][S::M][4], float squares[SETS][2])
{
  unsigned column = warp_lane() % 4 * 2;

#pragma unroll
  for (int c = 0; c < S::M; c++) {
    float2 bias = *reinterpret_cast<const float2 *>(m.bias2 + c * 8 + column);
#pragma unroll
    for (int s = 0; s < SETS; s++)
      gates[s][c][0] = gates[s][c][2] = bias.x, gates[s][c][1] = gates[s][c][3] = bias.y;
  }
#pragma unroll 1
  for (int chunk = 0; chunk < S::CHUNKS; chunk++) {
    const uint4 *first = m.first + chunk * S::STEPS * WARP_LANES + warp_lane();
    const uint4 *second = m.second + chunk * S::STEPS * WARP_LANES + warp_lane();
    float y[SETS][2][4];
    uint32_t hidden[SETS][4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float2 bias = *reinterpret_cast<const float2 *>(m.bias1 + chunk * BOUND_STEP + i * 8 + column);
#pragma unroll
      for (int s = 0; s < SETS; s++)
        y[s][i][0] = y[s][i][2] = bias.x, y[s][i][1] = y[s][i][3] = bias.y;
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
}

/* Add one logit to the sums. half_z is half the argument of its gate's SiLU. */
static __device__ __forceinline__ void add_logit(float sums[SUMS], float half_z, float l)
{
  float x = fmaf(half_z, fast_tanh(half_z), half_z);
  float e = fast_exp2(fmaf(x, LOG2_E, -EXPONENT_SHIFT)), r = e * l;

  sums[SUM_NUM] += r;
  sums[SUM_DEN] += e;
  sums[SUM_A] = fmaf(e, e, sums[SUM_A]);
  sums[SUM_E] = fmaf(e, r, sums[SUM_E]);
  sums[SUM_C] = fmaf(r, r, sums[SUM_C]);
  sums[SUM_LOGITS] = fmaf(l, l, sums[SUM_LOGITS]);
  sums[SUM_GATES] = fmaf(half_z, half_z, sums[SUM_GATES]);
}

/* Add a lane's share of both rows of one set to the sums. */
template <class S>
static __device__ __forceinline__ void mix(const uint32_t logits[S::STEPS][4], const float gates[S::M][4],
                                           const uint16_t *item_gates, const float *query_gates, float sums[2][SUMS])
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
      add_logit(sums[row], fmaf(u.x, float_of((half_bits)v), gates[c][2 * row]), float_of((half_bits)l));
      add_logit(sums[row], fmaf(u.y, float_of((half_bits)(v >> 16)), gates[c][2 * row + 1]),
                float_of((half_bits)(l >> 16)));
    }
  }
}

/* Add up the four lanes of a row. Lane t of the four gets the sums of set t / 2, row t % 2. */
static __device__ __forceinline__ void add_lanes(const float sums[SETS][2][SUMS], float out[SUMS])
{
  bool is_second = warp_lane() & 2, is_high = warp_lane() & 1;

#pragma unroll
  for (int i = 0; i < SUMS; i++) {
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

/* Compute steps 6 to 8 of the proof for one item and query. The bounds are never NaN. */
static __device__ __forceinline__ void find_bounds(const struct mol_half_factors &factors, const float sums[SUMS],
                                                   const float *query, const float *residuals, float *upper,
                                                   float *lower)
{
  float l = fast_sqrt(sums[SUM_LOGITS]), h = fast_sqrt(sums[SUM_HIDDEN]), z = 2 * fast_sqrt(sums[SUM_GATES]);
  float component = residuals[MOL_RESIDUAL_COMPONENT];
  float logit_error = fmaf(query[QUERY_PER_RESIDUAL], component, fmaf(0x1p-11f, l, query[QUERY_ERROR]));
  float gate_error = query[QUERY_MAX_GATE] * residuals[MOL_RESIDUAL_GATE];
  float delta = factors.constant + factors.logit_errors * logit_error + factors.logits * l + factors.hidden * h +
                factors.gate_errors * gate_error + factors.gates * z;
  float kappa = exp_less_one(delta), kappa2 = kappa * kappa;
  float over = fast_reciprocal(sums[SUM_DEN]), score = sums[SUM_NUM] * over;
  float a = sums[SUM_A] * over * over, e = sums[SUM_E] * over * over, c = sums[SUM_C] * over * over;
  float sizes = c + score * score * a;
  c = fmaxf(c - 2 * score * e + score * score * a, 0.0f) + 0x1p-16f * sizes + 0x1p-60f; /* sizes keeps NaN */
  e -= score * a;
  float left = 1.0f - kappa2 * (a * (1 + 0x1p-15f)), x = kappa2 * e, root = fast_sqrt(x * x + kappa2 * c * left);
  float over_left = (1 + 0x1p-9f) / left;
  float rest = query[QUERY_MIX_ERROR] + query[QUERY_MIX_PER_RESIDUAL] * component +
               2 * query[QUERY_MIX_ROUNDING] * over_left + 0x1p-20f * fabsf(score);
  bool is_known = left >= 0x1p-4f;
  *upper = score + ((root - x) * over_left + rest);
  *lower = score - ((root + x) * over_left + rest);
  *upper = is_known && *upper == *upper ? *upper : INFINITY;
  *lower = is_known && *lower == *lower ? *lower : -INFINITY;
}

/* Report a scan's item in `slot` and query: append the item if it may reach the floor. */
static __device__ __forceinline__ void report_item(const struct bound_work &work, uint32_t slot, uint32_t query,
                                                   float upper, float lower)
{
  if (slot >= work.end || query >= work.n_queries || upper < work.floors[query] || !work.present[slot])
    return;
  uint32_t at = append(work.lists, query, slot, upper);
  if (work.lowers && at < work.lists.capacity)
    work.lowers[(size_t)query * work.lists.capacity + at] = lower;
}

/* Report the largest lower bound of a group of 16 items in a scan. Lanes with the same lane % 4 / 2 have the same
 * query. One warp. */
static __device__ __forceinline__ void report_maximum(const struct bound_work &work, uint32_t slot, uint32_t query,
                                                      uint32_t at, float lower)
{
  float best = slot < work.end && work.present[slot] ? lower : -INFINITY;

  best = fmaxf(best, __shfl_xor_sync(WARP_ALL, best, 1));
  for (int step = 4; step < WARP_LANES; step *= 2)
    best = fmaxf(best, __shfl_xor_sync(WARP_ALL, best, step));
  if ((warp_lane() & ~2u) == 0 && query < work.n_queries)
    work.maxima[(size_t)query * (work.n / GROUP_ITEMS) + at] = best;
}

/* Report a list's entry: write its bounds. */
static __device__ __forceinline__ void report_entry(const struct bound_work &work, uint32_t n, uint32_t i,
                                                    uint32_t query, float upper, float lower)
{
  if (i >= n)
    return;
  work.lists.scores[(size_t)query * work.lists.capacity + i] = upper;
  work.lowers[(size_t)query * work.lists.capacity + i] = lower;
}

/* Bound 16 items by two queries, or 32 items by one query. One warp. */
template <class S, bool IS_LISTS>
static __device__ __forceinline__ void work_on(const struct bound_work &work, const bound_memory<S> &m,
                                               const unsigned char *items, unsigned group, uint32_t pair, uint32_t n,
                                               uint32_t tile, uint32_t first_query)
{
  const uint16_t *rows = reinterpret_cast<const uint16_t *>(items), *gates = rows + S::TILE * S::ROW;
  const float *residuals = reinterpret_cast<const float *>(gates + S::TILE * S::GATE_ROW);
  unsigned lane = warp_lane();
  uint32_t logits[SETS][S::STEPS][4];
  float half_w[SETS][S::M][4], squares[SETS][2] = {}, sums[SETS][2][SUMS] = {}, mine[SUMS], upper, lower;
  struct bound_sets sets;

#pragma unroll
  for (unsigned s = 0; s < SETS; s++) {
    unsigned row = IS_LISTS ? (group * SETS + s) * GROUP_ITEMS : group * GROUP_ITEMS;
    sets.rows[s] = rows + row * S::ROW;
    sets.gates[s] = gates + row * S::GATE_ROW;
    sets.query[s] = IS_LISTS ? 0 : pair * SETS + s;
  }
  find_logits<S, IS_LISTS>(m, sets, logits);
  run_gate<S>(m, logits, half_w, squares);
#pragma unroll
  for (unsigned s = 0; s < SETS; s++) {
    mix<S>(logits[s], half_w[s], sets.gates[s], m.gates + sets.query[s] * S::L, sums[s]);
    sums[s][0][SUM_HIDDEN] = squares[s][0];
    sums[s][1][SUM_HIDDEN] = squares[s][1];
  }
  add_lanes(sums, mine);
  unsigned set = lane % 4 / 2, row = lane / 4 + lane % 2 * 8;
  row += IS_LISTS ? (group * SETS + set) * GROUP_ITEMS : group * GROUP_ITEMS;
  uint32_t query = IS_LISTS ? 0 : pair * SETS + set;
  find_bounds(work.factors, mine, m.query[query], residuals + row * MOL_RESIDUALS, &upper, &lower);
  if (IS_LISTS)
    report_entry(work, n, tile * S::TILE + row, first_query + query, upper, lower);
  else if (work.maxima)
    report_maximum(work, first_slot<S>(work, tile) + row, first_query + query, tile * S::GROUPS + group, lower);
  else
    report_item(work, first_slot<S>(work, tile) + row, first_query + query, upper, lower);
}

/* Scan. The grid is [blocks][groups of n_group queries]. */
template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(sizes<N_COMPONENTS, DIM, false>::THREADS, 1)
    bound_pairs(struct bound_work work)
{
  typedef sizes<N_COMPONENTS, DIM, false> S;
  bound_memory<S> m = divide_memory<S>(work.n_group, S::STAGES);
  unsigned warp = threadIdx.x / WARP_LANES;
  uint32_t first_query = blockIdx.y * work.n_group, n_tiles = (work.n + S::TILE - 1) / S::TILE;

  for (unsigned i = threadIdx.x; i < bound_weight_bytes(S::L) / 16; i += S::THREADS)
    copy_async(shared_memory<uint4>() + i, work.weights + i);
  if (blockIdx.x < n_tiles)
    load_tile<S>(work, blockIdx.x, m.tiles);
  copy_async_commit();
  for (uint32_t q = warp; q < work.n_group; q += S::WARPS) /* queries past the end repeat the last one */
    load_query<S>(work, m, q, first_query + q < work.n_queries ? first_query + q : work.n_queries - 1);
  for (uint32_t tile = blockIdx.x, i = 0; tile < n_tiles; tile += gridDim.x, i++) {
    if (tile + gridDim.x < n_tiles)
      load_tile<S>(work, tile + gridDim.x, m.tiles + (i + 1) % 2 * S::TILE_BYTES);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    for (uint32_t pair = warp / S::GROUPS; pair < (work.n_group + SETS - 1) / SETS; pair += S::WARPS / S::GROUPS)
      work_on<S, false>(work, m, m.tiles + i % S::STAGES * S::TILE_BYTES, warp % S::GROUPS, pair, work.n, tile,
                        first_query);
    __syncthreads();
  }
  copy_async_wait<0>(); /* for a block without tiles */
}

/* Bound the entries of lists. The grid is [blocks][lists]. Each warp loads and bounds tiles of its own: while it waits,
 * the others work. */
template <int N_COMPONENTS, int DIM>
static __global__ void __launch_bounds__(sizes<N_COMPONENTS, DIM, true>::THREADS, 1)
    bound_lists(struct bound_work work)
{
  typedef sizes<N_COMPONENTS, DIM, true> S;
  uint32_t n_warps = blockDim.x / WARP_LANES, warp = threadIdx.x / WARP_LANES;
  uint32_t n = list_length(work.lists, blockIdx.y), n_tiles = (n + S::TILE - 1) / S::TILE;
  uint32_t tile = blockIdx.x + warp * gridDim.x; /* short lists are spread over blocks */
  bound_memory<S> m = divide_memory<S>(1, n_warps);
  unsigned char *items = m.tiles + warp * S::TILE_BYTES;

  if (blockIdx.x >= n_tiles)
    return;
  for (unsigned i = threadIdx.x; i < bound_weight_bytes(S::L) / 16; i += blockDim.x)
    copy_async(shared_memory<uint4>() + i, work.weights + i);
  if (tile < n_tiles)
    load_entries<S>(work, n, tile, items);
  copy_async_commit();
  if (warp == 0)
    load_query<S>(work, m, 0, blockIdx.y);
  copy_async_wait<0>();
  __syncthreads();
  while (tile < n_tiles) {
    work_on<S, true>(work, m, items, 0, 0, n, tile, blockIdx.y);
    tile += gridDim.x * n_warps;
    __syncwarp();
    if (tile < n_tiles)
      load_entries<S>(work, n, tile, items);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
  }
}

template <int N_COMPONENTS, int DIM>
static err_code_t run_scan(struct device_stream *stream, struct bound_work work, unsigned n_blocks)
{
  typedef sizes<N_COMPONENTS, DIM, false> S;
  uint32_t most = S::QUERIES_MAX, even = (work.n_queries + 1) / SETS * SETS;

  while (most > SETS && memory_bytes<S>(most, S::STAGES) > device_shared_bytes(SIZE_MAX))
    most -= SETS;
  work.n_group = even < most ? even : most;
  unsigned n_groups = blocks_for(work.n_queries, work.n_group), n_tiles = blocks_for(work.n, S::TILE);
  unsigned share = n_blocks / n_groups ? n_blocks / n_groups : 1;
  return launch(stream, dim3(n_tiles < share ? n_tiles : share, n_groups), S::THREADS,
                memory_bytes<S>(work.n_group, S::STAGES), bound_pairs<N_COMPONENTS, DIM>, work);
}

template <int N_COMPONENTS, int DIM>
static err_code_t run_lists(struct device_stream *stream, struct bound_work work, unsigned n_blocks)
{
  typedef sizes<N_COMPONENTS, DIM, true> S;
  unsigned n_lists = (unsigned)work.lists.n_lists, n_tiles = blocks_for(work.lists.capacity, S::TILE);
  unsigned share = n_blocks / n_lists ? n_blocks / n_lists : 1, n_warps = S::WARPS;

  while (n_warps > 1 && memory_bytes<S>(1, n_warps) > device_shared_bytes(SIZE_MAX))
    n_warps--;
  work.n_group = 1;
  return launch(stream, dim3(n_tiles < share ? n_tiles : share, n_lists), n_warps * WARP_LANES,
                memory_bytes<S>(1, n_warps), bound_lists<N_COMPONENTS, DIM>, work);
}

template <int N_COMPONENTS, int DIM, bool IS_LISTS>
static err_code_t run_with(struct device_stream *stream, const struct bound_work &work, unsigned n_blocks)
{
  return IS_LISTS ? run_lists<N_COMPONENTS, DIM>(stream, work, n_blocks)
                  : run_scan<N_COMPONENTS, DIM>(stream, work, n_blocks);
}

template <int N_COMPONENTS, int DIM> static size_t least_bytes()
{
  size_t scan = memory_bytes<sizes<N_COMPONENTS, DIM, false>>(SETS, sizes<N_COMPONENTS, DIM, false>::STAGES),
         lists = memory_bytes<sizes<N_COMPONENTS, DIM, true>>(1, 1);

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

template <int N_COMPONENTS, bool IS_LISTS>
static err_code_t run_components(struct device_stream *stream, const struct bound_work &work, size_t dim,
                                 unsigned n_blocks)
{
  if (dim == 16)
    return run_with<N_COMPONENTS, 16, IS_LISTS>(stream, work, n_blocks);
  if (dim == 32)
    return run_with<N_COMPONENTS, 32, IS_LISTS>(stream, work, n_blocks);
  if (dim == 64)
    return run_with<N_COMPONENTS, 64, IS_LISTS>(stream, work, n_blocks);
  return run_with<N_COMPONENTS, 128, IS_LISTS>(stream, work, n_blocks);
}

template <bool IS_LISTS>
static err_code_t run(struct device_stream *stream, const struct mol_bounds_input *input, struct bound_work work)
{
  const struct mol_shape *shape = &input->gate->shape;

  if (input->n_queries == 0)
    return ERR_OK;
  work.factors = input->gate->factors;
  work.weights = input->gate->weights;
  work.inv_temperature = shape->inv_temperature;
  work.present = input->present;
  work.items = input->items;
  work.query_components = input->query_components;
  work.query_gates = input->query_gates;
  work.n_queries = (uint32_t)input->n_queries;
  return shape->n_item_components == 4
             ? run_components<4, IS_LISTS>(stream, work, shape->component_dim, input->n_blocks)
             : run_components<8, IS_LISTS>(stream, work, shape->component_dim, input->n_blocks);
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
  return run<false>(stream, input, work);
}

err_code_t mol_bounds_append(struct device_stream *stream, const struct mol_bounds_input *input, size_t first, size_t n,
                             const float *floors, const struct device_lists *lists, float *lowers)
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
  work.lowers = lowers;
  return run<false>(stream, input, work);
}

err_code_t mol_bounds_lists(struct device_stream *stream, const struct mol_bounds_input *input,
                            const struct device_lists *lists, float *lowers)
{
  struct bound_work work = {};

  if (lists->capacity == 0 || lists->n_lists == 0)
    return ERR_OK;
  work.lists = *lists;
  work.lowers = lowers;
  return run<true>(stream, input, work);
}
