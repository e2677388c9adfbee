/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the bilinear catalogue, its matrix and its queries. */
#include "tests/bench/bilinear_data.h"

#include <math.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"
#include "tests/bench/bench_npy.h"
#include "tests/support/model_file.h"

enum { D = BILINEAR_DIM, FAST_VALUES = 300, ROTATIONS = 24 };

static double singular_value(size_t i)
{
  if (i < FAST_VALUES)
    return 5.467 * pow(10, -4.0 * (double)i / FAST_VALUES);
  return 5.467e-4 - 1.467e-4 * (double)(i - FAST_VALUES) / (D - FAST_VALUES);
}

/* Rotate two rows or columns by an angle. stride: the distance between their elements. */
static void turn(double *a, double *b, size_t stride, double angle)
{
  double c = cos(angle), s = sin(angle);

  for (size_t i = 0; i < D; i++) {
    double x = a[i * stride], y = b[i * stride];
    a[i * stride] = c * x - s * y;
    b[i * stride] = s * x + c * y;
  }
}

/* Rotate all rows or columns in random pairs. After many rounds, each is a mix of all of them. */
static void turn_in_pairs(struct dice *dice, double *w, size_t distance, size_t stride)
{
  size_t order[D];

  for (size_t i = 0; i < D; i++) {
    size_t j = dice_below(dice, i + 1);
    order[i] = i;
    order[i] = order[j];
    order[j] = i;
  }
  for (size_t i = 0; i < D; i += 2)
    turn(w + order[i] * distance, w + order[i + 1] * distance, stride, 6.2831853 * draw_unit(dice));
}

/* Draw W: the diagonal matrix of singular values, rotated at random on both sides. */
static void draw_w(struct dice *dice, float *w)
{
  double *turned;

  bench_check(mem_array(D * D, sizeof *turned, &turned));
  for (size_t i = 0; i < D; i++)
    turned[i * D + i] = singular_value(i);
  for (int i = 0; i < ROTATIONS; i++) {
    turn_in_pairs(dice, turned, D, 1);
    turn_in_pairs(dice, turned, 1, D);
  }
  for (size_t i = 0; i < D * D; i++)
    w[i] = (float)turned[i];
  mem_free(&turned);
}

void bilinear_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct bilinear_data *out)
{
  *out = (struct bilinear_data){ .n_items = n_items, .n_queries = n_queries };
  bench_check(mem_array(D * D, sizeof *out->w, &out->w));
  bench_check(mem_array(n_items, D * sizeof *out->items, &out->items));
  bench_check(mem_array(n_queries, D * sizeof *out->queries, &out->queries));
  draw_w(dice, out->w);
  for (size_t i = 0; i < n_items; i++) {
    for (size_t c = 0; c < D; c++)
      out->items[i * D + c] = draw_rough_normal(dice);
    if (i % 65536 == 0)
      bench_progress("items drawn", i, n_items);
  }
  draw_normals(dice, out->queries, n_queries * D, 1);
}

void bilinear_data_close(struct bilinear_data *data)
{
  mem_free(&data->w);
  mem_free(&data->items);
  mem_free(&data->queries);
}

const char *bilinear_data_write(const struct bilinear_data *data, const struct bench_options *options)
{
  char header[256];

  if (options->peers) {
    npy_write(bench_path(options, "items.npy"), "<f4", data->items, data->n_items, D, 4);
    npy_write(bench_path(options, "queries.npy"), "<f4", data->queries, data->n_queries, D, 4);
  }
  snprintf(header, sizeof header,
           "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"},\"W\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
           "\"data_offsets\":[0,%d]}}",
           D, D, D * D * 4);
  const char *path = bench_path(options, "model.safetensors");
  model_file_write(path, header, data->w, (size_t)D * D * 4);
  return path;
}

void bilinear_data_part_of(const void *context, uint32_t item, struct part *part)
{
  const struct bilinear_data *data = context;

  part->vector = (struct floats){ data->items + (size_t)item * D, D };
}

void bilinear_data_rotate(const struct bilinear_data *data, size_t query, double *out)
{
  const float *q = data->queries + query % data->n_queries * D;

  memset(out, 0, D * sizeof *out);
  for (size_t i = 0; i < D; i++)
    for (size_t j = 0; j < D; j++)
      out[j] += (double)q[i] * (double)data->w[i * D + j];
}
