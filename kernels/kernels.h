/* SPDX-License-Identifier: Apache-2.0 */
/* The hot loops of the engine: arithmetic on arrays, in a table of function pointers for each instruction set.
 *
 * The scalar reference defines every result to the last bit. A variant computes the same sums in the same order, with
 * the same fused multiply-adds. It is fast because it computes many outputs at once; it never splits a sum. So a search
 * gives the same bytes on every machine, and the tests compare variants with ==.
 *
 * Thread: any. Allocates: no. Blocks: no. Pointers need no alignment unless stated. Arrays do not overlap.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/isa.h"
#include "kernels/mol.h"

enum {
  DOT_BLOCK_ITEMS = 16,  /* items in a block of dot_blocks() */
  LIST_PAD = 8,          /* numbers that list_bits() may write after the last one */
  PQ_FILTER_PAD = 63,    /* readable bytes that pq_filter() needs after the last code */
  PQ_BLOCK_ITEMS = 4096, /* items in a block of pq_scan(): a row of their codes is one page */
  PQ_LANES = 16,         /* maxima that pq_best() keeps */
  PQ_PIECE_ITEMS = 64,   /* items in a piece of pq_cells() */
  PQ_SUBITEMS = 256,     /* entries in a split's look-up table, even if the model has fewer */
  PQ_TABLES_MAX = 72,    /* of one call */
};

/* Sizes of sketches (engine/vector/vector_sketch.h). */
enum {
  SKETCH_BLOCK_ITEMS = 16,   /* items in a block of dot_i8() */
  SKETCH_GROUP = 4,          /* consecutive numbers of one item in a block */
  SKETCH_ROW_PAD = 63,       /* readable bytes that dot_i8_rows() and block_rows() need after the last item */
  SKETCH_BLOCKS_PAD = 960,   /* readable bytes that dot_i8() needs after the last block: 15 groups */
  DOT_I8_NUMBER_MAX = 32512, /* 127 * 256: limit of |number| of a query */
  DOT_I8_SUM_MAX = 16777215, /* (2^31 - 1) / 128, rounded down: limit of the sum of |number| of a query */
};

/* Per-item inputs of sketch_bounds(), in the symbols of vector_sketch.h and the proof in vector_sketch.c. */
struct sketch_items {
  const float *scales; /* s: what a step of the item's bytes is worth */
  const float *errors; /* E: the norm of what its bytes have lost */
  const float *tails;  /* the size of the part that its vector omits; NULL: none */
};

/* Per-query inputs of sketch_bounds(). */
struct sketch_weights {
  float unit;  /* t: what a step of the query's numbers is worth */
  float error; /* Q: what an item's E is multiplied by */
  float scale; /* D: what an item's s is multiplied by */
  float tail;  /* T: what an item's tail is multiplied by */
  float floor; /* of every slack: keeps it above the rounding of tiny numbers */
};

/* An item that reached a list's threshold. */
struct scan_entry {
  int32_t score;
  uint32_t slot;
};

/* A list that integer scans append to. A sum starts at `start`; the item is a hit if the sum ends at 0 or above. */
struct scan_list {
  int32_t start;
  int32_t threshold; /* score of a hit = its sum + threshold */
  uint32_t n;
  struct scan_entry *entries; /* the caller provides room for every item of a call */
};

/* The components of one query, in bytes. */
struct sketch_rows {
  size_t n_rows;       /* P_q */
  size_t n_groups;     /* ceil(d / 4) */
  const int8_t *bytes; /* [n_groups][n_rows][4], zero-padded after d */
};

/* Up to PQ_PIECE_ITEMS items of a cell of product-quantised items (engine/recjpq/cells.h). */
struct pq_piece {
  const uint8_t *codes; /* [n_tables][stride]: n of each row are used, and PQ_FILTER_PAD more bytes must be readable */
  uint32_t stride;
  uint8_t n;    /* at least 1 */
  uint8_t base; /* the level that its items have by the splits of their cell */
};

struct kernels {
  const char *name;

