/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the RecJPQ centroids, codes and queries. */
#include "tests/bench/recjpq_data.h"

#include <math.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"
#include "tests/bench/bench_npy.h"
#include "tests/support/model_file.h"

enum { CLUSTERS = 2000, CURVES = RECJPQ_SPLIT_DIM / 2 };

static uint8_t clusters[CLUSTERS][RECJPQ_SPLITS];
static bool has_clusters;

static void draw_clusters(struct dice *dice)
{
  for (size_t i = 0; i < CLUSTERS; i++)
    for (size_t m = 0; m < RECJPQ_SPLITS; m++)
      clusters[i][m] = (uint8_t)dice_u64(dice);
  has_clusters = true;
}

void recjpq_data_draw_codes(struct dice *dice, uint8_t *codes)
{
  uint64_t bits = dice_u64(dice);
  const uint8_t *centre = clusters[dice_below(dice, CLUSTERS)];
  bool is_head = dice_below(dice, 5) == 0;

  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    uint8_t random = (uint8_t)(bits >> 8 * m);
    /* Half of an item's codes are those of its cluster's centre; the others differ by up to four. */
    codes[m] = is_head ? (uint8_t)(centre[m] + (random & 8 ? 0 : (random & 7) - 3)) : random;
  }
}

void recjpq_data_draw_smooth(struct dice *dice, float *column)
{
  double phase[4], weight[4], square = 0;

  for (int i = 0; i < 4; i++) {
    phase[i] = 6.2831853 * draw_unit(dice);
    weight[i] = draw_normal(dice);
    square += weight[i] * weight[i] / 2;
  }
  for (size_t b = 0; b < RECJPQ_SUBITEMS; b++) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
      sum += weight[i] * sin(6.2831853 * (i + 1) * (double)b / RECJPQ_SUBITEMS + phase[i]);
    column[b * RECJPQ_SPLIT_DIM] = (float)(sum / sqrt(square));
  }
}

static void draw_centroids(struct dice *dice, float *centroids)
{
  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    float *split = centroids + m * RECJPQ_SUBITEMS * RECJPQ_SPLIT_DIM;
    for (size_t c = 0; c < CURVES; c++) {
      recjpq_data_draw_smooth(dice, split + c);
      for (size_t b = 0; b < RECJPQ_SUBITEMS; b++)
        split[b * RECJPQ_SPLIT_DIM + CURVES + c] = (float)draw_student5(dice);
    }
  }
}

static void draw_query(struct dice *dice, float *query)
{
  static const double sigmas[] = { 0.3, 0.6, 0.9 };
  double sigma = sigmas[dice_below(dice, 3)];

  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    double a = exp(sigma * draw_normal(dice));
    query[m * RECJPQ_SPLIT_DIM + dice_below(dice, CURVES)] = (float)(0.8 * a);
    query[m * RECJPQ_SPLIT_DIM + CURVES + dice_below(dice, CURVES)] = (float)(0.6 * a);
  }
}

void recjpq_data_init(size_t n_items, size_t n_queries, struct recjpq_data *out)
{
  *out = (struct recjpq_data){ .n_items = n_items, .n_queries = n_queries };
  bench_check(mem_array(n_items, RECJPQ_SPLITS, &out->codes));
  bench_check(mem_array(RECJPQ_DIM, RECJPQ_SUBITEMS * sizeof(float), &out->centroids));
  bench_check(mem_array(n_queries, RECJPQ_DIM * sizeof(float), &out->queries));
}

void recjpq_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct recjpq_data *out)
{
  recjpq_data_init(n_items, n_queries, out);
  if (!has_clusters)
    draw_clusters(dice);
  for (size_t i = 0; i < n_items; i++)
    recjpq_data_draw_codes(dice, out->codes + i * RECJPQ_SPLITS);
  draw_centroids(dice, out->centroids);
  for (size_t i = 0; i < n_queries; i++)
    draw_query(dice, out->queries + i * RECJPQ_DIM);
}

