/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of a block that computes bounds (mol_bounds.h): its layout, the queries with their norms for the
 * proof, and tiles of items. */
#ifndef KERNELS_CUDA_MOL_BOUNDS_TILE_CUH
#define KERNELS_CUDA_MOL_BOUNDS_TILE_CUH

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"
#include "kernels/cuda/mol_half_gate.cuh"
#include "kernels/cuda/warpgroup.cuh"

enum {
  STRIP_ITEMS = 16, /* that a warp works on */
  DEVICE_TILE = 64,
  SIZES_OF_A_QUERY = 8,
  WARPS_OF_A_QUERY = 2, /* that find norms */
  GRAM = BOUND_QUERY_COMPONENTS * BOUND_QUERY_COMPONENTS
};

/* A query's sizes in shared memory, and in their place first what they are computed from. The error of its logits is
 * ERROR + PER_RESIDUAL * the item's residual. MIX_ERROR and MIX_PER_RESIDUAL are the same for step 8. FLOOR is for
 * screening: the floor less MIX_ERROR. */
enum {
  QUERY_ERROR,
  QUERY_PER_RESIDUAL,
  QUERY_MIX_ERROR,
  QUERY_MIX_PER_RESIDUAL,
  QUERY_MIX_ROUNDING,
  QUERY_FLOOR,
  QUERY_MAX_GATE
};

/* Norms of a query's scaled components, then those of their rounding errors: spectral, Frobenius, and of the largest
 * row. They lie in front of QUERY_MAX_GATE. */
enum { NORM_SPECTRAL, NORM_FROBENIUS, NORM_LARGEST, NORMS };

/* Warps of a block: as many as registers allow. Without warpgroups, a warp has weights in registers too. A block with
 * one query may have fewer, if its shared memory has no room for more tiles. */
enum { BOUND_WARPS = 16, BOUND_WARPS_ALONE = 8 };

#if defined(__CUDA_ARCH__) && !defined(HAS_WARPGROUPS)
#define BOUND_THREADS (BOUND_WARPS_ALONE * WARP_LANES)
#else /* also on the host, which has no use for it, and the most on the model, which runs either kind */
#define BOUND_THREADS (BOUND_WARPS * WARP_LANES)
#endif

/* A kernel's sizes, which follow from P_x and d_P. IS_SINGLE: a block has one query, and each of its warps has tiles of
 * its own, of one strip. Else a block has many queries, and its warps share tiles. Item rows in shared memory are
 * padded by 16 bytes, so the eight rows that a warp reads at once are in different banks. */
template <int N_COMPONENTS, int DIM, bool IS_SINGLE> struct sizes {
  enum {
    M = N_COMPONENTS,
    D = DIM,
    L = M * BOUND_QUERY_COMPONENTS,
    STEPS = L / BOUND_STEP,
    ROW = M * D + 8, /* halves */
    GATE_ROW = L + 8,
    TILE = IS_SINGLE      ? STRIP_ITEMS
           : M * D <= 256 ? 64
           : M * D <= 512 ? 32
                          : 16,
    STAGES = 2, /* of tiles that warps share */
    STRIPS = TILE / STRIP_ITEMS,
    WARPGROUP_QUERIES = IS_SINGLE ? 1 : WARPGROUP_WARPS / STRIPS,
    TILE_BYTES = TILE * (ROW * 2 + GATE_ROW * 2 + MOL_RESIDUALS * 4),
    QUERIES_MAX = IS_SINGLE      ? 1
                  : M * D <= 512 ? 32
                                 : 16,
    QUERY_BYTES = BOUND_QUERY_COMPONENTS * D * 2 + (L + SIZES_OF_A_QUERY) * 4,
    CHUNKS_OF_COMPONENTS = M * D / 8, /* 16 bytes each */
    CHUNKS_OF_GATES = L / 8
  };
};