  /* y[i][j] = bias[j] + sum over k of x[i][k] * w[k][j]: k rises, each step is one fused multiply-add.
   * x [n][n_in]; w [n_in][n_out]; bias [n_out] or NULL for zeros; y [n][n_out]. */
  void (*linear)(const float *x, size_t n, size_t n_in, const float *w, const float *bias, size_t n_out, float *y);

  /* x[i] = math_silu(x[i]) (kernels/math_ref.h). In place. */
  void (*silu)(float *x, size_t n);

  /* x[i] = gelu_of(x[i]) (kernels/gelu_ref.h). In place. */
  void (*gelu)(float *x, size_t n);

  /* out[c][i] = rows[i][c] for i < n_rows <= MOL_LANES, 0 in the other lanes.
   * out [n_cols][MOL_LANES], aligned to 64. */
  void (*transpose)(const float *const *rows, size_t n_rows, size_t n_cols, float *out);

  /* Mixture-of-Logits scores of one query with MOL_LANES items (MoL paper, section 3.1 and appendix A; the formulas are
   * those of the authors' implementation). For query component n, item component m and p = n * P_x + m:
   *
   *   l_p  = inv_temperature * <query[n], items[m]>          w = W2 SiLU(W1 l + b1) + b2
   *   z_p  = query_gate[p] * item_gates[p] + w_p             s = SiLU(z)        phi = sum_p softmax(s)_p l_p
   *
   * query       [P_q][d], L2-normalised
   * query_gate  [L]
   * items       [P_x * d][MOL_LANES], L2-normalised, aligned to 64
   * item_gates  [L][MOL_LANES], aligned to 64
   * scratch     mol_scratch_floats() floats, aligned to 64
   * prefetch    cache lines to prefetch, or NULL
   * phi         [MOL_LANES]
   */
  void (*mol_score)(const struct mol_shape *shape, const struct mol_gate *gate, const float *query,
                    const float *query_gate, const float *items, const float *item_gates, float *scratch,
                    const struct mol_prefetch *prefetch, float *phi);

  /* Lower and upper bounds on mol_score()'s phi, in less time than mol_score(). They come from 16-bit products; the
   * proof is in mol_reduced_gate.h. A lane without a useful bound gets -infinity and infinity; only there can phi be
   * NaN. NULL at levels that have no faster products. The arguments are mol_score()'s, but:
   *
   * gate          only its biases are read
   * reduced_gate  made from the same gate
   * scratch       mol_bounds_scratch_floats() floats, aligned to 64
   * lower, upper  [MOL_LANES]
   */
  void (*mol_bounds)(const struct mol_shape *shape, const struct mol_gate *gate,
                     const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                     const float *items, const float *item_gates, float *scratch, const struct mol_prefetch *prefetch,
                     float *lower, float *upper);

  /* Screening finds the items that may reach a threshold, in less time than mol_bounds(). It computes with small
   * integers or with bf16; the proofs are in mol_screen.h and mol_screen_bf16.h. First mol_screen_logits() drops the
   * items whose logits are all below the threshold. mol_screen_append() gathers the others until mol_screen() has a
   * full tile of them. NULL at levels without fast integer products. Only if mol_can_screen(). A thread calls
   * mol_screen_begin() before them and mol_screen_end() after them, and no dot_i8() between the two.
   *
   * Compute the logits of MOL_LANES items. Bit i of the result is clear only if all logits of item i, and so its score,
   * are below the threshold.
   *
   * query      from mol_screen_prepare(), with the same gate
   * items      from mol_screen_items(), aligned to 64
   * threshold  a score
   * logits     [mol_screen_logit_rows()][MOL_LANES]
   */
  uint32_t (*mol_screen_logits)(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                const struct mol_screen_query *query, const uint32_t *items, float threshold,
                                uint32_t *logits);

  /* Turn on and off what mol_screen_logits() and mol_screen() need of the processor. That takes as long as they take
   * for two items. NULL where mol_screen() is. */
  void (*mol_screen_begin)(void);
  void (*mol_screen_end)(void);

