/* SPDX-License-Identifier: Apache-2.0 */
/* The scan of averaged vectors (average_scan.h) on tensor cores.
 *
 * A warp multiplies up to 32 queries by a tile of 64 items, one half of the tile after the other. Queries are the
 * tensor core's rows and lie in shared memory, in half precision and in the order of its operands. Items are its
 * columns and are read straight from global memory. A dot product may add its numbers in any order. So a lane takes
 * eight adjacent numbers of every 32, reads 16 bytes at once, and has two operands. It reads its part of the next tile
 * as soon as it has multiplied this one's.
 *
 * The tensor core adds products to a number that each query starts with. If that is its error less its floor, the sign
 * of the sum shows whether the upper bound reaches the floor.
 */
#include "kernels/cuda/average_scan.h"

#include "kernels/cuda/admitted.cuh"
#include "kernels/cuda/append.cuh"

enum {
  THREADS = 256,
  WARPS = THREADS / WARP_LANES,
  TILE = 64,
  HALVES = 2,
  HALF = TILE / HALVES,
  COLUMNS = 8, /* items in one operand */
  GROUPS = HALF / COLUMNS,
  ROWS = 16,            /* queries in one operand */
  STEP = 16,            /* numbers per tensor-core step */
  STEPS = 2,            /* in a piece */
  PIECE = STEPS * STEP, /* numbers of an item that are read at once */
  LANE_NUMBERS = 8,     /* of them, those of a lane */
  FEW = 8,              /* queries of a block, at most: a lane then has one of them, else four */
  MANY = 32,
  BLOCKS_RESIDENT = 2, /* per multiprocessor */
  SHARED_BYTES_MAX = 100 * 1024
};

#define ITEM_NORM_MAX  (1.0f + 0x1p-9f)
#define ITEM_RESIDUAL  (0x1p-11f * (1.0f + 0x1p-6f))
#define STEP_ERROR     (1.5f * 0x1p-21f) /* per product; 16 of them exceed MMA_ERROR */
#define ROUNDED_UP     (1.0f + 0x1p-12f)
#define UNDERFLOW_NORM 0x1p-60f

/* A bit for each of a lane's items and queries in a half. Bit 8 c + 2 i + b is item 8 c + 2 (lane % 4) + b and query
 * 8 i + lane / 4 of the block. */
typedef uint32_t lane_bits;

#define FIRST_QUERY_BITS 0x03030303u
#define ALL_QUERIES      0x55u /* times bits of the first query: the same of all four */

/* Where numbers come from. */
enum source {
  ONE_PIECE,    /* an item is one piece, and the queries are in shared memory */
  PIECES,       /* items have more of them */
  PIECES_GLOBAL /* and the queries are read from global memory, because they do not fit */
};

struct scan_range {
  uint32_t first, n_slots, stride, n_tiles; /* tile t starts at slot first + t * stride * TILE and ends below n_slots */
};

struct item_sizes {
  uint32_t padded; /* numbers per item, with padding */
  uint32_t pieces; /* the last one may be half empty */
};

/* A block's queries. Shared memory holds the warps' buffers, then the starts, then the numbers. */
struct block_queries {
  uint32_t first, n;
  float *starts;      /* what products are added to; for maxima, the errors */
  half_bits *numbers; /* [pieces][operands][STEPS][WARP_LANES][8] */
};

template <int Q> static constexpr __host__ __device__ unsigned operands_of()
{
  return (Q + ROWS - 1) / ROWS;
}

template <int Q> static constexpr __host__ __device__ unsigned lane_queries()
{
  return Q / COLUMNS;
}

/* The place among the block's queries of the lane's query i. */
static __device__ __forceinline__ unsigned place_of(unsigned i)
{
  return i * 8 + warp_lane() / 4;
}

/* Queries -------------------- */