struct bound_work {
  struct mol_half_factors factors;
  const uint4 *weights;
  float inv_temperature;
  const uint8_t *present;
  struct mol_halves items;
  const float *query_components, *query_gates;
  uint32_t n_queries, n_group; /* all queries; queries per block */
  uint32_t first, end, stride; /* a scan's slots: of every stride-th DEVICE_TILE from `first` on, those below `end` */
  uint32_t n;                  /* items of all tiles of a scan */
  float *maxima;
  const float *floors; /* of a scan that screens, else NULL */
  float *lowers;       /* lower bounds of list entries */
  struct device_lists lists;
  struct admitted_words admitted; /* of a scan */
};

/* The arrays in a block's shared memory. */
template <class S> struct bound_memory {
  const half_bits *ones, *first, *second; /* as struct mol_half_gate has them */
  unsigned char *tiles;                   /* [n_tiles][TILE_BYTES] */
  uint2 *components;                      /* [n_group][d_P / 16][32]: b[0] and b[1] of mma_f16() */
  float *gates;                           /* [n_group][L]: times 1/2, in item-major order */
  float (*query)[SIZES_OF_A_QUERY];       /* [n_group] */
  float *scratch;                         /* [warps][GRAM] */
};

/* n_tiles is STAGES, or the number of warps if each has its own. n_warps: those that load queries. */
template <class S> static size_t memory_bytes(size_t n_group, size_t n_tiles, size_t n_warps)
{
  return bound_weight_bytes(S::L) + n_tiles * S::TILE_BYTES + n_group * S::QUERY_BYTES + n_warps * GRAM * sizeof(float);
}

template <class S> static __device__ __forceinline__ bound_memory<S> divide_memory(uint32_t n_group, uint32_t n_tiles)
{
  bound_memory<S> m;

  m.ones = shared_memory<half_bits>();
  m.first = m.ones + BOUND_ONES;
  m.second = m.first + bound_first_halves(S::L);
  m.tiles = shared_memory<unsigned char>() + bound_weight_bytes(S::L);
  m.components = reinterpret_cast<uint2 *>(m.tiles + n_tiles * S::TILE_BYTES);
  m.gates = reinterpret_cast<float *>(m.components + n_group * (S::D / BOUND_STEP) * WARP_LANES);
  m.query = reinterpret_cast<float(*)[SIZES_OF_A_QUERY]>(m.gates + n_group * S::L);
  m.scratch = reinterpret_cast<float *>(m.query + n_group);
  return m;
}

/* The number of a symmetric 8 x 8 matrix's square in row `row` and column `column`. */
static __device__ __forceinline__ float square_at(const float *matrix, unsigned row, unsigned column)
{
  const float4 *a = reinterpret_cast<const float4 *>(matrix + row * 8);
  const float4 *b = reinterpret_cast<const float4 *>(matrix + column * 8);
  float sum = 0.0f;

#pragma unroll
  for (unsigned i = 0; i < 2; i++)
    sum = fmaf(a[i].w, b[i].w, fmaf(a[i].z, b[i].z, fmaf(a[i].y, b[i].y, fmaf(a[i].x, b[i].x, sum))));
  return sum;
}

/* Return, in every lane, an upper bound on the spectral norm of 8 rows, at most 4% above it. `gram` has the rows' inner
 * products and is overwritten. The spectral norm is the square root of |gram|, and |gram| is at most
 * |gram^16|_F^(1/16). Dividing by the trace keeps the powers from underflowing. */
static __device__ float spectral_norm(float *gram, float trace)
{
  unsigned lane = warp_lane();
  float power = 0.0f;

  if (trace > 0.0f) { /* the same in all lanes */
    float mine[2] = { gram[lane] / trace, gram[lane + WARP_LANES] / trace };
#pragma unroll 1
    for (int squaring = 0; squaring < 4; squaring++) {
      __syncwarp();
      gram[lane] = mine[0];
      gram[lane + WARP_LANES] = mine[1];
      __syncwarp();
      for (unsigned i = 0; i < 2; i++)
        mine[i] = square_at(gram, lane / 8 + 4 * i, lane % 8);
    }
    power = warp_sum(fmaf(mine[0], mine[0], mine[1] * mine[1]));
#pragma unroll 1
    for (int root = 0; root < 6; root++)
      power = fast_sqrt(power);
    power *= 1.001f * fast_sqrt(trace); /* gram's rounding is at most 8 d_P u of its norm */
  }
  __syncwarp();
  return trace > 0.0f ? power : trace;
}

