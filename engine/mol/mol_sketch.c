/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches of components and averages: rounding to integers, and the slack that covers it. */
#include "engine/mol/mol_sketch.h"

#include <math.h>

/* Scales that turn numbers of at most 1 into bytes and into 16 bits. A 16-bit dot product of two vectors of length 1
 * stays below 2^30. */
static const float byte_scale = 127.0f, short_scale = 32000.0f;

/* Upper bound on the length of components and averages. They are normalised in double and then rounded once. */
static const double longest = 1.0 + 0x1p-20;

/* Numbers are converted four at a time, on every machine. Converting one number at a time would make up a tenth of the
 * time to apply items. */
typedef float floats4 __attribute__((vector_size(16)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef uint8_t bytes4 __attribute__((vector_size(4)));

/* Convert four numbers to bytes. Returns the squares of the rounding errors, in units. A number is at most slightly
 * above 1, so the value that is truncated to an integer is positive and below 256. */
static floats4 sketch_four(const float *g, uint8_t *bytes)
{
  floats4 x;

  memcpy(&x, g, sizeof x);
  x *= byte_scale;
  ints4 rounded = __builtin_convertvector(x + 128.5f, ints4);
  floats4 rest = x - __builtin_convertvector(rounded - 128, floats4);
  bytes4 packed = __builtin_convertvector(rounded, bytes4);
  memcpy(bytes, &packed, sizeof packed);
  return rest * rest;
}

/* Convert one component of d numbers, padded to whole groups of four bytes. Returns the squared length of the rounding
 * error, in units. */
static float sketch_component(const float *g, size_t dim, uint8_t *bytes)
{
  floats4 lost = { 0 };
  size_t k = 0;

  for (; k + 4 <= dim; k += 4)
    lost += sketch_four(g + k, bytes + k);
  if (k < dim) {
    float last[4] = { 0 };
    memcpy(last, g + k, (dim - k) * sizeof last[0]);
    lost += sketch_four(last, bytes + k);
  }
  return (lost[0] + lost[1]) + (lost[2] + lost[3]);
}

static int16_t short_of(float x)
{
  return (int16_t)((int)(x * short_scale + 32768.5f) - 32768); /* the error is at most 0.51 */
}

void mol_sketch_item(const struct mol_shape *shape, struct mol_item *item)
{
  size_t dim = shape->component_dim, n_bytes = (dim + 3) / 4 * 4;
  float lost = 0.0f;

  for (size_t m = 0; m < shape->n_item_components; m++) {
    float one = sketch_component(item->components + m * dim, dim, item->sketch + m * n_bytes);
    lost = one > lost ? one : lost;
  }
  *item->residual = sqrtf(lost);
  for (size_t k = 0; k < dim; k++)
    item->short_average[k] = short_of(item->average[k]);
  if (dim % 2)
    item->short_average[dim] = 0;
}

/* Upper bound on the rounding error of a dot product of d terms in f32, for vectors of length `norm` and at most 1. */
static double dot_rounding(size_t dim, double norm)
{
  return (double)(dim + 2) * 0x1p-23 * norm + 1e-37;
}

static int32_t slack_of(double slack)
{
  return (int32_t)fmin(ceil(slack * (1 + 1e-9)) + 1, SHORTLIST_SLACK_MAX);
}

/* Convert one component of a query to bytes. Groups of four bytes are `stride` bytes apart. *out gets the scale of the
 * sums. */
static void sketch_row(const float *f, size_t dim, double item_residual, int8_t *bytes, size_t stride,
                       struct shortlist_scale *out)
{
  double largest = 0, lost = 0, kept = 0;
  int32_t sum = 0;

  for (size_t k = 0; k < dim; k++)
    largest = fmax(largest, fabs((double)f[k]));
  double scale = largest > 0 ? largest / 127 : 1;
  for (size_t k = 0; k < dim; k++) {
    long byte = lrint(f[k] / scale);
    double back = (double)byte * scale, rest = f[k] - back;
    bytes[k / 4 * stride + k % 4] = (int8_t)byte;
    sum += (int32_t)byte;
    kept += back * back;
    lost += rest * rest;
  }
  double slack = sqrt(lost) * longest + sqrt(kept) * item_residual + dot_rounding(dim, kernels_norm(f, dim));
  out->units = (double)byte_scale / scale;
  out->slack = slack_of(slack * out->units);
  out->offset = 128 * sum;
}

err_t mol_sketch_query(const struct mol_shape *shape, const float *components, float residual, struct region *region,
                       struct mol_query_sketch *out)
{
  size_t n_rows = shape->n_query_components, dim = shape->component_dim, n_groups = (dim + 3) / 4;
  /* The residual is an f32 sum of differences that were rounded to f32: add both errors. */
  double item_residual = (residual * (1 + (double)dim * 0x1p-22) + sqrt((double)dim) * 1e-5) / (double)byte_scale;
  int8_t *bytes;

  TRY(region_array(region, n_groups * n_rows * 4, 1, &bytes));
  TRY(region_array(region, n_rows, sizeof *out->scales, &out->scales));
  for (size_t n = 0; n < n_rows; n++)
    sketch_row(components + n * dim, dim, item_residual, bytes + 4 * n, 4 * n_rows, &out->scales[n]);
  out->rows = (struct sketch_rows){ n_rows, n_groups, bytes };
  return ERR_OK;
}

void mol_sketch_starts(const struct mol_query_sketch *sketch, double dot, int32_t *starts)
{
  for (size_t n = 0; n < sketch->rows.n_rows; n++) {
    const struct shortlist_scale *scale = &sketch->scales[n];
    double threshold = floor(dot * scale->units) - scale->slack;
    threshold = fmax(-SHORTLIST_SCORE_MAX, fmin(threshold, SHORTLIST_SCORE_MAX));
    starts[n] = -scale->offset - (int32_t)threshold;
  }
}

err_t mol_sketch_averages(const struct mol_shape *shape, const struct mol_query *queries, size_t n,
                          struct region *region, int16_t **rows, struct shortlist_scale **scales)
{
  size_t dim = shape->component_dim;
  double units = (double)short_scale * (double)short_scale;
  double residual = sqrt((double)dim) * 0.51 / (double)short_scale;

  TRY(region_array(region, (dim + 1) / 2 * n * 2, sizeof **rows, rows));
  TRY(region_array(region, n, sizeof **scales, scales));
  for (size_t q = 0; q < n; q++) {
    double norm = kernels_norm(queries[q].average, dim);
    double slack = residual * longest + (norm + residual) * residual + dot_rounding(dim, norm);
    for (size_t k = 0; k < dim; k++)
      (*rows)[(k / 2 * n + q) * 2 + k % 2] = short_of(queries[q].average[k]);
    (*scales)[q] = (struct shortlist_scale){ .units = units, .slack = slack_of(slack * units) };
  }
  return ERR_OK;
}