/* The largest difference between a dot product and its bound's product (steps 1 to 4 of the proof). */
static __device__ __forceinline__ float error_of(float norm, float residual, float n)
{
  float of_halves = fmaf(ITEM_NORM_MAX, residual, ITEM_RESIDUAL * norm);
  float of_sums = (n + 8.0f) * STEP_ERROR * ITEM_NORM_MAX * (norm + residual);
  float of_subnormals = n / STEP * MMA_LOST * (2.0f + norm + residual);

  return (of_halves + of_sums + of_subnormals) * ROUNDED_UP;
}

/* What the products are added to (step 5). */
static __device__ __forceinline__ float start_of(float error, float n, float floor)
{
  float of_sums = (n + 8.0f) * STEP_ERROR;

  return fmaf(of_sums, fabsf(floor), error) * (1.0f + 2.0f * of_sums) * ROUNDED_UP - floor;
}

/* Where number k of query q is in block_queries.numbers: the order of the operands that multiply_piece() needs. */
template <int Q> static __device__ __forceinline__ uint32_t number_at(unsigned q, uint32_t k)
{
  uint32_t operand = k / PIECE * operands_of<Q>() + q / ROWS, lane = q % 8 * 4 + k % PIECE / LANE_NUMBERS;
  uint32_t step = k % 8 / 4, pair = k % 4 / 2 * 2 + q % ROWS / 8;

  return ((operand * STEPS + step) * WARP_LANES + lane) * 8 + pair * 2 + k % 2;
}

/* Load the block's queries and compute their starts. A warp loads some of them at the same time. A query past the end
 * is all zeros. */
template <int Q, int SOURCE, bool IS_MAXIMA>
static __device__ __forceinline__ void load_queries(const struct average_scan_input &in, const struct item_sizes &sizes,
                                                    const float *floors, const struct block_queries &to)
{
  enum { EACH = operands_of<Q>() * ROWS / WARPS };
  unsigned warp = threadIdx.x / WARP_LANES;
  float squares[EACH] = {}, lost[EACH] = {}, query_floors[EACH];

#pragma unroll
  for (unsigned i = 0; i < EACH; i++)
    query_floors[i] = !IS_MAXIMA && i * WARPS + warp < to.n ? floors[to.first + i * WARPS + warp] : 0.0f;
#pragma unroll 1
  for (uint32_t k = warp_lane(); k < sizes.pieces * PIECE; k += WARP_LANES) {
    float x[EACH];
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
      unsigned q = i * WARPS + warp;
      x[i] = q < to.n && k < in.dim ? in.queries[(to.first + q) * in.dim + k] : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < EACH; i++) {
      half_bits half = half_of(x[i]);
      float rest = x[i] - float_of(half);
      if (SOURCE != PIECES_GLOBAL)
        to.numbers[number_at<Q>(i * WARPS + warp, k)] = half;
      squares[i] += x[i] * x[i];
      lost[i] += rest * rest;
    }
  }
  float n = (float)(sizes.pieces * PIECE);
#pragma unroll
  for (unsigned i = 0; i < EACH; i++) {
    float norm = fmaf(sqrtf(warp_sum(squares[i])), ROUNDED_UP, UNDERFLOW_NORM);
    float residual = fmaf(sqrtf(warp_sum(lost[i])), ROUNDED_UP, UNDERFLOW_NORM);
    float error = error_of(norm, residual, n);
    if (warp_lane() == 0)
      to.starts[i * WARPS + warp] = IS_MAXIMA ? error : start_of(error, n, query_floors[i]);
  }
}

/* The operand of a step with queries 16 o to 16 o + 15. */
struct query_operand {
  uint32_t pairs[4];
};

/* Numbers k and k + 1 of the block's query q. */
static __device__ __forceinline__ uint32_t read_pair(const struct average_scan_input &in,
                                                     const struct block_queries &queries, unsigned q, uint32_t k)
{
  const float *from = in.queries + (queries.first + q) * in.dim;

  return q < queries.n ? half_pair(k < in.dim ? from[k] : 0.0f, k + 1 < in.dim ? from[k + 1] : 0.0f) : 0;
}

