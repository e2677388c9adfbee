/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on arrays: the hot loops of the engine, in a table of function pointers for each instruction set.
 *
 * The scalar reference defines every result to the last bit. Each variant computes the same sums in the same order with
 * the same fused multiply-adds, and is fast because it works on many outputs at once, never because it splits a sum. So
 * the same search gives the same bytes on every machine, and the tests compare variants with ==.
 *
 * Thread: any. Allocates: no. Blocks: no. Pointers need no alignment unless said; arrays do not overlap.
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
  MOL_LANES = 32,        /* items that mol_score() takes at once */
  DOT_BLOCK_ITEMS = 16,  /* items of a block of dot_blocks() */
  PQ_FILTER_PAD = 63,    /* bytes behind the last code that pq_filter() may read */
  PQ_BLOCK_ITEMS = 4096, /* items of a block of pq_scan(): a row of their codes is a page */
  PQ_SUBITEMS = 256,     /* entries of one split's look-up table, whatever the model uses of them */
};

/* Sizes of a Mixture-of-Logits model, in the paper's symbols: P_q, P_x, d_P; L = P_q P_x. */
struct mol_shape {
  size_t n_query_components;
  size_t n_item_components;
  size_t component_dim;
  size_t gate_hidden;    /* hidden width of the cross gate */
  float inv_temperature; /* 1 / tau, rounded to f32 */
};

/* Lines of memory that will be read after mol_score() or mol_bounds(): they come into cache while those compute. */
struct mol_prefetch {
  const float *const *lines;
  size_t n;
};

/* Weights of the cross gate ("qi" network): hidden = SiLU(w1^T l + b1), and w = w2^T hidden + b2. The weights of a
 * layer are packed: MOL_PACK outputs after another, [n_in][MOL_PACK] of each, the last with what outputs are left. */
struct mol_gate {
  const float *w1; /* L inputs, gate_hidden outputs */
  const float *b1; /* [gate_hidden] */
  const float *w2; /* gate_hidden inputs, L outputs */
  const float *b2; /* [L] */
};

/* The cross gate as mol_bounds() reads it, and what its proof needs (mol_reduced_gate.h). */
struct mol_reduced_gate;

enum { MOL_PACK = 8 };

/* Where the weight of output j for input 0 lies in packed weights, and the step from one input to the next. */
static inline size_t mol_packed_at(size_t n_in, size_t n_out, size_t j, size_t *step)
{
  size_t first = j / MOL_PACK * MOL_PACK;

  *step = n_out - first < MOL_PACK ? n_out - first : (size_t)MOL_PACK;
  return first * n_in + (j - first);
}

/* Sketches of vectors (engine/vector/sketch.h). */
enum {
  SKETCH_BLOCK_ITEMS = 16,   /* items of a block of dot_i8() */
  SKETCH_GROUP = 4,          /* numbers of one item that lie together there */
  DOT_I8_NUMBER_MAX = 32512, /* 127 * 256: size of a query's number */
  DOT_I8_SUM_MAX = 16777215, /* (2^31 - 1) / 128, cut: sum of the sizes of a query's numbers */
};

/* What the bounds of a sketch need of its items, by item. */
struct sketch_items {
  const float *scales;
  const float *errors;
  const float *tails; /* NULL: none */
};

/* ... and of the query. */
struct sketch_weights {
  float unit;
  float error;
  float scale;
  float tail;
  float floor;
};

/* A list that a scan of integers appends to: the slots whose score reaches the threshold. */
struct scan_entry {
  int32_t score;
  uint32_t slot;
};

struct scan_list {
  int32_t start;     /* what a sum starts from, so that a hit is one that ends at 0 or above */
  int32_t threshold; /* what is added to such a sum: the score */
  uint32_t n;
  struct scan_entry *entries; /* the caller sees to it that they have room for every item of a call */
};

/* Components of one query in bytes. */
struct sketch_rows {
  size_t n_rows;       /* P_q */
  size_t n_groups;     /* ceil(d / 4) */
  const int8_t *bytes; /* [n_groups][n_rows][4], zeros behind d */
};

struct kernels {
  const char *name;

  /* y[i][j] = bias[j] + sum over k, rising, of x[i][k] * w[k][j], each step one fused multiply-add.
   * x [n][n_in]; w [n_in][n_out]; bias [n_out] or NULL for zeros; y [n][n_out]. */
  void (*linear)(const float *x, size_t n, size_t n_in, const float *w, const float *bias, size_t n_out, float *y);

  /* x[i] = SiLU(x[i]), as math_silu() of kernels/math_ref.h. In place. */
  void (*silu)(float *x, size_t n);

  /* out[c][i] = rows[i][c] for i < n_rows <= MOL_LANES, 0 for the other lanes.
   * out [n_cols][MOL_LANES], aligned to 64. */
  void (*transpose)(const float *const *rows, size_t n_rows, size_t n_cols, float *out);

