/* SPDX-License-Identifier: Apache-2.0 */
/* Making a model's cross gate and queries for mol_screen() with tiles of bf16. "Step" means a step of the proof in
 * mol_screen_bf16.h. */
#include "kernels/mol_screen_bf16.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/kernels.h"
#include "kernels/matrix.h"
#include "kernels/mol_screen.h"

#define SECOND_ORDER (1 + 0x1p-5)
#define SLOPE        1.1 /* SiLU's largest slope */

static const double u = 0x1p-24;

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) / to * to;
}

/* Round to bf16. A result that tiles take for zero is zero. */
static uint16_t bf16_of(double x)
{
  float f = (float)x;
  uint32_t bits;

  if (fabsf(f) < 0x1p-125f)
    return 0;
  memcpy(&bits, &f, sizeof bits);
  return (uint16_t)((bits + 0x8000) >> 16);
}

static double value_of(uint16_t bf16)
{
  uint32_t bits = (uint32_t)bf16 << 16;
  float f;

  memcpy(&f, &bits, sizeof f);
  return (double)f;
}

/* The place of a weight in tiles. */
static size_t weight_at(size_t in_tiles, size_t output, size_t input)
{
  size_t tile = output / SCREEN_TILE_ROWS * in_tiles + input / SCREEN_TILE_INPUTS;

  return (tile * SCREEN_TILE_ROWS + output % SCREEN_TILE_ROWS) * SCREEN_TILE_INPUTS + input % SCREEN_TILE_INPUTS;
}

/* The number of the logit at a place, or -1: padding. */
static int32_t logit_at(const struct mol_screen *screen, size_t place)
{
  return place < screen->n_out ? screen->logits[place] : -1;
}

/* rest [H][L] receives W1 - W1^. */
static void fill_w1(const struct mol_screen_layer *layer, const struct mol_screen *screen, size_t n_hidden,
                    size_t n_logits, struct mol_screen_bf16 *out, double *rest)
{
  for (size_t j = 0; j < n_hidden; j++) {
    for (size_t place = 0; place < 2 * screen->n_pairs; place++) {
      int32_t p = logit_at(screen, place);
      if (p < 0)
        continue;
      double weight = layer->weights[j * n_logits + (size_t)p];
      uint16_t rounded = bf16_of(weight * (double)out->logit_unit);
      out->w1[weight_at(out->in_tiles[0], j, place)] = rounded;
      rest[j * n_logits + (size_t)p] = weight - value_of(rounded) / (double)out->logit_unit;
    }
    out->b1[j] = layer->bias[j];
  }
}

/* rest [L][H] receives W2 - W2^. */
static void fill_w2(const struct mol_screen_layer *layer, const struct mol_screen *screen, size_t n_hidden,
                    struct mol_screen_bf16 *out, double *rest)
{
  for (size_t place = 0; place < 2 * screen->n_pairs; place++) {
    int32_t p = logit_at(screen, place);
    if (p < 0)
      continue;
    for (size_t j = 0; j < n_hidden; j++) {
      double weight = layer->weights[(size_t)p * n_hidden + j];
      uint16_t rounded = bf16_of(weight);
      out->w2[weight_at(out->in_tiles[1], place, j)] = rounded;
      rest[(size_t)p * n_hidden + j] = weight - value_of(rounded);
    }
    out->b2[place] = layer->bias[p];
  }
}

/* SiLU(y) - max(y, 0) for a = |y|. Its second derivative is within +- 0.5. */
static double below_ramp(double a)
{
  return -a / (1 + exp(a));
}

/* Fill the lines of SiLU: line i for the a next to i steps. The last one is flat. Returns activation_error. */
static double fill_lines(struct mol_screen_bf16 *out)
{
  enum { SAMPLES = 64 };
  double step = (double)SCREEN_LINE_STEP, worst = 0;

  for (int i = 0; i < SCREEN_LINES; i++) {
    bool is_last = i == SCREEN_LINES - 1;
    double first = fmax((i - 0.5) * step, 0), end = (i + 0.5) * step, low = INFINITY, high = -INFINITY;
    double slope = is_last ? 0 : (below_ramp(end) - below_ramp(first)) / (end - first);
    for (int j = 0; j <= SAMPLES; j++) {
      double a = first + (end - first) * j / SAMPLES, rest = below_ramp(a) - slope * a;
      low = fmin(low, rest);
      high = fmax(high, rest);
    }
    if (is_last) /* it rises to 0 */
      high = 0;
    out->slopes[i] = (float)slope;
    out->offsets[i] = (float)((low + high) / 2);
    worst = fmax(worst, (high - low) / 2);
  }
  return worst + (step / SAMPLES) * (step / SAMPLES) / 8 + 0x1p-20; /* between samples; rounding */
}