template <int Q, int SOURCE>
static __device__ __forceinline__ struct query_operand load_operand(const struct average_scan_input &in,
                                                                    const struct block_queries &queries, uint32_t piece,
                                                                    unsigned o, unsigned step)
{
  uint32_t k = piece * PIECE + warp_lane() % 4 * LANE_NUMBERS + step * 4;

  if (SOURCE != PIECES_GLOBAL) {
    uint32_t at = ((piece * operands_of<Q>() + o) * STEPS + step) * WARP_LANES + warp_lane();
    uint4 four = reinterpret_cast<const uint4 *>(queries.numbers)[at];
    return { { four.x, four.y, four.z, four.w } };
  }
  return { { read_pair(in, queries, place_of(2 * o), k), read_pair(in, queries, place_of(2 * o + 1), k),
             read_pair(in, queries, place_of(2 * o), k + 2), read_pair(in, queries, place_of(2 * o + 1), k + 2) } };
}

/* Tiles -------------------- */

/* What a warp reads of a tile before the items' numbers. */
struct tile {
  uint32_t number;         /* range.n_tiles or more: there are no more tiles */
  uint64_t admitted;       /* the tile's slots that the block's query warp_lane() admits; unused without filters */
  bool is_present[HALVES]; /* item warp_lane() of each half */
};

static __device__ __forceinline__ uint32_t first_slot(const struct scan_range &range, uint32_t tile)
{
  return range.first + tile * range.stride * TILE;
}

static __device__ __forceinline__ uint64_t admitted_slots(const struct average_scan_input &in,
                                                          const struct block_queries &queries, uint32_t slot)
{
  if (warp_lane() >= queries.n)
    return 0;
  const uint64_t *words = in.admitted.of[queries.first + warp_lane()];
  return words ? words[slot / ADMITTED_SLOTS] : ~(uint64_t)0;
}

/* Find the warp's next tile, from `number` on, that one of the block's queries admits items of. For maxima, each tile
 * counts. */
template <bool IS_MAXIMA>
static __device__ __forceinline__ struct tile find_tile(const struct average_scan_input &in,
                                                        const struct scan_range &range,
                                                        const struct block_queries &queries, uint32_t number)
{
  struct tile tile = { number, 0, {} };

  for (; in.admitted.of && tile.number < range.n_tiles; tile.number += gridDim.x * WARPS) {
    tile.admitted = admitted_slots(in, queries, first_slot(range, tile.number));
    if (IS_MAXIMA || __any_sync(WARP_ALL, tile.admitted != 0))
      break;
  }
#pragma unroll
  for (int h = 0; h < HALVES; h++) {
    uint32_t slot = first_slot(range, tile.number) + h * HALF + warp_lane();
    tile.is_present[h] = tile.number < range.n_tiles && slot < range.n_slots && in.present[slot];
  }
  return tile;
}

/* Of a half's items, those that are present and that the lane's queries admit. */
template <int Q>
static __device__ __forceinline__ lane_bits allowed_bits(const struct average_scan_input &in, const struct tile &tile,
                                                         int half)
{
  unsigned first = warp_lane() % 4 * 2;
  lane_bits present = __ballot_sync(WARP_ALL, tile.is_present[half]) >> first & FIRST_QUERY_BITS, admitted = 0;

  if (!in.admitted.of)
    return Q == FEW ? present : present * ALL_QUERIES;
  uint32_t slots = (uint32_t)(tile.admitted >> half * HALF);
#pragma unroll
  for (unsigned i = 0; i < lane_queries<Q>(); i++)
    admitted |= (__shfl_sync(WARP_ALL, slots, (int)place_of(i)) >> first & present) << 2 * i;
  return admitted;
}

/* The lane's part of a piece of a half's items: eight numbers of one item in each group of eight. */
struct piece {
  uint4 groups[GROUPS];
};

/* Behind the end of an item any numbers will do: the queries have zeros there. 2^32 groups of eight numbers are 64 GiB,
 * and the items' other arrays are several times as large. */