  /* Mixture-of-Logits of one query with MOL_LANES items (MoL paper, section 3.1 and appendix A; the formulas of the
   * authors' implementation). With n a query component, m an item component and p = n * P_x + m:
   *
   *   l_p  = inv_temperature * <query[n], items[m]>          w = W2 SiLU(W1 l + b1) + b2
   *   z_p  = query_gate[p] * item_gates[p] + w_p             s = SiLU(z)        phi = sum_p softmax(s)_p l_p
   *
   * query       [P_q][d], L2-normalised
   * query_gate  [L]
   * items       [P_x * d][MOL_LANES], L2-normalised, aligned to 64
   * item_gates  [L][MOL_LANES], aligned to 64
   * scratch     mol_scratch_floats() floats, aligned to 64
   * prefetch       NULL: nothing is known of what comes next
   * phi         [MOL_LANES]
   */
  void (*mol_score)(const struct mol_shape *shape, const struct mol_gate *gate, const float *query,
                    const float *query_gate, const float *items, const float *item_gates, float *scratch,
                    const struct mol_prefetch *prefetch, float *phi);

  /* Bounds on what mol_score() gives, for less than its time: for each lane a number no more than phi and one no less,
   * or infinities where there are no better; phi is NaN only where they are infinities. From products of 16 bits, with
   * a proof (mol_reduced_gate.h). NULL where the level has nothing that makes this worth it. Arguments as
   * mol_score()'s, but:
   *
   * gate           biases
   * reduced_gate    of the same gate
   * scratch        mol_bounds_scratch_floats() floats, aligned to 64
   * lower, upper   [MOL_LANES]
   */
  void (*mol_bounds)(const struct mol_shape *shape, const struct mol_gate *gate,
                     const struct mol_reduced_gate *reduced_gate, const float *query, const float *query_gate,
                     const float *items, const float *item_gates, float *scratch, const struct mol_prefetch *prefetch,
                     float *lower, float *upper);

  /* scores[b * 16 + i] = sum over k, rising, of query[k] * blocks[b][k][i], fused.
   * blocks [n_blocks][dim][DOT_BLOCK_ITEMS], aligned to 64; scores [n_blocks * DOT_BLOCK_ITEMS]. */
  void (*dot_blocks)(const float *query, size_t dim, const float *blocks, size_t n_blocks, float *scores);

