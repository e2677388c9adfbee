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
  GRAM = BOUND_QUERY_COMPONENTS * BOUND_QUERY_COMPONENTS
};

/* A query's sizes in shared memory. The error of its logits is ERROR + PER_RESIDUAL * the item's residual. MIX_ERROR
 * and MIX_PER_RESIDUAL are the same for step 8. FLOOR is for screening: the floor less MIX_ERROR. */
enum {
  QUERY_ERROR,
  QUERY_PER_RESIDUAL,
  QUERY_MIX_ERROR,
  QUERY_MIX_PER_RESIDUAL,
  QUERY_MIX_ROUNDING,
  QUERY_MAX_GATE,
  QUERY_FLOOR
};

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
    CHUNKS_OF_GATES = L / 8,
    CHUNKS_OF_AN_ITEM = CHUNKS_OF_COMPONENTS + CHUNKS_OF_GATES + 1
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

/* Return, in every lane, an upper bound on the spectral norm of 8 rows, at most 4% above it. `gram` has the rows' inner
 * products and is overwritten. The spectral norm is the square root of |gram|, and |gram| is at most
 * |gram^16|_F^(1/16). Dividing by the trace keeps the powers from underflowing. */
static __device__ float spectral_norm(float *gram, float trace)
{
  unsigned lane = warp_lane();
  float power = 0.0f;

  if (trace > 0.0f) { /* the same in all lanes */
    float mine[2] = { gram[lane] / trace, gram[lane + WARP_LANES] / trace };
    for (int squaring = 0; squaring < 4; squaring++) {
      __syncwarp();
      gram[lane] = mine[0];
      gram[lane + WARP_LANES] = mine[1];
      __syncwarp();
      for (unsigned i = 0; i < 2; i++) {
        unsigned row = lane / 8 + 4 * i, column = lane % 8;
        mine[i] = 0.0f;
        for (unsigned k = 0; k < 8; k++)
          mine[i] = fmaf(gram[row * 8 + k], gram[k * 8 + column], mine[i]);
      }
    }
    power = warp_sum(fmaf(mine[0], mine[0], mine[1] * mine[1]));
    for (int root = 0; root < 6; root++)
      power = sqrtf(power);
    power *= 1.001f * sqrtf(trace); /* gram's rounding is at most 8 d_P u of its norm */
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

/* Find the norms of the 8 scaled rows, or of their rounding errors: spectral, Frobenius, and the largest row's. One
 * warp. */
template <class S>
static __device__ void find_query_norms(const float *components, float inv_temperature, bool is_rounding, float *gram,
                                        float norms[3])
{
  unsigned lane = warp_lane();
  float trace = 0.0f, most = 0.0f;

  for (unsigned i = 0; i < 2; i++) {
    const float *a = components + (lane / 8 + 4 * i) * S::D, *b = components + lane % 8 * S::D;
    float sum = 0.0f;
    for (unsigned k = 0; k < S::D; k++)
      sum = fmaf(scaled(a[k], inv_temperature, is_rounding), scaled(b[k], inv_temperature, is_rounding), sum);
    gram[lane + i * WARP_LANES] = sum;
  }
  __syncwarp();
  for (unsigned n = 0; n < BOUND_QUERY_COMPONENTS; n++) {
    float square = gram[n * (BOUND_QUERY_COMPONENTS + 1)];
    trace += square;
    most = fmaxf(most, square); /* drops NaN, which the trace keeps */
  }
  __syncwarp();
  norms[0] = spectral_norm(gram, trace);
  norms[1] = sqrtf(trace);
  norms[2] = sqrtf(most);
}

/* Compute steps 1 and 8 of the proof for one query. One warp. */
template <class S>
static __device__ void find_query_sizes(const float *components, const float *gates, float inv_temperature, float *gram,
                                        float *out)
{
  const float u = 0x1p-24f, sums = S::D / BOUND_STEP * MMA_ERROR + (S::D + 6) * u;
  const float longest = BOUND_SECOND_ORDER * MOL_BOUND_NORM_MAX;
  float norms[3], rounding[3], gate = 0.0f;

  find_query_norms<S>(components, inv_temperature, false, gram, norms);
  find_query_norms<S>(components, inv_temperature, true, gram, rounding);
  for (unsigned p = warp_lane(); p < S::L; p += WARP_LANES)
    gate = fmaxf(gate, fabsf(gates[p])); /* drops NaN, which makes the score NaN anyway */
  gate = warp_max(gate);
  if (warp_lane() != 0)
    return;
  float max_logit = longest * norms[2];
  out[QUERY_ERROR] = longest * sqrtf((float)S::M) * (rounding[0] + sums * norms[1]) + 0x1p-21f;
  out[QUERY_PER_RESIDUAL] = BOUND_SECOND_ORDER * sqrtf((float)S::M) * norms[0];
  out[QUERY_MIX_ERROR] =
      longest * (rounding[2] + sums * norms[2]) + (0x1p-11f + (2 * S::L + 4) * u) * max_logit + 0x1p-21f;
  out[QUERY_MIX_PER_RESIDUAL] = BOUND_SECOND_ORDER * norms[2];
  out[QUERY_MIX_ROUNDING] = 48 * u * max_logit;
  out[QUERY_MAX_GATE] = gate;
}

/* The floor of step 10 for an item without a residual, with room for every rounding of it. */
static __device__ __forceinline__ float lowered_floor(float floor, float mix_error)
{
  return floor - fmaf(0x1p-20f, fabsf(floor), mix_error);
}

template <class S>
static __device__ void load_query(const struct bound_work &work, const bound_memory<S> &m, uint32_t q, uint32_t query)
{
  const float *components = work.query_components + (size_t)query * BOUND_QUERY_COMPONENTS * S::D;
  const float *gates = work.query_gates + (size_t)query * S::L;
  unsigned lane = warp_lane();

  for (unsigned step = 0; step < S::D / BOUND_STEP; step++) {
    float x[4];
    for (unsigned i = 0; i < 4; i++) {
      unsigned k = step * BOUND_STEP + lane % 4 * 2 + i / 2 * 8 + i % 2;
      x[i] = scaled(components[lane / 4 * S::D + k], work.inv_temperature, false);
    }
    uint2 both;
    both.x = half_pair(x[0], x[1]);
    both.y = half_pair(x[2], x[3]);
    m.components[(q * (S::D / BOUND_STEP) + step) * WARP_LANES + lane] = both;
  }
  for (unsigned i = lane; i < S::L; i += WARP_LANES)
    m.gates[q * S::L + i] = 0.5f * gates[i % BOUND_QUERY_COMPONENTS * S::M + i / BOUND_QUERY_COMPONENTS];
  find_query_sizes<S>(components, gates, work.inv_temperature, m.scratch + threadIdx.x / WARP_LANES * GRAM, m.query[q]);
  if (lane == 0 && work.floors)
    m.query[q][QUERY_FLOOR] = lowered_floor(work.floors[query], m.query[q][QUERY_MIX_ERROR]);
}

/* The first slot of a tile of a scan. The kernel's tiles divide those of 64 items that a stride counts. */
template <class S> static __device__ __forceinline__ uint32_t first_slot(const struct bound_work &work, uint32_t tile)
{
  uint32_t i = tile * S::TILE;

  return work.first + i / DEVICE_TILE * work.stride * DEVICE_TILE + i % DEVICE_TILE;
}

/* Start to prefetch 16 bytes of an item: chunk `chunk` of CHUNKS_OF_AN_ITEM, to row `row` of a tile. */
template <class S>
static __device__ __forceinline__ void load_chunk(const struct bound_work &work, size_t slot, unsigned row,
                                                  unsigned chunk, unsigned char *tile)
{
  unsigned char *gates = tile + S::TILE * S::ROW * 2, *residuals = gates + S::TILE * S::GATE_ROW * 2;

  if (chunk < S::CHUNKS_OF_COMPONENTS)
    copy_async(tile + row * S::ROW * 2 + chunk * 16, work.items.components + slot * S::M * S::D + chunk * 8);
  else if (chunk < S::CHUNKS_OF_COMPONENTS + S::CHUNKS_OF_GATES)
    copy_async(gates + row * S::GATE_ROW * 2 + (chunk - S::CHUNKS_OF_COMPONENTS) * 16,
               work.items.gates + slot * S::L + (chunk - S::CHUNKS_OF_COMPONENTS) * 8);
  else
    copy_async(residuals + row * MOL_RESIDUALS * 4, work.items.residuals + slot * MOL_RESIDUALS);
}

/* Start to prefetch a tile of a scan. n_threads call this, this one is number `thread`. Items past the end repeat the
 * last one. */
template <class S>
static __device__ void load_tile(const struct bound_work &work, uint32_t tile, unsigned char *to, unsigned thread,
                                 unsigned n_threads)
{
#pragma unroll 1 /* registers are short */
  for (unsigned i = thread; i < S::TILE * S::CHUNKS_OF_AN_ITEM; i += n_threads) {
    unsigned row = i / S::CHUNKS_OF_AN_ITEM;
    uint32_t slot = first_slot<S>(work, tile) + row;
    load_chunk<S>(work, slot < work.end ? slot : work.end - 1, row, i % S::CHUNKS_OF_AN_ITEM, to);
  }
}

/* The same for a tile of a list of n entries. One warp. */
template <class S>
static __device__ void load_entries(const struct bound_work &work, uint32_t n, uint32_t tile, unsigned char *to)
{
  uint32_t mine = tile * S::TILE + warp_lane() % S::TILE;
  uint32_t slot = work.lists.slots[(size_t)blockIdx.y * work.lists.capacity + (mine < n ? mine : n - 1)];

  static_assert((int)S::TILE <= (int)WARP_LANES, "a lane for each entry");
  for (unsigned first = 0; first < S::TILE * S::CHUNKS_OF_AN_ITEM; first += WARP_LANES) {
    unsigned i = first + warp_lane(), row = i / S::CHUNKS_OF_AN_ITEM;
    uint32_t of_row = __shfl_sync(WARP_ALL, slot, (int)(row % S::TILE));
    if (row < S::TILE)
      load_chunk<S>(work, of_row, row, i % S::CHUNKS_OF_AN_ITEM, to);
  }
}

/* The row that a lane gives to load_matrices() for the first step of a strip. */
template <class S> static __device__ __forceinline__ const uint16_t *operand_row(const uint16_t *rows)
{
  unsigned lane = warp_lane();

  return rows + lane % STRIP_ITEMS * S::ROW + lane / STRIP_ITEMS * 8;
}

#endif