static __device__ __forceinline__ void load_piece(const struct average_scan_input &in, const struct item_sizes &sizes,
                                                  uint32_t first_slot, uint32_t piece, struct piece &out)
{
  const uint4 *from = reinterpret_cast<const uint4 *>(in.items.averages);
  uint32_t of_item = sizes.padded / LANE_NUMBERS, k = piece * (PIECE / LANE_NUMBERS) + warp_lane() % 4;
  uint32_t at = (first_slot + warp_lane() / 4) * of_item + (k < of_item ? k : 0);

#pragma unroll
  for (int c = 0; c < GROUPS; c++)
    out.groups[c] = from[at + c * COLUMNS * of_item];
}

/* A lane's sums of a half: of its query i and item 8 c + 2 (lane % 4) + b at [c][i / 2][i % 2 * 2 + b]. */
template <int Q> struct half_sums {
  float of[GROUPS][operands_of<Q>()][4];
};

/* Add the products of a piece to the sums, or to the starts if it is the first one. */
template <int Q, int SOURCE, bool IS_FIRST>
static __device__ __forceinline__ void multiply_piece(const struct average_scan_input &in,
                                                      const struct block_queries &queries, const struct piece &items,
                                                      uint32_t piece, const float (&starts)[operands_of<Q>()][4],
                                                      struct half_sums<Q> &sums)
{
#pragma unroll
  for (unsigned o = 0; o < operands_of<Q>(); o++) {
    struct query_operand low = load_operand<Q, SOURCE>(in, queries, piece, o, 0);
    struct query_operand high = load_operand<Q, SOURCE>(in, queries, piece, o, 1);
#pragma unroll
    for (int c = 0; c < GROUPS; c++) {
      const uint4 &item = items.groups[c];
      const uint32_t item_low[2] = { item.x, item.y }, item_high[2] = { item.z, item.w };
      mma_f16(sums.of[c][o], low.pairs, item_low, IS_FIRST ? starts[o] : sums.of[c][o]);
      mma_f16(sums.of[c][o], high.pairs, item_high, sums.of[c][o]);
    }
  }
}

/* Multiply a half whose first piece has been read. Then read the first piece of the same half of the next tile. After
 * the last tile this reads one that is in the cache: a condition would keep the pieces from staying in their registers.
 */
template <int Q, int SOURCE>
static __device__ __forceinline__ void multiply_half(const struct average_scan_input &in,
                                                     const struct item_sizes &sizes, const struct scan_range &range,
                                                     const struct block_queries &queries, uint32_t tile, uint32_t next,
                                                     int half, const float (&starts)[operands_of<Q>()][4],
                                                     struct piece &items, struct half_sums<Q> &sums)
{
  multiply_piece<Q, SOURCE, true>(in, queries, items, 0, starts, sums);
#pragma unroll 1
  for (uint32_t piece = 1; SOURCE != ONE_PIECE && piece < sizes.pieces; piece++) {
    load_piece(in, sizes, first_slot(range, tile) + half * HALF, piece, items);
    multiply_piece<Q, SOURCE, false>(in, queries, items, piece, starts, sums);
  }
  load_piece(in, sizes, first_slot(range, next < range.n_tiles ? next : 0) + half * HALF, 0, items);
}

/* Maxima -------------------- */

/* Replace the sums of items that are not allowed. */
template <int Q> static __device__ __forceinline__ void drop_others(lane_bits allowed, struct half_sums<Q> &sums)
{
#pragma unroll
  for (int c = 0; c < GROUPS; c++) {
#pragma unroll
    for (unsigned n = 0; n < 2 * lane_queries<Q>(); n++)
      sums.of[c][n / 4][n % 4] = allowed >> (8 * c + n) & 1 ? sums.of[c][n / 4][n % 4] : -INFINITY;
  }
}

template <int Q> static __device__ __forceinline__ void begin_maxima(float (&most)[lane_queries<Q>()])
{
#pragma unroll
  for (unsigned i = 0; i < lane_queries<Q>(); i++)
    most[i] = -INFINITY;
}

