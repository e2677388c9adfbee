/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the vectors of the dot benchmark. */
#include "tests/bench/dot_data.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"
#include "tests/bench/bench_npy.h"
#include "tests/support/model_file.h"

enum { D = DOT_DIM, CLUSTERS = 2000 };

static const double within_cluster = 0.8; /* deviation of an item from its centre, relative to that of the centres */
static const double query_noise = 0.5;    /* the same, of a query from its item */

static void normalise(float *v)
{
  double square = 0;

  for (size_t c = 0; c < D; c++)
    square += (double)v[c] * (double)v[c];
  for (size_t c = 0; c < D; c++)
    v[c] = (float)((double)v[c] / sqrt(square));
}

struct spread {
  double means[D], deviations[D];
};

static void draw_spread(struct dice *dice, struct spread *out)
{
  for (size_t c = 0; c < D; c++) {
    out->deviations[c] = exp(0.5 * draw_normal(dice));
    out->means[c] = 0.5 * out->deviations[c] * draw_normal(dice);
  }
}

static void draw_near(struct dice *dice, const struct spread *spread, const float *centre, double noise, float *out)
{
  for (size_t c = 0; c < D; c++)
    out[c] = centre[c] + (float)(noise * spread->deviations[c]) * draw_rough_normal(dice);
}

void dot_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct dot_data *out)
{
  struct spread spread;
  float *centres;

  *out = (struct dot_data){ .n_items = n_items, .n_queries = n_queries };
  bench_check(mem_array(n_items, D * sizeof *out->items, &out->items));
  bench_check(mem_array(n_queries, D * sizeof *out->queries, &out->queries));
  bench_check(mem_array(CLUSTERS, D * sizeof *centres, &centres));
  draw_spread(dice, &spread);
  for (size_t i = 0; i < CLUSTERS * D; i++)
    centres[i] = (float)(spread.means[i % D] + spread.deviations[i % D] * draw_normal(dice));
  for (size_t i = 0; i < n_items; i++) {
    draw_near(dice, &spread, centres + dice_below(dice, CLUSTERS) * D, within_cluster, out->items + i * D);
    if (i % 65536 == 0)
      bench_progress("items drawn", i, n_items);
  }
  for (size_t q = 0; q < n_queries; q++) {
    draw_near(dice, &spread, out->items + dice_below(dice, n_items) * D, query_noise, out->queries + q * D);
    normalise(out->queries + q * D);
  }
  for (size_t i = 0; i < n_items; i++)
    normalise(out->items + i * D);
  mem_free(&centres);
}

void dot_data_close(struct dot_data *data)
{
  mem_free(&data->items);
  mem_free(&data->queries);
}

const char *dot_data_write(const struct dot_data *data, const struct bench_options *options)
{
  char header[128];

  if (options->peers) {
    npy_write(bench_path(options, "items.npy"), "<f4", data->items, data->n_items, D, 4);
    npy_write(bench_path(options, "queries.npy"), "<f4", data->queries, data->n_queries, D, 4);
  }
  snprintf(header, sizeof header, "{\"__metadata__\":{\"sluice.similarity\":\"dot\",\"sluice.dim\":\"%d\"}}", D);
  const char *path = bench_path(options, "model.safetensors");
  model_file_write(path, header, "", 0);
  return path;
}

void dot_data_part_of(const void *context, uint32_t item, struct part *part)
{
  const struct dot_data *data = context;

  part->vector = (struct floats){ data->items + (size_t)item * D, D };
}