  /* Write the indices i < n, rising, of items with base + sum over t of tables[t][codes[rows[t]][i]] <= limit to
   * indices [n]; return how many. The sum is exact: it does not wrap. Integers, so that every level finds the same
   * items. Tables with large entries had better come first: of a few items, those above the limit early are looked up
   * no further.
   * tables [n_tables][PQ_SUBITEMS], each aligned to 64; rows [n_tables]; n_tables may be 0; codes [][stride], of which
   * n count, with PQ_FILTER_PAD readable bytes behind the n-th of each row; limit < 255. */
  size_t (*pq_filter)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes,
                      size_t stride, size_t n, uint8_t base, uint8_t limit, uint32_t *indices);

  /* The same with base 0 over up to PQ_BLOCK_ITEMS items at once, row after row, for catalogues that are read from far
   * away: while a row is looked up the next one is asked for, and after the last one the first row of `next`.
   * codes [][PQ_BLOCK_ITEMS], of which n count; next: the block that is scanned after this one, or NULL. */
  size_t (*pq_scan)(const uint8_t *const *tables, const uint8_t *rows, size_t n_tables, const uint8_t *codes, size_t n,
                    uint8_t limit, const uint8_t *next, uint32_t *indices);

  /* Write the indices i < n, rising, with scores[i] >= threshold (never for NaN) to indices [n]; return how many. */
  size_t (*filter_ge)(const float *scores, size_t n, float threshold, uint32_t *indices);

  /* sums[b * 16 + i] = sum over k of query[k] * x[k], exactly. An item's numbers x, -128..127, are bytes x + 128.
   * query   [n_groups * 4], each of size DOT_I8_NUMBER_MAX at most, together DOT_I8_SUM_MAX: no sum overflows
   * blocks  [n_blocks][n_groups][SKETCH_BLOCK_ITEMS][SKETCH_GROUP], aligned to 64
   * sums    [n_blocks * SKETCH_BLOCK_ITEMS] */
  void (*dot_i8)(const int16_t *query, size_t n_groups, const uint8_t *blocks, size_t n_blocks, int32_t *sums);

  /* dot_i8() of two queries: what is read of the items serves both. */
  void (*dot_i8_pair)(const int16_t *const queries[2], size_t n_groups, const uint8_t *blocks, size_t n_blocks,
                      int32_t *const sums[2]);

  /* Bounds of n_blocks * SKETCH_BLOCK_ITEMS items from the sums of dot_i8(), in f32: bounds[i] = score + slack,
   * score = (sums[i] * scales[i]) * unit
   * slack = tails[i] * tail + (errors[i] * error + (scales[i] * scale + floor)), fused; without tails, as if 0. */
  void (*sketch_bounds)(const int32_t *sums, const struct sketch_items *items, const struct sketch_weights *weights,
                        size_t n_blocks, float *bounds);

  /* sum of query[k] * row[k] in double: 32 partial sums s[j], each over k = j, j + 32, ..., rising and fused, all as
   * long as the longest (zeros behind the last k); then s[j] + s[j + 16] for j < 16, and so on by halves. */
  double (*dot_f64)(const double *query, const float *row, size_t n);

  /* All dot products of a query's components with items' components, both in bytes, and those that reach a threshold:
   * for row n, item component m and p = n * n_components + m, sum = lists[p].start + the product of bytes, wrapping;
   * where sum >= 0, { sum + lists[p].threshold, slot } is appended to lists[p]. Slots of one list rise. Returns how
   * many were appended.
   *
   * blocks        [n_blocks][block_bytes], each [n_components][n_groups][SKETCH_BLOCK_ITEMS][4] (and more behind it),
   *               unsigned: a number x is stored as x + 128, which the starts make up for; aligned to 64
   * first_slot    of blocks[0]
   * lists         [n_rows * n_components], updated
   */
  size_t (*mol_lists)(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t block_bytes,
                      size_t n_blocks, uint32_t first_slot, struct scan_list *lists);

  /* The same products; only whether an item has any that reaches its row's threshold: bit i of masks[b] says so of item
   * i of block b. starts [n_rows]; blocks [n_blocks][n_components][n_groups][SKETCH_BLOCK_ITEMS][4]; masks [n_blocks].
   */
  void (*mol_any)(const struct sketch_rows *rows, size_t n_components, const uint8_t *blocks, size_t n_blocks,
                  const int32_t *starts, uint16_t *masks);

  /* mol_lists() of numbers of 16 bits, one vector an item, and many queries: row r against each item, to lists[r].
   * rows [n_groups][n_rows][2]; blocks [n_blocks][n_groups][SKETCH_BLOCK_ITEMS][2], aligned to 64; lists [n_rows]. */
  size_t (*average_lists)(const int16_t *rows, size_t n_rows, size_t n_groups, const int16_t *blocks, size_t n_blocks,
                          uint32_t first_slot, struct scan_list *lists);

  /* Bring the entries that score `least` or more to the front; these and the others keep their order. Returns how many.
   * entries, spare [n], apart; spare is written over. */
  size_t (*partition_ge)(struct scan_entry *entries, size_t n, int32_t threshold, struct scan_entry *spare);
};

/* Instruction sets, rising; each table is the one below it with what it does faster. */
enum isa { ISA_REF, ISA_AVX2, ISA_AVX512, ISA_AVX512_VNNI, ISA_AVX512_VBMI, ISA_AMX, N_ISAS };

/* Best level that this machine and this build have. The first call asks the system for what the level amx needs and
 * tries its instructions: less than a millisecond. */
enum isa isa_detect(void);

/* "ref", "avx2", "avx512", "avx512vnni", "avx512vbmi", "amx". */
const char *isa_name(enum isa isa);
bool isa_find(const char *name, enum isa *out);

/* The table for a level. Returns ERR_CONFIG when this machine does not have it. The table is static. */
err_t kernels_get(enum isa isa, const struct kernels **out);

/* Pack a layer's weights w [n_in][n_out] for struct mol_gate. Not hot. */
void mol_pack(const float *w, size_t n_in, size_t n_out, float *packed);

/* Floats of scratch that mol_score() needs. */
size_t mol_scratch_floats(const struct mol_shape *shape);

/* Prepare a model's gate for mol_bounds(): not hot, the same code on every machine. `*out` is NULL where sizes or
 * weights are beyond what its proof covers. Returns ERR_MEMORY. Closed with mol_reduced_gate_close(). */
err_t mol_reduced_gate_open(const struct mol_shape *shape, const struct mol_gate *gate, struct mol_reduced_gate **out);
void mol_reduced_gate_close(struct mol_reduced_gate **gate);

/* Floats of scratch that mol_bounds() needs. */
size_t mol_bounds_scratch_floats(const struct mol_shape *shape);

/* GELU in its exact form, x * Phi(x), in place: not hot, the same code on every machine. */
void kernels_gelu(float *x, size_t n);

/* The L2 norm of n floats: squares, sum and root in double, summed in order. */
double kernels_norm(const float *x, size_t n);

/* Divide each of n rows of dim floats by max(its L2 norm, eps), in place; norm and quotient in double, sums rise. Not
 * hot: the same code on every machine. */
void kernels_normalize(float *rows, size_t n, size_t dim, float eps);

#endif
