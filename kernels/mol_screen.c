/* SPDX-License-Identifier: Apache-2.0 */
/* Making a model's cross gate and queries for mol_screen(). "Step" means a step of the proof in mol_screen.h. */
#include "kernels/mol_screen.h"

#include <math.h>

#include "base/mem.h"
#include "kernels/kernels.h"
#include "kernels/matrix.h"
#include "kernels/mol_reduced_gate.h"

#define SECOND_ORDER (1 + 0x1p-5)
#define SILU_LOWEST  (-0.2785) /* SiLU is above it */
#define SLOPE        1.1       /* SiLU's largest slope */

enum {
  COMPONENT_DIM_MAX = 1024,
  Y_BITS_MAX = 10,
  Y_BITS_MIN = 3, /* a segment is 2^(y_bits - 2) wide */
  W2_MAX = 127,
  LOGIT_MAX = 8191, /* |F~| |G~| in units of logits, with room for rounding */
};

static const double u = 0x1p-24, segment = 0.25;

static size_t round_up(size_t n, size_t to)
{
  return (n + to - 1) / to * to;
}

/* The value of the integer 1 of a rounded logit. */
static double logit_unit(const struct mol_shape *shape)
{
  return 65536.0 * (double)shape->inv_temperature / ((double)SCREEN_ITEM_SCALE * (double)SCREEN_QUERY_SCALE);
}

/* Return the number of the logit at a place of W1's inputs; false for padding. */
static bool logit_at(const struct mol_shape *shape, size_t place, size_t *p)
{
  size_t n_even = round_up(shape->n_query_components, 2), m = place / n_even, n = place % n_even;

  *p = n * shape->n_item_components + m;
  return m < shape->n_item_components && n < shape->n_query_components;
}

/* Factor of W1 with which y~ is a multiple of 2^-y_bits. */
static double w1_scale(const struct mol_shape *shape, int y_bits)
{
  return ldexp(logit_unit(shape), y_bits + 16);
}

/* Do the integers of W1 fit in 16 bits and their sums in 32? */
static bool w1_fits(const struct mol_shape *shape, const struct mol_screen_layer *layer, int y_bits)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  double scale = w1_scale(shape, y_bits);

  for (size_t j = 0; j < shape->gate_hidden; j++) {
    double sum = 0, largest = 0;
    for (size_t k = 0; k < n_logits; k++) {
      double weight = fabs(layer->weights[j * n_logits + k]) * scale;
      sum += weight + 0.5;
      largest = fmax(largest, weight);
    }
    if (largest > INT16_MAX || sum * LOGIT_MAX + ldexp(fabs((double)layer->bias[j]), y_bits + 16) + 65536 > INT32_MAX)
      return false;
  }
  return true;
}

/* Fill W1's integers. rest [n_hidden][n_logits] receives W1 - W1~. */
static void fill_w1(const struct mol_shape *shape, const struct mol_screen_layer *layer, struct mol_screen *s,
                    double *rest)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  double scale = w1_scale(shape, s->y_bits);

  for (size_t j = 0; j < shape->gate_hidden; j++) {
    int16_t *row = s->w1 + (j / SCREEN_OUTPUTS * s->n_pairs * SCREEN_OUTPUTS + j % SCREEN_OUTPUTS) * 2;
    for (size_t place = 0, p; place < 2 * s->n_pairs; place++) {
      if (!logit_at(shape, place, &p))
        continue;
      double weight = layer->weights[j * n_logits + p], number = rint(weight * scale);
      row[place / 2 * SCREEN_OUTPUTS * 2 + place % 2] = (int16_t)number;
      rest[j * n_logits + p] = weight - number / scale;
    }
    s->b1[j] = (int32_t)(rint(ldexp((double)layer->bias[j], s->y_bits + 16)) + 32768);
  }
}

/* Fill W2's integers, one scale for each output. rest [n_logits][n_hidden] receives W2 - W2~. Returns the bias's norm.
 */