/* One number of a query's components times 1 / tau, or that product's rounding error. */
static __device__ __forceinline__ float scaled(float f, float inv_temperature, bool is_rounding)
{
  float x = f * inv_temperature;

  return is_rounding ? x - float_of(half_of(x)) : x;
}

static __device__ __forceinline__ float4 scaled(float4 f, float inv_temperature, bool is_rounding)
{
  return { scaled(f.x, inv_temperature, is_rounding), scaled(f.y, inv_temperature, is_rounding),
           scaled(f.z, inv_temperature, is_rounding), scaled(f.w, inv_temperature, is_rounding) };
}

/* Find the norms of the 8 scaled rows, or of their rounding errors. Lane 0 writes them. One warp. */
template <class S>
static __device__ void find_query_norms(const float *components, float inv_temperature, bool is_rounding, float *gram,
                                        float norms[NORMS])
{
  const float4 *rows = reinterpret_cast<const float4 *>(components);
  unsigned lane = warp_lane(), row = lane / 8, column = lane % 8;
  float trace = 0.0f, most = 0.0f, low = 0.0f, high = 0.0f; /* low, high: products of rows `row` and `row` + 4 */

#pragma unroll 4
  for (unsigned k = 0; k < S::D / 4; k++) {
    float4 a = scaled(rows[row * (S::D / 4) + k], inv_temperature, is_rounding);
    float4 b = scaled(rows[(row + 4) * (S::D / 4) + k], inv_temperature, is_rounding);
    float4 c = scaled(rows[column * (S::D / 4) + k], inv_temperature, is_rounding);
    low = fmaf(a.w, c.w, fmaf(a.z, c.z, fmaf(a.y, c.y, fmaf(a.x, c.x, low))));
    high = fmaf(b.w, c.w, fmaf(b.z, c.z, fmaf(b.y, c.y, fmaf(b.x, c.x, high))));
  }
  gram[lane] = low;
  gram[lane + WARP_LANES] = high;
  __syncwarp();
  for (unsigned n = 0; n < BOUND_QUERY_COMPONENTS; n++) {
    float square = gram[n * (BOUND_QUERY_COMPONENTS + 1)];
    trace += square;
    most = fmaxf(most, square); /* drops NaN, which the trace keeps */
  }
  __syncwarp();
  float spectral = spectral_norm(gram, trace);
  if (lane == 0) {
    norms[NORM_SPECTRAL] = spectral;
    norms[NORM_FROBENIUS] = sqrtf(trace);
    norms[NORM_LARGEST] = sqrtf(most);
  }
}

/* The floor of step 10 for an item without a residual, with room for every rounding of it. */
static __device__ __forceinline__ float lowered_floor(float floor, float mix_error)
{
  return floor - fmaf(0x1p-20f, fabsf(floor), mix_error);
}

/* Compute steps 1 and 8 of the proof for one query, from its norms, which it replaces. One thread. */
template <class S>
static __device__ __forceinline__ void find_query_sizes(const struct bound_work &work, uint32_t query,
                                                        float sizes[SIZES_OF_A_QUERY])
{
  const float u = 0x1p-24f, sums = S::D / BOUND_STEP * MMA_ERROR + (S::D + 6) * u;
  const float longest = BOUND_SECOND_ORDER * MOL_BOUND_NORM_MAX;
  float norms[NORMS], rounding[NORMS];

  for (int i = 0; i < NORMS; i++) {
    norms[i] = sizes[i];
    rounding[i] = sizes[NORMS + i];
  }
  float max_logit = longest * norms[NORM_LARGEST];
  sizes[QUERY_ERROR] =
      longest * sqrtf((float)S::M) * (rounding[NORM_SPECTRAL] + sums * norms[NORM_FROBENIUS]) + 0x1p-21f;
  sizes[QUERY_PER_RESIDUAL] = BOUND_SECOND_ORDER * sqrtf((float)S::M) * norms[NORM_SPECTRAL];
  sizes[QUERY_MIX_ERROR] = longest * (rounding[NORM_LARGEST] + sums * norms[NORM_LARGEST]) +
                           (0x1p-11f + (2 * S::L + 4) * u) * max_logit + 0x1p-21f;
  sizes[QUERY_MIX_PER_RESIDUAL] = BOUND_SECOND_ORDER * norms[NORM_LARGEST];
  sizes[QUERY_MIX_ROUNDING] = 48 * u * max_logit;
  if (work.floors)
    sizes[QUERY_FLOOR] = lowered_floor(work.floors[query], sizes[QUERY_MIX_ERROR]);
}