void recjpq_data_close(struct recjpq_data *data)
{
  mem_free(&data->codes);
  mem_free(&data->centroids);
  mem_free(&data->queries);
}

const char *recjpq_data_write(const struct recjpq_data *data, const struct bench_options *options)
{
  if (options->peers) {
    npy_write(bench_path(options, "codes.npy"), "|u1", data->codes, data->n_items, RECJPQ_SPLITS, 1);
    npy_write(bench_path(options, "centroids.npy"), "<f4", data->centroids, RECJPQ_SPLITS * RECJPQ_SUBITEMS,
              RECJPQ_SPLIT_DIM, 4);
    npy_write(bench_path(options, "queries.npy"), "<f4", data->queries, data->n_queries, RECJPQ_DIM, 4);
  }
  const char *path = bench_path(options, "model.safetensors");
  model_file_write_recjpq(path, data->centroids, RECJPQ_SPLITS, RECJPQ_SUBITEMS, RECJPQ_SPLIT_DIM);
  return path;
}

void recjpq_data_part_of(const void *context, uint32_t item, struct part *part)
{
  const struct recjpq_data *data = context;

  part->codes = span_of(data->codes + (size_t)item * RECJPQ_SPLITS, RECJPQ_SPLITS);
}

/* Computed in double precision, rounded once. */
void recjpq_data_tables_make(const struct recjpq_data *data, size_t query, struct recjpq_tables *out)
{
  const float *q = data->queries + query % data->n_queries * RECJPQ_DIM;
  double range = 0;

  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    double least = INFINITY, most = -INFINITY;
    for (size_t b = 0; b < RECJPQ_SUBITEMS; b++) {
      double sum = 0;
      for (size_t i = 0; i < RECJPQ_SPLIT_DIM; i++)
        sum += (double)q[m * RECJPQ_SPLIT_DIM + i] *
               (double)data->centroids[(m * RECJPQ_SUBITEMS + b) * RECJPQ_SPLIT_DIM + i];
      out->score[m][b] = (float)sum;
      least = fmin(least, sum);
      most = fmax(most, sum);
    }
    range += most - least;
  }
  out->tolerance = 1e-5 * range;
}

double recjpq_data_score(const struct recjpq_tables *tables, const uint8_t *codes)
{
  double score = 0;

  for (size_t m = 0; m < RECJPQ_SPLITS; m++)
    score += (double)tables->score[m][codes[m]];
  return score;
}

/* Insert into the sorted best. Of equal scores, the earlier one stays first. */
static void keep(struct truth *best, size_t k, uint32_t item, double score)
{
  size_t i = best->n < k ? best->n++ : k - 1;

  for (; i > 0 && best->scores[i - 1] < score; i--) {
    best->scores[i] = best->scores[i - 1];
    best->ids[i] = best->ids[i - 1];
  }
  best->scores[i] = score;
  best->ids[i] = item;
}

void recjpq_data_scan(const struct recjpq_tables *tables, const uint8_t *codes, const uint8_t *is_absent,
                      size_t n_items, size_t k, struct truth *out)
{
  float threshold = -INFINITY;

  out->n = 0;
  out->tolerance = tables->tolerance;
  for (size_t i = 0; i < n_items; i++) {
    const uint8_t *c = codes + i * RECJPQ_SPLITS;
    float score = tables->score[0][c[0]] + tables->score[1][c[1]] + tables->score[2][c[2]] + tables->score[3][c[3]] +
                  tables->score[4][c[4]] + tables->score[5][c[5]] + tables->score[6][c[6]] + tables->score[7][c[7]];
    if (score > threshold && !(is_absent && is_absent[i])) {
      keep(out, k, (uint32_t)i, (double)score);
      threshold = out->n == k ? (float)out->scores[k - 1] : -INFINITY;
    }
  }
}