static double fill_w2(const struct mol_shape *shape, const struct mol_screen_layer *layer, struct mol_screen *s,
                      double *rest)
{
  static const size_t place_of[SCREEN_GROUP] = { 0, 2, 1, 3 };
  double squares = 0;

  for (size_t o = 0, p; o < s->n_out; o++) {
    s->logits[o] = -1;
    if (!logit_at(shape, o, &p))
      continue;
    const double *weights = layer->weights + p * shape->gate_hidden;
    size_t block = o / SCREEN_OUTPUTS * SCREEN_OUTPUTS * s->n_hidden;
    int8_t *row = s->w2 + block + o % SCREEN_OUTPUTS * SCREEN_GROUP;
    int16_t *pairs = s->w2_pairs + block + o % SCREEN_OUTPUTS * 2;
    double largest = 0, sum = 0;
    for (size_t j = 0; j < shape->gate_hidden; j++)
      largest = fmax(largest, fabs(weights[j]));
    s->units[o] = (float)(largest / W2_MAX);
    for (size_t j = 0; j < shape->gate_hidden; j++) {
      double number = s->units[o] > 0 ? rint(weights[j] / (double)s->units[o]) : 0;
      number = fmax(-W2_MAX, fmin(number, W2_MAX));
      row[j / SCREEN_GROUP * SCREEN_OUTPUTS * SCREEN_GROUP + place_of[j % SCREEN_GROUP]] = (int8_t)number;
      pairs[j / 2 * SCREEN_OUTPUTS * 2 + j % 2] = (int16_t)number;
      rest[p * shape->gate_hidden + j] = weights[j] - number * (double)s->units[o];
      sum += weights[j];
    }
    double bias = (double)layer->bias[p] - s->h_zero * sum;
    s->b2[o] = (float)bias;
    s->logits[o] = (int32_t)p;
    squares += bias * bias;
  }
  return sqrt(squares);
}

/* SiLU(y) - y / 2, an even function, for a = |y|. Its second derivative is within +- 0.5. */
static double even_part(double a)
{
  return a / 2 * tanh(a / 2);
}

/* Return the largest distance between the function and a line, in one segment, and centre the line. */
static double fit_segment(int i, double slope, double *offset)
{
  enum { SAMPLES = 64 };
  double first = i * segment, low = INFINITY, high = -INFINITY;

  for (int j = 0; j <= SAMPLES; j++) {
    double a = first + segment * j / SAMPLES, rest = even_part(a) - slope * a;
    low = fmin(low, rest);
    high = fmax(high, rest);
  }
  *offset = (low + high) / 2;
  return (high - low) / 2 + (segment / SAMPLES) * (segment / SAMPLES) / 8; /* between samples */
}

/* Fill the lines of SiLU. Returns activation_error. The last line has slope 1/2: beyond it, SiLU(y) is y or 0 to within
 * what it is off there. */
static double fill_lines(struct mol_screen *s)
{
  double offsets[SCREEN_SEGMENTS], worst = 0, range = ldexp(1, 15 - s->h_bits);

  for (int i = 0; i < SCREEN_SEGMENTS; i++) {
    bool is_last = i == SCREEN_SEGMENTS - 1;
    double first = i * segment;
    double slope = is_last ? 0.5 : (even_part(first + segment) - even_part(first)) / segment;
    double error = fit_segment(i, slope, &offsets[i]);
    if (is_last) /* a / 2 - even_part(a) falls to 0 */
      error = fmax(error, fabs(offsets[i]));
    s->slopes[i] = (int16_t)rint(slope * 32768);
    worst = fmax(worst, error);
  }
  worst += range * 0x1p-16 + ldexp(1.01, -s->h_bits); /* the slope's rounding, and two roundings by half */
  s->h_zero = worst - SILU_LOWEST;
  for (int i = 0; i < SCREEN_SEGMENTS; i++)
    s->offsets[i] = (int16_t)rint(ldexp(offsets[i] + s->h_zero, s->h_bits));
  return worst;
}

/* Choose the bits of y~ and h~ such that few hidden units of a random item are out of range. */
static bool choose_bits(const struct mol_shape *shape, const struct mol_screen_layer *layer, struct mol_screen *s)
{
  double deviation = layer->frobenius / sqrt((double)shape->gate_hidden) * (double)shape->inv_temperature /
                     sqrt((double)shape->component_dim);

  s->h_bits = 11;
  while (s->h_bits > Y_BITS_MIN + 1 && ldexp(1, 15 - s->h_bits) < 5 * deviation)
    s->h_bits--;
  s->y_bits = s->h_bits - 1 < Y_BITS_MAX ? s->h_bits - 1 : Y_BITS_MAX;
  while (s->y_bits >= Y_BITS_MIN && !w1_fits(shape, layer, s->y_bits))
    s->y_bits--;
  return s->y_bits >= Y_BITS_MIN;
}