  /* Append the lanes that are set in `lanes` to rows of SCREEN_LANES, from lane `at` on; after the last lane comes the
   * first. rows [n_rows][MOL_LANES]; out [n_rows][SCREEN_LANES]. */
  void (*mol_screen_append)(const uint32_t *rows, size_t n_rows, uint32_t lanes, uint32_t *out, size_t at);

  /* Screen MOL_LANES items. Bit i of the result is clear only if item i scores below the threshold.
   *
   * scratch  mol_bounds_scratch_floats() floats, aligned to 64
   */
  uint32_t (*mol_screen)(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                         const struct mol_screen_query *query, const struct mol_screen_rows *items, float threshold,
                         float *scratch);

  /* Round the components of MOL_LANES items, [P_x * d][MOL_LANES], to integers for mol_screen_logits(), in the level's
   * own layout. words [mol_screen_words()][MOL_LANES], aligned to 64. NULL where mol_screen() is. */
  void (*mol_screen_items)(const struct mol_shape *shape, const float *items, uint32_t *words);

  /* scores[b * 16 + i] = sum over k of query[k] * blocks[b][k][i]: k rises, each step is one fused multiply-add.
   * blocks [n_blocks][dim][DOT_BLOCK_ITEMS], aligned to 64; scores [n_blocks * DOT_BLOCK_ITEMS]. */
  void (*dot_blocks)(const float *query, size_t dim, const float *blocks, size_t n_blocks, float *scores);

  /* Find the items i < n with base + sum over t of tables[t][codes[rows[t]][i]] <= limit. Write their indices, rising,
   * to `indices`; return how many. The sum is exact: it does not wrap. Pass tables with large entries first: a group of
   * items that are all above the limit skips the other tables.
   *
   * tables   [n_tables][PQ_SUBITEMS], each aligned to 64; n_tables may be 0, and is at most PQ_TABLES_MAX
   * rows     [n_tables]
   * codes    [][stride]: n of each row are used, and PQ_FILTER_PAD more bytes must be readable
   * limit    below 255
   * indices  [n] */
  size_t (*pq_filter)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