/* Load a query's components, as the tensor core's second operand. One warp. */
template <class S>
static __device__ __forceinline__ void load_query_components(const float *components, float inv_temperature, uint2 *out)
{
  unsigned lane = warp_lane();

  for (unsigned step = 0; step < S::D / BOUND_STEP; step++) {
    float x[4];
    for (unsigned i = 0; i < 4; i++) {
      unsigned k = step * BOUND_STEP + lane % 4 * 2 + i / 2 * 8 + i % 2;
      x[i] = scaled(components[lane / 4 * S::D + k], inv_temperature, false);
    }
    uint2 both;
    both.x = half_pair(x[0], x[1]);
    both.y = half_pair(x[2], x[3]);
    out[step * WARP_LANES + lane] = both;
  }
}

/* Load a query's gates. Returns the largest in lane 0. One warp. */
template <class S> static __device__ __forceinline__ float load_query_gates(const float *gates, float *out)
{
  float largest = 0.0f;

#pragma unroll
  for (unsigned i = warp_lane(); i < S::L; i += WARP_LANES) {
    float gate = gates[i % BOUND_QUERY_COMPONENTS * S::M + i / BOUND_QUERY_COMPONENTS];
    largest = fmaxf(largest, fabsf(gate)); /* drops NaN, which makes the score NaN anyway */
    out[i] = 0.5f * gate;
  }
  return warp_max(largest);
}

/* The query at place q of the block's. Queries past the end repeat the last one. */
static __device__ __forceinline__ uint32_t query_at(const struct bound_work &work, uint32_t first_query, uint32_t q)
{
  return first_query + q < work.n_queries ? first_query + q : work.n_queries - 1;
}

/* Load a block's queries, but for the sizes that find_sizes() finds of all. Four warps share a query, so none waits for
 * memory more than once: two find norms, one loads the components, one the gates. */
template <class S>
static __device__ __forceinline__ void load_queries(const struct bound_work &work, const bound_memory<S> &m,
                                                    uint32_t first_query, unsigned n_threads)
{
  uint32_t warp = threadIdx.x / WARP_LANES, n = work.n_group;

  for (uint32_t i = warp; i < 4 * n; i += n_threads / WARP_LANES) {
    uint32_t q = i < 2 * n ? i / 2 : i % n, query = query_at(work, first_query, q);
    const float *components = work.query_components + (size_t)query * BOUND_QUERY_COMPONENTS * S::D;
    if (i < 2 * n) {
      find_query_norms<S>(components, work.inv_temperature, i % 2, m.scratch + warp * GRAM, m.query[q] + i % 2 * NORMS);
    } else if (i < 3 * n) {
      load_query_components<S>(components, work.inv_temperature, m.components + q * (S::D / BOUND_STEP) * WARP_LANES);
    } else {
      float gate = load_query_gates<S>(work.query_gates + (size_t)query * S::L, m.gates + q * S::L);
      if (warp_lane() == 0)
        m.query[q][QUERY_MAX_GATE] = gate;
    }
  }
}