static err_t allocate(struct mol_screen *s)
{
  TRY(mem_array(s->n_hidden * s->n_pairs * 2, sizeof *s->w1, &s->w1));
  TRY(mem_array(s->n_hidden, sizeof *s->b1, &s->b1));
  TRY(mem_array(s->n_out * s->n_hidden, sizeof *s->w2, &s->w2));
  TRY(mem_array(s->n_out * s->n_hidden, sizeof *s->w2_pairs, &s->w2_pairs));
  TRY(mem_array(s->n_out, sizeof *s->units, &s->units));
  TRY(mem_array(s->n_out, sizeof *s->b2, &s->b2));
  return mem_array(s->n_out, sizeof *s->logits, &s->logits);
}

err_t mol_screen_init(const struct mol_shape *shape, const struct mol_screen_layer layers[2], double through,
                      struct mol_screen *out)
{
  const struct mol_screen_layer *first = &layers[0], *second = &layers[1];
  size_t n_places = round_up(shape->n_query_components, 2) * shape->n_item_components;
  size_t n_logits = shape->n_query_components * shape->n_item_components;
  double l = (double)n_logits, h = (double)shape->gate_hidden, w1_rest, w2_rest;
  AUTO(mem_free) double *rest = NULL;

  *out = (struct mol_screen){ .n_pairs = n_places / 2,
                              .n_hidden = round_up(shape->gate_hidden, SCREEN_OUTPUTS),
                              .n_out = round_up(n_places, SCREEN_OUTPUTS) };
  if (shape->component_dim > COMPONENT_DIM_MAX || !choose_bits(shape, first, out))
    return ERR_OK;
  TRY(mem_array(n_logits * shape->gate_hidden, sizeof *rest, &rest));
  TRY(allocate(out));
  fill_w1(shape, first, out, rest);
  TRY(matrix_spectral_norm(rest, shape->gate_hidden, n_logits, &w1_rest));
  double activation_error = fill_lines(out), bias = fill_w2(shape, second, out, rest);
  TRY(matrix_spectral_norm(rest, n_logits, shape->gate_hidden, &w2_rest));
  out->h_slack = (int)ceil(ldexp(out->h_zero + activation_error, out->h_bits)) + 1;
  out->logit_unit = (float)logit_unit(shape);

  /* Steps 2 to 6. Sums of n terms in f32 are off by (n + 3) u of the terms' sizes. |h| <= |h~ + h_0| + h_0 sqrt(H). */
  double y_error =
      0.51 * sqrt(h) * ldexp(1, -out->y_bits) + (l + 8) * u * kernels_norm(first->bias, shape->gate_hidden);
  double sums = (h + 16) * u * second->frobenius;
  double constant = second->spectral * (SLOPE * y_error + sqrt(h) * activation_error) +
                    2 * sums * out->h_zero * sqrt(h) + (h + 16) * u * (bias + kernels_norm(second->bias, n_logits));
  double functions = (SCREEN_EXP_ERROR + SCREEN_SILU_ERROR + 512 * u) * sqrt(l);
  out->per_logit_error = SECOND_ORDER * SLOPE * through;
  out->per_logit = SECOND_ORDER * SLOPE * second->spectral * SLOPE * (w1_rest + (l + 8) * u * first->frobenius);
  out->constant = SECOND_ORDER * (SLOPE * constant + functions) + (l + 4) * 2 * u * sqrt(l);
  out->per_lost = (float)(SECOND_ORDER * SLOPE * second->spectral);
  out->per_hidden = (float)(SECOND_ORDER * SLOPE * (w2_rest + 2 * sums + 8 * u * second->spectral));
  out->per_gate = (float)(SECOND_ORDER * SCREEN_SILU_RELATIVE * sqrt(l));
  return mol_screen_bf16_init(shape, layers, through, out, &out->bf16);
}

void mol_screen_fini(struct mol_screen *screen)
{
  mem_free(&screen->w1);
  mem_free(&screen->b1);
  mem_free(&screen->w2);
  mem_free(&screen->w2_pairs);
  mem_free(&screen->units);
  mem_free(&screen->b2);
  mem_free(&screen->logits);
  mol_screen_bf16_fini(&screen->bf16);
}

