/* SPDX-License-Identifier: Apache-2.0 */
/* A planted RecJPQ catalogue: codes, centroids and queries with the structure of trained ones.
 *
 * Items: a quarter is known well. Such an item has a planted embedding: its topic's direction and some of its own,
 * with a strength that is drawn from a heavy-tailed distribution. The others, the long tail, have next to none.
 *
 * Codes: RecJPQ's SVD strategy. Component m of an item is its projection on the m-th principal direction of all
 * embeddings, plus a noise of 1e-5 of the component's range, cut at quantiles of a sample into 256 sub-items. The noise
 * decides among items of the long tail, so most codes are random, and those of the well-known items are not.
 *
 * Scores: training gives sub-items of similar components similar centroids. So a split's dimensions are curves over the
 * sub-items: the mean component (compressed), its size, which stands for popularity, smooth curves, and noise. A query
 * likes a topic or two, prefers popular items, and has some of the other dimensions.
 */
#include "tests/bench/recjpq_data.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"

enum {
  TOPICS = 300,
  LATENT_DIM = 16,
  SAMPLE = 65536, /* items whose quantiles cut the components */
  SWEEPS = 12,    /* of the eigenvalue iteration; it converges quadratically */
  /* Dimensions of a split */
  DIM_MEAN = 0,
  DIM_SIZE = 1,
  DIM_SMOOTH = 2,
  DIM_NOISE = RECJPQ_SPLIT_DIM / 2,
};

struct planted {
  struct dice *dice;
  float topics[TOPICS][LATENT_DIM];
  float (*latent)[LATENT_DIM]; /* [n_items] */
  double directions[RECJPQ_SPLITS][LATENT_DIM];
  float *component;                            /* [n_items], of the split at hand */
  float means[RECJPQ_SPLITS][RECJPQ_SUBITEMS]; /* mean component of each sub-item, compressed */
};

static void draw_items(struct planted *p, size_t n_items)
{
  for (size_t t = 0; t < TOPICS; t++) {
    double square = 0;
    for (size_t k = 0; k < LATENT_DIM; k++) {
      /* Some directions matter more than others, as in the spectrum of an interaction matrix. */
      p->topics[t][k] = (float)(draw_normal(p->dice) * exp(-0.1 * (double)k));
      square += (double)p->topics[t][k] * (double)p->topics[t][k];
    }
    for (size_t k = 0; k < LATENT_DIM; k++)
      p->topics[t][k] /= (float)sqrt(square);
  }
  for (size_t i = 0; i < n_items; i++) {
    const float *topic = p->topics[dice_below(p->dice, TOPICS)];
    bool is_known = dice_below(p->dice, 4) == 0;
    float strength = is_known ? (float)exp(1.5 * draw_normal(p->dice) - 4) : 1e-7f;
    for (size_t k = 0; k < LATENT_DIM; k++)
      p->latent[i][k] = strength * (topic[k] + 0.15f * draw_rough_normal(p->dice));
  }
}

/* Principal directions -------------------- */

/* Rotate rows and columns a and b of a symmetric matrix so that its entry (a, b) becomes zero. */
static void rotate(double matrix[LATENT_DIM][LATENT_DIM], double vectors[LATENT_DIM][LATENT_DIM], size_t a, size_t b)
{
  double angle = 0.5 * atan2(2 * matrix[a][b], matrix[a][a] - matrix[b][b]), c = cos(angle), s = sin(angle);

  for (size_t k = 0; k < LATENT_DIM; k++) {
    double x = matrix[k][a], y = matrix[k][b];
    matrix[k][a] = c * x + s * y;
    matrix[k][b] = c * y - s * x;
  }
  for (size_t k = 0; k < LATENT_DIM; k++) {
    double x = matrix[a][k], y = matrix[b][k];
    matrix[a][k] = c * x + s * y;
    matrix[b][k] = c * y - s * x;
    x = vectors[a][k], y = vectors[b][k];
    vectors[a][k] = c * x + s * y;
    vectors[b][k] = c * y - s * x;
  }
}

/* The directions with the largest sums of squares, by Jacobi's iteration on the Gram matrix. */
static void find_directions(struct planted *p, size_t n_items)
{
  double gram[LATENT_DIM][LATENT_DIM] = { 0 }, vectors[LATENT_DIM][LATENT_DIM] = { 0 };
  bool is_used[LATENT_DIM] = { false };

  for (size_t i = 0; i < n_items; i++)
    for (size_t a = 0; a < LATENT_DIM; a++)
      for (size_t b = 0; b < LATENT_DIM; b++)
        gram[a][b] += (double)(p->latent[i][a] * p->latent[i][b]);
  for (size_t k = 0; k < LATENT_DIM; k++)
    vectors[k][k] = 1;
  for (int sweep = 0; sweep < SWEEPS; sweep++)
    for (size_t a = 0; a < LATENT_DIM; a++)
      for (size_t b = a + 1; b < LATENT_DIM; b++)
        rotate(gram, vectors, a, b);
  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    size_t best = LATENT_DIM;
    for (size_t k = 0; k < LATENT_DIM; k++) {
      if (!is_used[k] && (best == LATENT_DIM || gram[k][k] > gram[best][best]))
        best = k;
    }
    is_used[best] = true;
    memcpy(p->directions[m], vectors[best], sizeof vectors[best]);
  }
}