static err_t allocate(struct mol_screen_bf16 *out)
{
  TRY(mem_array(out->n_hidden * out->in_tiles[0] * SCREEN_TILE_INPUTS, sizeof *out->w1, &out->w1));
  TRY(mem_array(out->n_out * out->in_tiles[1] * SCREEN_TILE_INPUTS, sizeof *out->w2, &out->w2));
  TRY(mem_array(out->n_hidden, sizeof *out->b1, &out->b1));
  return mem_array(out->n_out, sizeof *out->b2, &out->b2);
}

err_t mol_screen_bf16_init(const struct mol_shape *shape, const struct mol_screen_layer *layers, double through,
                           const struct mol_screen *screen, struct mol_screen_bf16 *out)
{
  const struct mol_screen_layer *first = &layers[0], *second = &layers[1];
  size_t n_logits = shape->n_query_components * shape->n_item_components, n_hidden = shape->gate_hidden;
  double l = (double)n_logits, h = (double)n_hidden, w1_rest, w2_rest;
  AUTO(mem_free) double *rest = NULL;

  *out = (struct mol_screen_bf16){
    .n_hidden = round_up(n_hidden, SCREEN_BF16_OUTPUTS),
    .n_out = round_up(2 * screen->n_pairs, SCREEN_BF16_OUTPUTS),
    .logit_unit = (float)((1 << SCREEN_LOW_BITS) * (double)shape->inv_temperature /
                          ((double)SCREEN_BYTES_SCALE * (double)SCREEN_QUERY_SCALE)),
  };
  out->in_tiles[0] = out->n_out / SCREEN_TILE_INPUTS;
  out->in_tiles[1] = out->n_hidden / SCREEN_TILE_INPUTS;
  TRY(allocate(out));
  TRY(mem_array(n_logits * n_hidden, sizeof *rest, &rest));
  fill_w1(first, screen, n_hidden, n_logits, out, rest);
  TRY(matrix_spectral_norm(rest, n_hidden, n_logits, &w1_rest));
  fill_w2(second, screen, n_hidden, out, rest);
  TRY(matrix_spectral_norm(rest, n_logits, n_hidden, &w2_rest));
  double activation_error = fill_lines(out);

  /* Steps 2 to 6. Norms that are measured after rounding are raised by BF16_ERROR. */
  double raised = 1 + 0x1p-7, r = 2 * (l + 8) * u, sums = 2 * (h + 16) * u;
  double per_logits = SLOPE * SLOPE * second->spectral * (w1_rest + r * first->frobenius);
  double per_hidden = SLOPE * (second->spectral * (BF16_ERROR + 8 * u) + w2_rest + sums * second->frobenius);
  double constant = second->spectral * (SLOPE * r * kernels_norm(first->bias, n_hidden) + sqrt(h) * activation_error) +
                    sums * kernels_norm(second->bias, n_logits);
  double functions = (SCREEN_EXP_ERROR + activation_error + 512 * u) * sqrt(l);
  out->per_logit_error = SECOND_ORDER * SLOPE * through;
  out->per_lost = (float)(out->per_logit_error * raised * (double)out->logit_unit);
  out->per_logits = (float)(SECOND_ORDER * raised * per_logits * (double)out->logit_unit);
  out->per_hidden = (float)(SECOND_ORDER * raised * per_hidden);
  out->constant = SECOND_ORDER * (SLOPE * constant + functions) + (l + 4) * 2 * u * sqrt(l);
  out->per_gate = (float)(SECOND_ORDER * SCREEN_SILU_RELATIVE * sqrt(l));
  return ERR_OK;
}

void mol_screen_bf16_fini(struct mol_screen_bf16 *gate)
{
  mem_free(&gate->w1);
  mem_free(&gate->w2);
  mem_free(&gate->b1);
  mem_free(&gate->b2);
}

size_t mol_screen_bf16_scratch_floats(const struct mol_shape *shape)
{
  size_t n_rows = SCREEN_TILE_INPUTS / 2 + round_up(shape->gate_hidden, SCREEN_BF16_OUTPUTS) / 2 + SCREEN_BF16_OUTPUTS;

  return n_rows * MOL_LANES;
}

/* Queries -------------------- */

static size_t chunks_of(const struct mol_shape *shape)
{
  return round_up(shape->component_dim, SCREEN_TILE_INPUTS) / SCREEN_TILE_INPUTS;
}

size_t mol_screen_bf16_query_bytes(const struct mol_shape *shape)
{
  size_t n_groups = round_up(shape->n_query_components, SCREEN_TILE_QUERY) / SCREEN_TILE_QUERY;

  return n_groups * chunks_of(shape) * SCREEN_TILE_ROWS * SCREEN_TILE_BYTES;
}

size_t mol_screen_words(const struct mol_shape *shape)
{
  return shape->n_item_components * chunks_of(shape) * SCREEN_TILE_ROWS;
}