/* Raise the lane's maxima to the sums of the allowed items. Mostly all are. */
template <int Q>
static __device__ __forceinline__ void raise_maxima(struct half_sums<Q> &sums, lane_bits allowed,
                                                    float (&most)[lane_queries<Q>()])
{
  if (!__all_sync(WARP_ALL, allowed == FIRST_QUERY_BITS * (Q == FEW ? 1 : ALL_QUERIES)))
    drop_others<Q>(allowed, sums);
#pragma unroll
  for (int c = 0; c < GROUPS; c++) {
#pragma unroll
    for (unsigned n = 0; n < 2 * lane_queries<Q>(); n++)
      most[n / 2] = fmaxf(most[n / 2], sums.of[c][n / 4][n % 4]);
  }
}

/* Write the maxima of a tile. */
template <int Q>
static __device__ __forceinline__ void write_maxima(const struct block_queries &queries, uint32_t tile,
                                                    uint32_t n_tiles, const float (&most)[lane_queries<Q>()],
                                                    float *maxima)
{
#pragma unroll
  for (unsigned i = 0; i < lane_queries<Q>(); i++) {
    size_t place = place_of(i), at = (queries.first + place) * n_tiles + tile;
    if (place < queries.n) /* -inf in place of NaN */
      maxima[at * AVERAGE_SCAN_MAXIMA + warp_lane() % 4] = fmaxf(most[i] - queries.starts[place], -INFINITY);
  }
}

/* Appends -------------------- */

/* The bits of the lane's queries that have no finite start: each item may reach their floors. And of those past the
 * end, which no item reaches. */
struct odd_queries {
  lane_bits unbounded, missing;
};

template <int Q> static __device__ __forceinline__ struct odd_queries find_odd(const struct block_queries &queries)
{
  struct odd_queries odd = {};

#pragma unroll
  for (unsigned i = 0; i < lane_queries<Q>(); i++) {
    odd.unbounded |= !(fabsf(queries.starts[place_of(i)]) < INFINITY) ? FIRST_QUERY_BITS << 2 * i : 0;
    odd.missing |= place_of(i) < queries.n ? 0 : FIRST_QUERY_BITS << 2 * i;
  }
  return odd;
}

/* The bits of the sums that are negative. */
template <int Q> static __device__ __forceinline__ lane_bits negative_bits(const struct half_sums<Q> &sums)
{
  lane_bits bits = 0;

#pragma unroll
  for (int c = 0; c < GROUPS; c++) {
    lane_bits of_group = 0;
#pragma unroll
    for (int n = 2 * lane_queries<Q>() - 1; n >= 0; n--)
      of_group = of_group << 1 | __float_as_uint(sums.of[c][n / 4][n % 4]) >> 31;
    bits += of_group << 8 * c;
  }
  return bits;
}

/* Append the items of both halves whose bits are set. A lane adds a few of them at a time, so there is always room. */
static __device__ __forceinline__ void append_passed(const struct block_queries &queries, uint32_t first_slot,
                                                     lane_bits lower, lane_bits upper, struct append_buffer &buffer,
                                                     const struct device_lists &lists)
{
  uint32_t slot = first_slot + warp_lane() % 4 * 2;

  while (__any_sync(WARP_ALL, lower | upper)) {
    uint32_t n = min((uint32_t)(__popc(lower) + __popc(upper)), (uint32_t)APPEND_EACH);
    uint2 *entries = buffer.entries + append_buffer_reserve(buffer, lists, queries.first, n);
#pragma unroll 1
    for (uint32_t i = 0; i < n; i++) {
      lane_bits left = lower ? lower : upper;
      unsigned bit = (unsigned)__ffs((int)left) - 1;
      entries[i] = { slot + (lower ? 0 : HALF) + bit / 8 * 8 + bit % 2, place_of(bit % 8 / 2) };
      left &= left - 1;
      upper = lower ? upper : left;
      lower = lower ? left : 0;
    }
  }
}

/* Load what a lane's query starts with, for both of its items in an operand. The operand is four registers in a row:
 * two that the compiler sees to be equal would be put together again before each use. */