/* Codes -------------------- */

static int by_value(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;

  return (x > y) - (x < y);
}

/* Compute the components of a split, with noise. Return their range. */
static float project(struct planted *p, size_t split, size_t n_items)
{
  float least = INFINITY, most = -INFINITY;

  for (size_t i = 0; i < n_items; i++) {
    double sum = 0;
    for (size_t k = 0; k < LATENT_DIM; k++)
      sum += p->directions[split][k] * (double)p->latent[i][k];
    p->component[i] = (float)sum;
    least = fminf(least, p->component[i]);
    most = fmaxf(most, p->component[i]);
  }
  for (size_t i = 0; i < n_items; i++)
    p->component[i] += 1e-5f * (most - least) * draw_rough_normal(p->dice);
  return most - least;
}

/* Which of the rising cuts [SUBITEMS - 1] is the first above x? */
static uint8_t find_bin(const float *cuts, float x)
{
  size_t bin = 0;

  for (size_t step = RECJPQ_SUBITEMS / 2; step > 0; step /= 2)
    bin += x >= cuts[bin + step - 1] ? step : 0;
  return (uint8_t)bin;
}

static void cut_split(struct planted *p, size_t split, struct recjpq_data *data)
{
  float range = project(p, split, data->n_items), cuts[RECJPQ_SUBITEMS - 1];
  size_t n = data->n_items < SAMPLE ? data->n_items : SAMPLE, counts[RECJPQ_SUBITEMS] = { 0 };
  double sums[RECJPQ_SUBITEMS] = { 0 };
  AUTO(mem_free) float *sample = NULL;

  bench_check(mem_array(n, sizeof *sample, &sample));
  for (size_t i = 0; i < n; i++)
    sample[i] = p->component[dice_below(p->dice, data->n_items)];
  qsort(sample, n, sizeof *sample, by_value);
  for (size_t b = 0; b + 1 < RECJPQ_SUBITEMS; b++)
    cuts[b] = sample[(b + 1) * n / RECJPQ_SUBITEMS];
  for (size_t i = 0; i < data->n_items; i++) {
    uint8_t code = find_bin(cuts, p->component[i]);
    data->codes[i * RECJPQ_SPLITS + split] = code;
    sums[code] += (double)p->component[i];
    counts[code]++;
  }
  for (size_t b = 0; b < RECJPQ_SUBITEMS; b++) {
    double mean = counts[b] ? sums[b] / (double)counts[b] / (double)range : 0;
    p->means[split][b] = (float)(copysign(log1p(1e4 * fabs(mean)), mean) / log1p(1e4));
  }
}

/* Centroids and queries -------------------- */

static void draw_centroids(struct planted *p, struct recjpq_data *data)
{
  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    float *split = data->centroids + m * RECJPQ_SUBITEMS * RECJPQ_SPLIT_DIM;
    for (size_t c = DIM_SMOOTH; c < DIM_NOISE; c++)
      recjpq_data_draw_smooth(p->dice, split + c);
    for (size_t b = 0; b < RECJPQ_SUBITEMS; b++) {
      float *row = split + b * RECJPQ_SPLIT_DIM;
      row[DIM_MEAN] = p->means[m][b];
      row[DIM_SIZE] = fabsf(p->means[m][b]);
      draw_normals(p->dice, row + DIM_NOISE, RECJPQ_SPLIT_DIM - DIM_NOISE, 1);
    }
  }
}

static void draw_query(struct planted *p, float *query)
{
  const float *first = p->topics[dice_below(p->dice, TOPICS)], *second = p->topics[dice_below(p->dice, TOPICS)];
  double share = 0.5 * draw_unit(p->dice), popularity = 0.3 * exp(0.5 * draw_normal(p->dice));

  for (size_t m = 0; m < RECJPQ_SPLITS; m++) {
    float *q = query + m * RECJPQ_SPLIT_DIM;
    double taste = 0;
    for (size_t k = 0; k < LATENT_DIM; k++)
      taste += p->directions[m][k] * ((1 - share) * (double)first[k] + share * (double)second[k]);
    draw_normals(p->dice, q + DIM_SMOOTH, DIM_NOISE - DIM_SMOOTH, 0.015);
    draw_normals(p->dice, q + DIM_NOISE, RECJPQ_SPLIT_DIM - DIM_NOISE, 0.01);
    q[DIM_MEAN] = (float)(2 * taste);
    q[DIM_SIZE] = (float)(popularity * fabs(taste) + 0.05);
  }
}

void recjpq_data_open_planted(struct dice *dice, size_t n_items, size_t n_queries, struct recjpq_data *out)
{
  AUTO(mem_free) struct planted *p = NULL;

  bench_check(mem_array(1, sizeof *p, &p));
  recjpq_data_init(n_items, n_queries, out);
  p->dice = dice;
  bench_check(mem_array(n_items, sizeof *p->latent, &p->latent));
  bench_check(mem_array(n_items, sizeof *p->component, &p->component));
  draw_items(p, n_items);
  find_directions(p, n_items);
  for (size_t m = 0; m < RECJPQ_SPLITS; m++)
    cut_split(p, m, out);
  draw_centroids(p, out);
  for (size_t i = 0; i < n_queries; i++)
    draw_query(p, out->queries + i * RECJPQ_DIM);
  mem_free(&p->latent);
  mem_free(&p->component);
}