static int8_t high_of(int16_t x)
{
  return (int8_t)((x + (1 << (SCREEN_LOW_BITS - 1))) >> SCREEN_LOW_BITS);
}

static int8_t low_of(int16_t x)
{
  return (int8_t)(x - high_of(x) * (1 << SCREEN_LOW_BITS));
}

/* The row of component n in its tile of chunk c. */
static size_t row_at(const struct mol_shape *shape, size_t n, size_t c)
{
  size_t tile = n / SCREEN_TILE_QUERY * chunks_of(shape) + c;

  return (tile * SCREEN_TILE_ROWS + n % SCREEN_TILE_QUERY) * SCREEN_TILE_BYTES;
}

/* The row of its low bytes. */
static size_t low_row_at(const struct mol_shape *shape, size_t n, size_t c)
{
  return row_at(shape, n, c) + SCREEN_TILE_QUERY * SCREEN_TILE_BYTES;
}

/* A component's row has its high bytes, then zeros; the row of its low bytes has these, then the high ones. Items have
 * high bytes, then low ones: the rows' products are h h, and l h + h l. */
static void fill_tiles(const struct mol_shape *shape, const int16_t *numbers, int8_t *tiles)
{
  size_t n_pairs = (shape->component_dim + 1) / 2;

  memset(tiles, 0, mol_screen_bf16_query_bytes(shape));
  for (size_t n = 0; n < shape->n_query_components; n++) {
    const int16_t *from = numbers + (n / SCREEN_OUTPUTS * n_pairs * SCREEN_OUTPUTS + n % SCREEN_OUTPUTS) * 2;
    for (size_t k = 0; k < shape->component_dim; k++) {
      int16_t x = from[k / 2 * SCREEN_OUTPUTS * 2 + k % 2];
      size_t c = k / SCREEN_TILE_INPUTS, at = k % SCREEN_TILE_INPUTS;
      int8_t *low_row = tiles + low_row_at(shape, n, c);
      tiles[row_at(shape, n, c) + at] = high_of(x);
      low_row[at] = low_of(x);
      low_row[SCREEN_TILE_INPUTS + at] = high_of(x);
    }
  }
}

/* The dot product of the low bytes of two components. */
static int32_t low_dot(const struct mol_shape *shape, const int8_t *tiles, size_t i, size_t j)
{
  int32_t dot = 0;

  for (size_t c = 0; c < chunks_of(shape); c++) {
    const int8_t *a = tiles + low_row_at(shape, i, c), *b = tiles + low_row_at(shape, j, c);
    for (size_t k = 0; k < SCREEN_TILE_INPUTS; k++)
      dot += a[k] * b[k];
  }
  return dot;
}

/* Return a bound on |L_F|, and the norm of the longest row. */
static double low_norm(const struct mol_shape *shape, const int8_t *tiles, double *longest)
{
  double largest = 0;

  *longest = 0;
  for (size_t i = 0; i < shape->n_query_components; i++) {
    double sum = 0;
    for (size_t j = 0; j < shape->n_query_components; j++)
      sum += fabs((double)low_dot(shape, tiles, i, j));
    *longest = fmax(*longest, sqrt((double)low_dot(shape, tiles, i, i)));
    largest = fmax(largest, sum);
  }
  return sqrt(largest);
}

void mol_screen_bf16_prepare(const struct mol_shape *shape, const struct mol_screen_bf16 *gate, const int16_t *numbers,
                             const struct mol_screen_query_sizes *sizes, int8_t *tiles, struct mol_screen_errors *out)
{
  double dim = (double)shape->component_dim, n_items = (double)shape->n_item_components, longest;
  double l = (double)shape->n_query_components * n_items, inv_temperature = (double)shape->inv_temperature;

  fill_tiles(shape, numbers, tiles);
  /* Steps 1 and 8. Norms of components are at most 1 + 2^-20. */
  double item_rest = sqrt(dim) * 0.51 / (double)SCREEN_BYTES_SCALE * 1.001, rounding = (dim + 8) * 2 * u;
  double low_item =
      sqrt(dim) * (1 << (SCREEN_LOW_BITS - 1)) / ((double)SCREEN_BYTES_SCALE * (double)SCREEN_QUERY_SCALE);
  double low = low_norm(shape, tiles, &longest) * low_item, all = sizes->rest + sizes->spectral * item_rest + low;
  double logits_error = inv_temperature * (all * sqrt(n_items) + rounding * sqrt(l));
  double logit_error = inv_temperature * (sizes->worst_rest * 1.001 + item_rest * 1.1 + longest * low_item + rounding +
                                          BF16_ERROR * 1.01);

  out->delta = (float)((gate->constant + gate->per_logit_error * logits_error) * (1 + 0x1p-20));
  out->slack = (float)((logit_error + (2 * l + 8) * u * inv_temperature * 1.01) * (1 + 0x1p-20));
}