/* Find the sizes of the queries that load_queries() has loaded. Has barriers. */
template <class S>
static __device__ __forceinline__ void find_sizes(const struct bound_work &work, const bound_memory<S> &m,
                                                  uint32_t first_query)
{
  __syncthreads();
  if (threadIdx.x < work.n_group)
    find_query_sizes<S>(work, query_at(work, first_query, threadIdx.x), m.query[threadIdx.x]);
  __syncthreads();
}

/* The first slot of a tile of a scan. The kernel's tiles divide those of 64 items that a stride counts. */
template <class S> static __device__ __forceinline__ uint32_t first_slot(const struct bound_work &work, uint32_t tile)
{
  uint32_t i = tile * S::TILE;

  return work.first + i / DEVICE_TILE * work.stride * DEVICE_TILE + i % DEVICE_TILE;
}

/* Start to prefetch a tile's items, whose slots are slot_of(row). n_threads call this, this one is number `thread`.
 * slot_of() may need whole warps. AT_A_TIME: how often the loops are unrolled, where registers allow. */
template <class S, int AT_A_TIME, class SLOT_OF>
static __device__ __forceinline__ void load_rows(const struct bound_work &work, unsigned char *to, unsigned thread,
                                                 unsigned n_threads, SLOT_OF slot_of)
{
  unsigned char *gates = to + S::TILE * S::ROW * 2, *residuals = gates + S::TILE * S::GATE_ROW * 2;

#pragma unroll AT_A_TIME
  for (unsigned i = thread; i < S::TILE * S::CHUNKS_OF_COMPONENTS; i += n_threads) {
    unsigned row = i / S::CHUNKS_OF_COMPONENTS, chunk = i % S::CHUNKS_OF_COMPONENTS;
    copy_async(to + row * S::ROW * 2 + chunk * 16,
               work.items.components + (size_t)slot_of(row) * (S::M * S::D) + chunk * 8);
  }
#pragma unroll AT_A_TIME
  for (unsigned i = thread; i < S::TILE * S::CHUNKS_OF_GATES; i += n_threads) {
    unsigned row = i / S::CHUNKS_OF_GATES, chunk = i % S::CHUNKS_OF_GATES;
    copy_async(gates + row * S::GATE_ROW * 2 + chunk * 16, work.items.gates + (size_t)slot_of(row) * S::L + chunk * 8);
  }
  uint32_t slot = slot_of(thread % S::TILE);
  if (thread < S::TILE)
    copy_async(residuals + thread * MOL_RESIDUALS * 4, work.items.residuals + (size_t)slot * MOL_RESIDUALS);
}

/* Start to prefetch a tile of a scan. Items past the end repeat the last one. */
template <class S>
static __device__ __forceinline__ void load_tile(const struct bound_work &work, uint32_t tile, unsigned char *to,
                                                 unsigned thread, unsigned n_threads)
{
  uint32_t first = first_slot<S>(work, tile), last = work.end - 1;

  load_rows<S, 1>(work, to, thread, n_threads, [&](unsigned row) { return first + row < last ? first + row : last; });
}

/* The same for a tile of a list of n entries. One warp. */
template <class S>
static __device__ __forceinline__ void load_entries(const struct bound_work &work, uint32_t n, uint32_t tile,
                                                    unsigned char *to)
{
  uint32_t mine = tile * S::TILE + warp_lane() % S::TILE;
  uint32_t slot = work.lists.slots[(size_t)blockIdx.y * work.lists.capacity + (mine < n ? mine : n - 1)];

  static_assert((int)S::TILE <= (int)WARP_LANES, "a lane for each entry");
  static_assert(S::TILE * S::CHUNKS_OF_GATES % WARP_LANES == 0, "whole warps copy chunks");
  load_rows<S, 4>(work, to, warp_lane(), WARP_LANES,
                  [&](unsigned row) { return __shfl_sync(WARP_ALL, slot, (int)row); });
}

/* The row that a lane gives to load_matrices() for the first step of a strip. */
template <class S> static __device__ __forceinline__ const uint16_t *operand_row(const uint16_t *rows)
{
  unsigned lane = warp_lane();

  return rows + lane % STRIP_ITEMS * S::ROW + lane / STRIP_ITEMS * 8;
}

#endif