  /* pq_filter() of many small pieces that lie scattered in memory. Meanwhile, prefetch the codes of `next`, the pieces
   * that the caller passes after these. Item i of piece p has the index p * PQ_PIECE_ITEMS + i.
   * pieces [n]; next [n_next]; indices [n * PQ_PIECE_ITEMS] */
  size_t (*pq_cells)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const struct pq_piece *pieces,
                     size_t n, const struct pq_piece *next, size_t n_next, uint8_t limit, uint32_t *indices);

  /* Find the best scores among the sub-items with lengths[b] > 0: lane_best[i] is the highest scores[b] of the b with
   * b % PQ_LANES == i, or -infinity, and *largest the largest |scores[b]|, or 0. Ignores NaN. Return the number of such
   * sub-items. scores, lengths [n]; n <= PQ_SUBITEMS */
  size_t (*pq_best)(const float *scores, const uint32_t *lengths, size_t n, float lane_best[PQ_LANES], float *largest);

  /* Quantise scores into a table of levels: table[b] = (best - scores[b]) * scale, each step rounded, then clamped to
   * 0..255 (NaN: 0) and rounded down. Return the sum of lengths[b] * table[b] over b < n_lengths.
   * scores [PQ_SUBITEMS]; lengths [n_lengths], each below 2^32; table [PQ_SUBITEMS] */
  uint64_t (*pq_levels)(const float *scores, float best, float scale, const uint32_t *lengths, size_t n_lengths,
                        uint8_t *table);

  /* pq_filter() with base 0 over a block, for catalogues larger than the cache. It processes one row of codes after
   * another and prefetches later rows, during the last ones the first rows of `next`.
   *
   * rows      [n_tables][n]: where each table's codes are; as many as n rounded up to 64 must be readable
   * n         at most PQ_BLOCK_ITEMS
   * admitted  only items whose bit is set can pass: a word for each 64 of the n items; NULL: all
   * next      [n_tables]: rows of the block that the caller scans after this one, or soon after; or NULL */
  size_t (*pq_scan)(const uint8_t *const *tables, const uint8_t *const *rows, size_t n_tables, size_t n, uint8_t limit,
                    const uint64_t *admitted, const uint8_t *const *next, uint32_t *indices);

  /* pq_scan() filters so many slots in the time in which a cell is found in memory and filtered by pq_cells(), its
   * items aside: measured where it matters, in a search of a large catalogue. */
  size_t pq_slots_per_cell;

  /* Gather the codes of listed items into a block for pq_scan(): block[m][i] = codes[slots[i]][m]. It prefetches the
   * codes of later slots.
   * codes [][n_splits]; slots [n], n <= PQ_BLOCK_ITEMS; block [n_splits][PQ_BLOCK_ITEMS] */
  void (*pq_gather)(const uint8_t *codes, size_t n_splits, const uint32_t *slots, size_t n, uint8_t *block);

  /* Find the indices i < n with scores[i] >= threshold, never true for NaN. Write them, rising, to indices [n]; return
   * how many. */
  size_t (*filter_ge)(const float *scores, size_t n, float threshold, uint32_t *indices);

  /* sums[q][b * 16 + i] = sum over k of queries[q][k] * x[k], exactly. A number x of an item, -128..127, is stored as
   * the byte x + 128. Levels with VNNI or tiles take less time for several queries than for one after the other.
   *
   * queries  [n_queries][n_groups * 4]: |number| at most DOT_I8_NUMBER_MAX, their sum at most DOT_I8_SUM_MAX, so no sum
   *          overflows
   * blocks   [n_blocks][n_groups][SKETCH_BLOCK_ITEMS][SKETCH_GROUP], aligned to 64, followed by SKETCH_BLOCKS_PAD
   *          readable bytes
   * sums     [n_queries][n_blocks * SKETCH_BLOCK_ITEMS]. It is faster if they do not lie multiples of 4096 bytes apart.
   */
  void (*dot_i8)(const int16_t *const *queries, size_t n_queries, size_t n_groups, const uint8_t *blocks,
                 size_t n_blocks, int32_t *const *sums);

  /* dot_i8() of items that lie one after the other: sums[i] belongs to item slots[i], or to item i if slots is NULL.
   * It prefetches later items.
   *
   * rows    [][n_groups * SKETCH_GROUP], followed by SKETCH_ROW_PAD readable bytes
   * slots   [n] or NULL
   * sums    [n] */
  void (*dot_i8_rows)(const int16_t *query, size_t n_groups, const uint8_t *rows, const uint32_t *slots, size_t n,
                      int32_t *sums);

  /* Arrange items that lie one after the other in blocks for dot_i8(). Rows and slots as in dot_i8_rows(). The last
   * block is filled up with the last item. It prefetches later items.
   * blocks [n / SKETCH_BLOCK_ITEMS, rounded up][n_groups][SKETCH_BLOCK_ITEMS][SKETCH_GROUP], aligned to 64 */
  void (*block_rows)(const uint8_t *rows, size_t n_groups, const uint32_t *slots, size_t n, uint8_t *blocks);

  /* Upper bounds on the scores of n_blocks * SKETCH_BLOCK_ITEMS items from dot_i8()'s sums, in f32:
   *
   *   bounds[i] = score + slack
   *   score = (sums[i] * scales[i]) * unit
   *   slack = tails[i] * tail + (errors[i] * error + (scales[i] * scale + floor)), with fused multiply-adds
   *
   * Without tails, their term is absent. */
  void (*sketch_bounds)(const int32_t *sums, const struct sketch_items *items, const struct sketch_weights *weights,
                        size_t n_blocks, float *bounds);

  /* Return the sum of query[k] * row[k] in double. Partial sum s[j], j < 32, runs over k = j, j + 32, ... with fused
   * multiply-adds; both arrays count as zero-padded to a multiple of 32. Then s[j] += s[j + 16] for j < 16,
   * s[j] += s[j + 8] for j < 8, and so on down to s[0], the result. */
  double (*dot_f64)(const double *query, const float *row, size_t n);

  /* out[v * n_rows + r] = dot_f64() of row r and vector v: the same sums in the same order, so the same bits. It is
   * faster from three vectors on, and reads each row once for all of them.
   *
   * rows     [n_rows][dim]
   * vectors  [n_vectors], each [dim]; the same one may come several times
   * out      [n_vectors][n_rows] */
  void (*dots_f64)(const double *rows, size_t n_rows, const float *const *vectors, size_t n_vectors, size_t dim,
                   double *out);

  /* Compute the dot products of a query's components with the items' components, both in bytes, and append the hits to
   * lists. For row n, item component m and p = n * n_components + m, sum = lists[p].start + the dot product, wrapping.
   * If sum >= 0, append { sum + lists[p].threshold, slot } to lists[p]. Slots rise in a list. Return how many entries
   * were appended.
   *
   * blocks      [n_blocks][block_bytes], aligned to 64. A block begins with unsigned bytes
   *             [n_components][n_groups][SKETCH_BLOCK_ITEMS][4]. A number x is stored as x + 128; the starts correct
   *             for that.
   * first_slot  slot of the first item of blocks[0]
   * lists       [n_rows * n_components]
   */
  size_t (*mol_lists)(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t block_bytes,
                      size_t n_blocks, uint32_t first_slot, struct scan_list *lists);

  /* Compute mol_lists()'s dot products, but only tell which items have a hit: bit i of masks[b] is set if item i of
   * block b has a component and a row with starts[row] + the dot product >= 0. starts [n_rows]; blocks
   * [n_blocks][n_components][n_groups][SKETCH_BLOCK_ITEMS][4]; masks [n_blocks]. */
  void (*mol_any)(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t n_blocks,
                  const int32_t *starts, uint16_t *masks);

  /* mol_any() for MOL_LANES items: bit i of the result is item i's.
   * tile [n_components][n_groups][MOL_LANES][4], aligned to 64. */
  uint32_t (*mol_any_tile)(const struct sketch_rows *rows, size_t n_components, const uint8_t *tile,
                           const int32_t *starts);

  /* mol_lists() for 16-bit numbers, many queries and one averaged vector per item: row r is a query, and its hits go to
   * lists[r].
   * rows [n_groups][n_rows][2]; blocks [n_blocks][n_groups][SKETCH_BLOCK_ITEMS][2], aligned to 64; lists [n_rows]. */
  size_t (*average_lists)(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, size_t n_blocks,
                          uint32_t first_slot, struct scan_list *lists);

  /* Move the entries with score >= threshold to the front. They keep their order, and so do the others behind them.
   * Return how many are in front.
   * entries [n]; spare [n]: scratch. */
  size_t (*partition_ge)(struct scan_entry *entries, size_t n, int32_t threshold, struct scan_entry *spare);

  /* Bit b of words[w] = low <= values[64 * w + b] <= high. values [n_words * 64]; low <= high. */
  void (*select_range_i64)(const int64_t *values, size_t n_words, int64_t low, int64_t high, uint64_t *words);
  void (*select_range_u8)(const uint8_t *values, size_t n_words, uint8_t low, uint8_t high, uint64_t *words);

  /* Bit b of words[w] = is values[64 * w + b] in the set? values [n_words * 64]; set: 256 bits, of each value. */
  void (*select_set_u8)(const uint8_t *values, size_t n_words, const uint8_t set[32], uint64_t *words);

  /* List the bits that are set; return how many. Bit b of words[w] is the number first + 64 * w + b. Each 8 words are
   * listed together: the lowest bit of each, then the next bit of each, and so on.
   * words [n_words]; numbers [64 * n_words + LIST_PAD], all of which may be overwritten */
  size_t (*list_bits)(const uint64_t *words, size_t n_words, uint32_t first, uint32_t *numbers);
};

/* Get the table for a level. The table is static. Returns ERR_CONFIG when this machine does not have the level. */
err_t kernels_get(enum isa isa, const struct kernels **out);

/* Return the L2 norm of n floats. Squares, their sum in rising order, and the root are in double. */
double kernels_norm(const float *x, size_t n);

/* Divide each of n rows of dim floats by max(its L2 norm, eps), in place. The norm, summed in rising order, and the
 * quotient are in double. Not hot: the same code on every machine. */
void kernels_normalize(float *rows, size_t n, size_t dim, float eps);

#endif
