/* SPDX-License-Identifier: Apache-2.0 */
/* The scalar reference: every variant must give its results to the last bit. Written for clarity, not for speed. */
#include <math.h>

#include "kernels/gelu_ref.h"
#include "kernels/math_ref.h"
#include "kernels/pq_filter.h"
#include "kernels/variants.h"

static void linear_ref(const float *x, size_t n, size_t n_in, const float *w, const float *bias, size_t n_out, float *y)
{
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n_out; j++) {
      float sum = bias ? bias[j] : 0.0f;
      for (size_t k = 0; k < n_in; k++)
        sum = fmaf(x[i * n_in + k], w[k * n_out + j], sum);
      y[i * n_out + j] = sum;
    }
  }
}

static void gelu_ref(float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    x[i] = gelu_of(x[i]);
}

static void silu_ref(float *x, size_t n)
{
  for (size_t i = 0; i < n; i++)
    x[i] = math_silu(x[i]);
}

static void transpose_ref(const float *const *rows, size_t n_rows, size_t n_cols, float *out)
{
  for (size_t c = 0; c < n_cols; c++) {
    for (size_t i = 0; i < MOL_LANES; i++)
      out[c * MOL_LANES + i] = i < n_rows ? rows[i][c] : 0.0f;
  }
}

/* sum_k a[k] * lane[k]. lane: one item's column of an array [n][MOL_LANES]. */
static float dot_lane(const float *a, const float *lane, size_t n)
{
  float sum = 0.0f;

  for (size_t k = 0; k < n; k++)
    sum = fmaf(a[k], lane[k * MOL_LANES], sum);
  return sum;
}

/* bias[j] + sum over k, rising, of lane[k] * w[k][j]. w: packed weights. */
static float cross_sum(const float *lane, size_t n_in, const float *w, size_t n_out, const float *bias, size_t j)
{
  size_t step, at = mol_packed_at(n_in, n_out, j, &step);
  float sum = bias[j];

  for (size_t k = 0; k < n_in; k++)
    sum = fmaf(lane[k * MOL_LANES], w[at + k * step], sum);
  return sum;
}

/* sum_p softmax(s)_p l_p */
static float mix_logits(const float *s, const float *l, size_t n)
{
  float max = s[0], den = 0.0f, num = 0.0f;

  for (size_t p = 1; p < n; p++)
    max = s[p * MOL_LANES] > max ? s[p * MOL_LANES] : max;
  for (size_t p = 0; p < n; p++) {
    float e = math_exp(s[p * MOL_LANES] - max);
    den += e;
    num = fmaf(e, l[p * MOL_LANES], num);
  }
  return num / den;
}

static void mol_score_ref(const struct mol_shape *shape, const struct mol_gate *gate, const float *query,
                          const float *query_gate, const float *items, const float *item_gates, float *scratch,
                          const struct mol_prefetch *prefetch, float *phi)
{
  (void)prefetch;
  struct mol_scratch part = mol_scratch_split(shape, scratch);
  size_t n_items = shape->n_item_components, dim = shape->component_dim, hidden = shape->gate_hidden;
  size_t n_logits = shape->n_query_components * n_items;

  for (size_t lane = 0; lane < MOL_LANES; lane++) {
    float *l = part.logits + lane, *h = part.hidden + lane, *s = part.gates + lane;

    for (size_t p = 0; p < n_logits; p++) {
      size_t n = p / n_items, m = p % n_items;
      l[p * MOL_LANES] = dot_lane(query + n * dim, items + m * dim * MOL_LANES + lane, dim) * shape->inv_temperature;
    }
    for (size_t j = 0; j < hidden; j++)
      h[j * MOL_LANES] = math_silu(cross_sum(l, n_logits, gate->w1, hidden, gate->b1, j));
    for (size_t p = 0; p < n_logits; p++) {
      float w = cross_sum(h, hidden, gate->w2, n_logits, gate->b2, p);
      s[p * MOL_LANES] = math_silu(fmaf(query_gate[p], item_gates[p * MOL_LANES + lane], w));
    }
    phi[lane] = mix_logits(s, l, n_logits);
  }
}

static void dot_blocks_ref(const float *query, size_t dim, const float *blocks, size_t n_blocks, float *scores)
{
  for (size_t b = 0; b < n_blocks; b++) {
    for (size_t i = 0; i < DOT_BLOCK_ITEMS; i++) {
      float sum = 0.0f;
      for (size_t k = 0; k < dim; k++)
        sum = fmaf(query[k], blocks[(b * dim + k) * DOT_BLOCK_ITEMS + i], sum);
      scores[b * DOT_BLOCK_ITEMS + i] = sum;
    }
  }
}

static size_t filter_ge_ref(const float *scores, size_t n, float threshold, uint32_t *indices)
{
  size_t found = 0;

  for (size_t i = 0; i < n; i++) {
    if (scores[i] >= threshold)
      indices[found++] = (uint32_t)i;
  }
  return found;
}

void variant_ref(struct kernels *table)
{
  table->linear = linear_ref;
  table->silu = silu_ref;
  table->gelu = gelu_ref;
  table->transpose = transpose_ref;
  table->mol_score = mol_score_ref;
  table->dot_blocks = dot_blocks_ref;
  table->pq_filter = pq_filter_ref;
  table->pq_cells = pq_cells_ref;
  table->pq_best = pq_best_ref;
  table->pq_levels = pq_levels_ref;
  table->pq_scan = pq_scan_ref;
  table->pq_slots_per_cell = 1;
  table->pq_gather = pq_gather_ref;
  table->filter_ge = filter_ge_ref;
  variant_sketch_ref(table);
  variant_mol_lists_ref(table);
  variant_select_ref(table);
}