static __device__ __forceinline__ void load_start(const struct block_queries &queries, unsigned i, float start[2])
{
  start[0] = queries.starts[place_of(i)];
  start[1] = __uint_as_float(in_register(__float_as_uint(start[0])));
}

template <int Q>
static __device__ __forceinline__ void load_starts(const struct block_queries &queries,
                                                   float (&starts)[operands_of<Q>()][4])
{
#pragma unroll
  for (unsigned i = 0; i < lane_queries<Q>(); i++)
    load_start(queries, i, &starts[i / 2][i % 2 * 2]);
}

/* The kernel -------------------- */

/* Raise the maxima by a half's sums, or find the bits of the items that reach a floor. */
template <int Q, bool IS_MAXIMA>
static __device__ __forceinline__ void take_sums(struct half_sums<Q> &sums, lane_bits allowed,
                                                 const struct odd_queries &odd, float (&most)[lane_queries<Q>()],
                                                 lane_bits &passed)
{
  if (IS_MAXIMA)
    raise_maxima<Q>(sums, allowed, most);
  else
    passed = ((~negative_bits<Q>(sums) & ~odd.missing) | odd.unbounded) & allowed;
}

/* Write a tile's maxima, or append its items. */
template <int Q, bool IS_MAXIMA>
static __device__ __forceinline__ void put_results(const struct block_queries &queries, const struct scan_range &range,
                                                   uint32_t tile, const float (&most)[lane_queries<Q>()], float *maxima,
                                                   const lane_bits (&passed)[HALVES], struct append_buffer &buffer,
                                                   const struct device_lists &lists)
{
  if (IS_MAXIMA)
    write_maxima<Q>(queries, tile, range.n_tiles, most, maxima);
  else
    append_passed(queries, first_slot(range, tile), passed[0], passed[1], buffer, lists);
}

/* Scan every tile of the range for Q queries. Writes `maxima` if IS_MAXIMA, else appends to `lists`. */
template <int Q, int SOURCE, bool IS_MAXIMA>
static __global__ void __launch_bounds__(THREADS, BLOCKS_RESIDENT)
    scan(struct average_scan_input in, struct item_sizes sizes, struct scan_range range, const float *floors,
         float *maxima, struct device_lists lists)
{
  begin_kernel();
  uint8_t *buffers = shared_memory<uint8_t>();
  float *block_starts = reinterpret_cast<float *>(buffers + WARPS * APPEND_BUFFER_BYTES);
  uint32_t first_query = blockIdx.y * Q, warp = threadIdx.x / WARP_LANES, step = gridDim.x * WARPS;
  struct block_queries queries = { first_query, min((uint32_t)in.n_queries - first_query, (uint32_t)Q), block_starts,
                                   reinterpret_cast<half_bits *>(block_starts + MANY) };
  struct append_buffer buffer = append_buffer_open(buffers + warp * APPEND_BUFFER_BYTES);
  struct tile tile = find_tile<IS_MAXIMA>(in, range, queries, blockIdx.x * WARPS + warp);
  struct piece items[HALVES];
  float starts[operands_of<Q>()][4] = {};
  struct odd_queries odd = {};

#pragma unroll
  for (int h = 0; h < HALVES && tile.number < range.n_tiles; h++)
    load_piece(in, sizes, first_slot(range, tile.number) + h * HALF, 0, items[h]);
  load_queries<Q, SOURCE, IS_MAXIMA>(in, sizes, floors, queries);
  __syncthreads();
  if (!IS_MAXIMA) {
    load_starts<Q>(queries, starts);
    odd = find_odd<Q>(queries);
  }
#pragma unroll 1
  while (tile.number < range.n_tiles) {
    struct tile next = find_tile<IS_MAXIMA>(in, range, queries, tile.number + step);
    lane_bits passed[HALVES];
    float most[lane_queries<Q>()];
    begin_maxima<Q>(most);
#pragma unroll
    for (int h = 0; h < HALVES; h++) {
      struct half_sums<Q> sums;
      lane_bits allowed = allowed_bits<Q>(in, tile, h);
      multiply_half<Q, SOURCE>(in, sizes, range, queries, tile.number, next.number, h, starts, items[h], sums);
      take_sums<Q, IS_MAXIMA>(sums, allowed, odd, most, passed[h]);
    }
    put_results<Q, IS_MAXIMA>(queries, range, tile.number, most, maxima, passed, buffer, lists);
    tile = next;
  }
  if (!IS_MAXIMA)
    append_buffer_flush<true>(buffer, append_buffer_open(buffers).lengths, lists, first_query);
}