/* Queries -------------------- */

bool mol_can_screen(const struct mol_reduced_gate *gate)
{
  return gate->screen.w1;
}

size_t mol_screen_logit_rows(const struct mol_shape *shape)
{
  return round_up(shape->n_query_components, 2) / 2 * shape->n_item_components + 1;
}

/* The tiles come first. */
static size_t tile_numbers(const struct mol_shape *shape)
{
  return mol_screen_bf16_query_bytes(shape) / sizeof(int16_t);
}

size_t mol_screen_query_numbers(const struct mol_shape *shape)
{
  return tile_numbers(shape) + round_up(shape->n_query_components, SCREEN_OUTPUTS) * round_up(shape->component_dim, 2);
}

/* Return a bound on the spectral norm of F: the root of the largest row sum of |F F^T|. */
static double spectral_bound(const struct mol_shape *shape, const float *f)
{
  size_t dim = shape->component_dim;
  double largest = 0;

  for (size_t i = 0; i < shape->n_query_components; i++) {
    double sum = 0;
    for (size_t j = 0; j < shape->n_query_components; j++) {
      double dot = 0;
      for (size_t k = 0; k < dim; k++)
        dot += (double)f[i * dim + k] * (double)f[j * dim + k];
      sum += fabs(dot);
    }
    largest = fmax(largest, sum);
  }
  return sqrt(largest);
}

void mol_screen_prepare(const struct mol_shape *shape, const struct mol_reduced_gate *gate, const float *components,
                        const float *query_gate, int16_t *numbers, struct mol_screen_query *out)
{
  const struct mol_screen *s = &gate->screen;
  size_t dim = shape->component_dim, n_pairs = (dim + 1) / 2, n_query = shape->n_query_components;
  double n_items = (double)shape->n_item_components, l = (double)n_query * n_items;
  double inv_temperature = (double)shape->inv_temperature, squares = 0, worst = 0;

  int8_t *tiles = (int8_t *)numbers;
  numbers += tile_numbers(shape);
  memset(numbers, 0, (mol_screen_query_numbers(shape) - tile_numbers(shape)) * sizeof *numbers);
  for (size_t n = 0; n < n_query; n++) {
    int16_t *row = numbers + (n / SCREEN_OUTPUTS * n_pairs * SCREEN_OUTPUTS + n % SCREEN_OUTPUTS) * 2;
    double lost = 0;
    for (size_t k = 0; k < dim; k++) {
      double x = (double)components[n * dim + k], number = rint(x * (double)SCREEN_QUERY_SCALE);
      double rest = x - number / (double)SCREEN_QUERY_SCALE;
      row[k / 2 * SCREEN_OUTPUTS * 2 + k % 2] = (int16_t)number;
      lost += rest * rest;
    }
    squares += lost;
    worst = fmax(worst, lost);
  }
  /* Steps 1 and 8. Norms of components are at most 1 + 2^-20. */
  double query_rest = sqrt(squares) * 1.001, f = (spectral_bound(shape, components) + query_rest) * 1.001;
  double item_rest = sqrt((double)dim) * SCREEN_ITEM_REST * 1.001, rounding = (double)(dim + 8) * 2 * u;
  double unit = logit_unit(shape) / 2 * 1.001;
  double logits_error =
      inv_temperature * ((query_rest + f * item_rest) * sqrt(n_items) + rounding * sqrt(l)) + unit * sqrt(l);
  double logit_error = inv_temperature * (sqrt(worst) * 1.001 + item_rest * 1.1 + rounding) + 3 * unit;
  double logits_norm = inv_temperature * f * sqrt(n_items) * 1.01 + logits_error;

  out->components = numbers;
  out->tiles = tiles;
  out->gate = query_gate;
  out->integers.delta =
      (float)((s->constant + s->per_logit_error * logits_error + s->per_logit * logits_norm) * (1 + 0x1p-20));
  out->integers.slack = (float)((logit_error + (2 * l + 8) * u * inv_temperature * 1.01) * (1 + 0x1p-20));
  const struct mol_screen_query_sizes sizes = { .spectral = f, .rest = query_rest, .worst_rest = sqrt(worst) };
  mol_screen_bf16_prepare(shape, &s->bf16, numbers, &sizes, tiles, &out->bf16);
}