template <int Q> static size_t block_bytes(const struct item_sizes *sizes)
{
  return WARPS * APPEND_BUFFER_BYTES + MANY * sizeof(float) +
         operands_of<Q>() * ROWS * sizes->pieces * PIECE * sizeof(half_bits);
}

template <int Q> static bool fits(const struct item_sizes *sizes)
{
  return block_bytes<Q>(sizes) <= device_shared_bytes(SHARED_BYTES_MAX);
}

template <int Q, int SOURCE, bool IS_MAXIMA>
static err_code_t run_with(struct device_stream *stream, const struct average_scan_input *in,
                           const struct item_sizes &sizes, struct scan_range range, const float *floors, float *maxima,
                           const struct device_lists *lists)
{
  static const struct item_sizes no_numbers = {};
  unsigned n_blocks = blocks_for(range.n_tiles, WARPS), n_groups = blocks_for(in->n_queries, Q);
  unsigned most = in->n_blocks * BLOCKS_RESIDENT / n_groups ? in->n_blocks * BLOCKS_RESIDENT / n_groups : 1;
  size_t shared_bytes = block_bytes<Q>(SOURCE == PIECES_GLOBAL ? &no_numbers : &sizes);

  return launch(stream, dim3(n_blocks < most ? n_blocks : most, n_groups), THREADS, shared_bytes,
                scan<Q, SOURCE, IS_MAXIMA>, *in, sizes, range, floors, maxima, *lists);
}

template <bool IS_MAXIMA>
static err_code_t run(struct device_stream *stream, const struct average_scan_input *in, struct scan_range range,
                      const float *floors, float *maxima, const struct device_lists *lists)
{
  uint32_t padded = (uint32_t)mol_halves_stride(in->dim, STEP);
  struct item_sizes sizes = { padded, (padded + PIECE - 1) / PIECE };
  bool is_one = sizes.pieces == 1;

  if (range.n_tiles == 0 || in->n_queries == 0)
    return ERR_OK;
  if (in->n_queries > FEW && fits<MANY>(&sizes))
    return (is_one ? run_with<MANY, ONE_PIECE, IS_MAXIMA> : run_with<MANY, PIECES, IS_MAXIMA>)(stream, in, sizes, range,
                                                                                               floors, maxima, lists);
  if (fits<FEW>(&sizes))
    return (is_one ? run_with<FEW, ONE_PIECE, IS_MAXIMA> : run_with<FEW, PIECES, IS_MAXIMA>)(stream, in, sizes, range,
                                                                                             floors, maxima, lists);
  return run_with<FEW, PIECES_GLOBAL, IS_MAXIMA>(stream, in, sizes, range, floors, maxima, lists);
}

err_code_t average_scan_maxima(struct device_stream *stream, const struct average_scan_input *input, size_t n_slots,
                               size_t stride, size_t n_tiles, float *maxima)
{
  struct scan_range range = { 0, (uint32_t)n_slots, (uint32_t)stride, (uint32_t)n_tiles };
  struct device_lists none = {};

  return run<true>(stream, input, range, NULL, maxima, &none);
}

err_code_t average_scan_append(struct device_stream *stream, const struct average_scan_input *input, size_t first,
                               size_t n, const float *floors, const struct device_lists *lists)
{
  struct scan_range range = { (uint32_t)first, (uint32_t)(first + n), 1, blocks_for(n, TILE) };

  return run<false>(stream, input, range, floors, NULL, lists);
}
