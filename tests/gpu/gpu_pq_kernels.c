/* SPDX-License-Identifier: Apache-2.0 */
/* The packed scan compared with f32 sums computed here: its bounds hold for every item and query, and are tight for
 * ordinary scores. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/pq_hits.h"
#include "kernels/cuda/pq_packed.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { M = PQ_PACKED_SPLITS, SUBITEMS = 256, TILE = 64, QUERIES_MAX = 70, ITEMS_MAX = 40 * TILE, SAMPLED_MAX = 5000 };

/* How a query's sub-item scores are drawn. */
enum draw {
  DRAW_GAUSS,
  DRAW_FEW,     /* three values: many ties */
  DRAW_EQUAL,   /* one value */
  DRAW_SHIFTED, /* small differences of large numbers */
  DRAW_OUTLIER, /* one sub-item is far from all others */
  DRAW_MIXED,   /* magnitudes from 10^-30 to 10^30 */
  DRAW_TINY,    /* subnormal numbers */
  DRAW_HUGE,    /* sums overflow */
  DRAW_NAN,
  N_DRAWS
};

static struct {
  struct dice dice;
  size_t n_items, n_queries, n_sampled;
  uint32_t rank;            /* of the floors among the sampled maxima */
  uint8_t *codes, *present; /* this and the following arrays are pinned */
  float *scores, *floors, *sampled, *maxima;
  uint32_t *n_listed, *n_listed_by_hits, *slots;
  float *listed_scores;
  float *thresholds;
  uint32_t *n_hits, *hit_slots;
  float *hit_scores;
  enum draw draws[QUERIES_MAX];
  struct device_stream *stream;
  struct device_rows rows;
  float *device_scores, *device_floors, *device_sampled, *device_maxima, *device_thresholds;
  struct device_lists lists, hits;
} w;

static void open_world(void)
{
  CHECK_OK(device_stream_open(&w.stream));
  CHECK_OK(device_alloc_host(ITEMS_MAX, M, &w.codes));
  CHECK_OK(device_alloc_host(ITEMS_MAX, 1, &w.present));
  CHECK_OK(device_alloc_host(QUERIES_MAX * M * SUBITEMS, sizeof(float), &w.scores));
  CHECK_OK(device_alloc_host(QUERIES_MAX, sizeof(float), &w.floors));
  CHECK_OK(device_alloc_host(QUERIES_MAX * SAMPLED_MAX, sizeof(float), &w.sampled));
  CHECK_OK(device_alloc_host(QUERIES_MAX * ITEMS_MAX / TILE, sizeof(float), &w.maxima));
  CHECK_OK(device_alloc_host(QUERIES_MAX, sizeof(uint32_t), &w.n_listed));
  CHECK_OK(device_alloc_host(QUERIES_MAX, sizeof(uint32_t), &w.n_listed_by_hits));
  CHECK_OK(device_alloc_host(QUERIES_MAX * ITEMS_MAX, sizeof(uint32_t), &w.slots));
  CHECK_OK(device_alloc_host(QUERIES_MAX * ITEMS_MAX, sizeof(float), &w.listed_scores));
  CHECK_OK(device_alloc_host(QUERIES_MAX, sizeof(float), &w.thresholds));
  CHECK_OK(device_alloc_host(QUERIES_MAX, sizeof(uint32_t), &w.n_hits));
  CHECK_OK(device_alloc_host(QUERIES_MAX * ITEMS_MAX, sizeof(uint32_t), &w.hit_slots));
  CHECK_OK(device_alloc_host(QUERIES_MAX * ITEMS_MAX, sizeof(float), &w.hit_scores));
  w.rows.row_bytes = M;
  CHECK_OK(device_alloc(ITEMS_MAX, M, &w.rows.bytes));
  CHECK_OK(device_alloc(ITEMS_MAX, 1, &w.rows.present));
  CHECK_OK(device_alloc(QUERIES_MAX * M * SUBITEMS, sizeof(float), &w.device_scores));
  CHECK_OK(device_alloc(QUERIES_MAX, sizeof(float), &w.device_floors));
  CHECK_OK(device_alloc(QUERIES_MAX * SAMPLED_MAX, sizeof(float), &w.device_sampled));
  CHECK_OK(device_alloc(QUERIES_MAX * ITEMS_MAX / TILE, sizeof(float), &w.device_maxima));
  CHECK_OK(device_alloc(QUERIES_MAX, sizeof(uint32_t), &w.lists.n));
  CHECK_OK(device_alloc(QUERIES_MAX * ITEMS_MAX, sizeof(uint32_t), &w.lists.slots));
  CHECK_OK(device_alloc(QUERIES_MAX * ITEMS_MAX, sizeof(float), &w.lists.scores));
  CHECK_OK(device_alloc(QUERIES_MAX, sizeof(float), &w.device_thresholds));
  CHECK_OK(device_alloc(QUERIES_MAX, sizeof(uint32_t), &w.hits.n));
  CHECK_OK(device_alloc(QUERIES_MAX * ITEMS_MAX, sizeof(uint32_t), &w.hits.slots));
  CHECK_OK(device_alloc(QUERIES_MAX * ITEMS_MAX, sizeof(float), &w.hits.scores));
  /* Whole lists are copied to the host, with entries that no kernel wrote. */
  CHECK_OK(device_fill(w.stream, w.lists.slots, 0, QUERIES_MAX * ITEMS_MAX * sizeof(uint32_t)));
  CHECK_OK(device_fill(w.stream, w.lists.scores, 0, QUERIES_MAX * ITEMS_MAX * sizeof(float)));
  CHECK_OK(device_fill(w.stream, w.hits.slots, 0, QUERIES_MAX * ITEMS_MAX * sizeof(uint32_t)));
  CHECK_OK(device_fill(w.stream, w.hits.scores, 0, QUERIES_MAX * ITEMS_MAX * sizeof(float)));
}

static void close_world(void)
{
  void *pinned[] = { w.codes,  w.present,  w.scores,           w.floors,     w.sampled,
                     w.maxima, w.n_listed, w.n_listed_by_hits, w.slots,      w.listed_scores,
                     w.n_hits, w.hit_slots, w.hit_scores,      w.thresholds };
  void *device[] = { w.rows.bytes,    w.rows.present, w.device_scores, w.device_floors, w.device_sampled,
                     w.device_maxima, w.lists.n,      w.lists.slots,   w.lists.scores,  w.device_thresholds,
                     w.hits.n,        w.hits.slots,   w.hits.scores };

  for (size_t i = 0; i < sizeof pinned / sizeof pinned[0]; i++)
    device_free_host(&pinned[i]);
  for (size_t i = 0; i < sizeof device / sizeof device[0]; i++)
    device_free(&device[i]);
  device_stream_close(&w.stream);
}

static float draw_score(enum draw draw)
{
  float x = dice_float(&w.dice, 1.0f);

  switch (draw) {
  case DRAW_FEW:
    return (float)dice_below(&w.dice, 3) - 1.0f;
  case DRAW_EQUAL:
    return 0.25f;
  case DRAW_SHIFTED:
    return 1000.0f + x * 1e-3f;
  case DRAW_OUTLIER:
    return dice_below(&w.dice, SUBITEMS) ? x : 1e6f;
  case DRAW_MIXED:
    return ldexpf(x, (int)dice_below(&w.dice, 200) - 100);
  case DRAW_TINY:
    return x * 1e-42f;
  case DRAW_HUGE:
    return x * 3e38f;
  case DRAW_NAN:
    return dice_below(&w.dice, 500) ? x : NAN;
  default:
    return x;
  }
}

static float score_of(size_t q, size_t slot)
{
  const float *table = w.scores + q * M * SUBITEMS;
  float score = table[w.codes[slot * M]];

  for (size_t m = 1; m < M; m++)
    score += table[m * SUBITEMS + w.codes[slot * M + m]];
  return score;
}

/* Draw maxima of which `floor` is the one of w.rank, if there are so many. */
static void draw_sampled(float floor, float *sampled)
{
  for (size_t i = 0; i < w.n_sampled; i++) {
    float x = fabsf(dice_float(&w.dice, 1.0f)) * (1.0f + fabsf(floor));
    sampled[i] = i + 1 < w.rank ? floor + x : i + 1 == w.rank ? floor : floor - x;
  }
  for (size_t i = w.n_sampled - 1; i > 0; i--) {
    size_t j = dice_below(&w.dice, i + 1);
    float other = sampled[j];
    sampled[j] = sampled[i];
    sampled[i] = other;
  }
}

static void draw_world(size_t n_items, size_t n_queries)
{
  w.n_items = n_items;
  w.n_queries = n_queries;
  w.rank = 1 + (uint32_t)dice_below(&w.dice, 30);
  w.n_sampled = 1 + dice_below(&w.dice, SAMPLED_MAX);
  for (size_t i = 0; i < ITEMS_MAX; i++) {
    w.present[i] = i < n_items && dice_below(&w.dice, 9) > 0;
    for (size_t m = 0; m < M; m++)
      w.codes[i * M + m] = (uint8_t)dice_below(&w.dice, SUBITEMS);
  }
  for (size_t i = 0; i < 2 * TILE && i < n_items; i++) /* a tile without items */
    w.present[i] = w.present[i] && i < TILE;
  for (size_t q = 0; q < n_queries; q++) {
    w.draws[q] = (enum draw)(dice_below(&w.dice, 2) ? DRAW_GAUSS : dice_below(&w.dice, N_DRAWS));
    for (size_t i = 0; i < (size_t)M * SUBITEMS; i++)
      w.scores[q * M * SUBITEMS + i] = draw_score(w.draws[q]);
    w.floors[q] = score_of(q, dice_below(&w.dice, n_items)); /* ties with an item */
    if (!(w.floors[q] == w.floors[q]) || dice_below(&w.dice, 10) == 0)
      w.floors[q] = -INFINITY;
    draw_sampled(w.floors[q], w.sampled + q * w.n_sampled);
    if (w.rank > w.n_sampled)
      w.floors[q] = -INFINITY;
  }
  CHECK_OK(device_copy_in(w.stream, w.rows.bytes, w.codes, (size_t)ITEMS_MAX * M));
  CHECK_OK(device_copy_in(w.stream, w.rows.present, w.present, ITEMS_MAX));
  CHECK_OK(device_copy_in(w.stream, w.device_scores, w.scores, n_queries * M * SUBITEMS * sizeof(float)));
  CHECK_OK(device_copy_in(w.stream, w.device_sampled, w.sampled, n_queries * w.n_sampled * sizeof(float)));
  w.lists.n_lists = n_queries;
  w.lists.capacity = n_items;
  w.hits.n_lists = n_queries;
  w.hits.capacity = 1 + dice_below(&w.dice, n_items); /* some lists of hits overflow */
}

/* The largest difference between a bound and a score. Ordinary scores are within 100 units of 32758 in their range. */
static float slack_of(size_t q)
{
  float low = 0, high = 0;

  for (size_t m = 0; m < M; m++) {
    float least = INFINITY, most = -INFINITY;
    for (size_t b = 0; b < SUBITEMS; b++) {
      least = fminf(least, w.scores[(q * M + m) * SUBITEMS + b]);
      most = fmaxf(most, w.scores[(q * M + m) * SUBITEMS + b]);
    }
    low += least;
    high += most;
  }
  return (high - low) * 100 / 32758;
}

static void check_maxima(size_t q, size_t stride, size_t n_tiles)
{
  for (size_t t = 0; t < n_tiles; t++) {
    float best = -INFINITY, found = w.maxima[q * n_tiles + t];
    for (size_t i = 0; i < TILE; i++) {
      size_t slot = t * stride * TILE + i;
      if (slot < w.n_items && w.present[slot])
        best = fmaxf(best, score_of(q, slot));
    }
    CHECK(found <= best, "query %zu, draw %d: the best of tile %zu is %.9g, not at least %.9g", q, w.draws[q], t,
          (double)best, (double)found);
    CHECK(w.draws[q] != DRAW_GAUSS || best == -INFINITY || found >= best - slack_of(q),
          "query %zu, tile %zu: the bound %.9g is far from %.9g", q, t, (double)found, (double)best);
  }
}

static void check_list(size_t q)
{
  static uint8_t is_listed[ITEMS_MAX];
  float least = w.floors[q] - slack_of(q);

  memset(is_listed, 0, sizeof is_listed);
  for (size_t i = 0; i < w.n_listed[q]; i++) {
    uint32_t slot = w.slots[q * w.lists.capacity + i];
    float score = w.listed_scores[q * w.lists.capacity + i], due = score_of(q, slot);
    CHECK(slot < w.n_items && w.present[slot] && !is_listed[slot], "query %zu: slot %u", q, slot);
    CHECK(memcmp(&score, &due, sizeof due) == 0 || due != due, "query %zu, slot %u: %.9g, not %.9g", q, slot,
          (double)score, (double)due);
    CHECK(w.draws[q] != DRAW_GAUSS || due >= least, "query %zu: %.9g is far below the floor %.9g", q, (double)due,
          (double)w.floors[q]);
    is_listed[slot] = 1;
  }
  for (size_t slot = 0; slot < w.n_items; slot++)
    CHECK(is_listed[slot] || !w.present[slot] || !(score_of(q, slot) >= w.floors[q]),
          "query %zu, draw %d: slot %zu scores %.9g and is missing; the floor is %.9g", q, w.draws[q], slot,
          (double)score_of(q, slot), (double)w.floors[q]);
}

static int falling(const void *a, const void *b)
{
  const float *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

/* The rank-th best score of a list; NaN is none. */
static float threshold_of(size_t q, size_t rank)
{
  static float sorted[ITEMS_MAX];
  size_t n = 0;

  for (size_t i = 0; i < w.n_listed[q]; i++) {
    float score = w.listed_scores[q * w.lists.capacity + i];
    if (score == score)
      sorted[n++] = score;
  }
  qsort(sorted, n, sizeof *sorted, falling);
  return rank <= n ? sorted[rank - 1] : -INFINITY;
}

/* Hits are all listed items that reach the threshold, or as many of them as there is room for. */
static void check_hits(size_t q, size_t rank)
{
  static uint8_t is_hit[ITEMS_MAX];
  float least = threshold_of(q, rank);
  size_t n_due = 0, n_stored = w.n_hits[q] < w.hits.capacity ? w.n_hits[q] : w.hits.capacity;

  for (size_t i = 0; i < w.n_listed[q]; i++)
    n_due += w.listed_scores[q * w.lists.capacity + i] >= least;
  CHECK(w.thresholds[q] == least, "query %zu: the threshold is %.9g, not %.9g", q, (double)w.thresholds[q],
        (double)least);
  CHECK(w.n_listed_by_hits[q] == w.n_listed[q], "query %zu: a list of %u, not %u", q, w.n_listed_by_hits[q],
        w.n_listed[q]);
  CHECK(w.n_hits[q] == n_due, "query %zu: %u hits, not %zu", q, w.n_hits[q], n_due);
  memset(is_hit, 0, sizeof is_hit);
  for (size_t i = 0; i < n_stored; i++) {
    uint32_t slot = w.hit_slots[q * w.hits.capacity + i];
    float score = w.hit_scores[q * w.hits.capacity + i], due = score_of(q, slot);
    CHECK(memcmp(&score, &due, sizeof due) == 0 && due >= least && !is_hit[slot], "query %zu: hit %u scores %.9g", q,
          slot, (double)score);
    is_hit[slot] = 1;
  }
}

/* Find hits of the lists that another kernel has scored. check() has set the outputs of that one. */
static void find_hits(const struct pq_scan_input *input, uint32_t rank)
{
  size_t n = w.lists.n_lists, n_entries = n * w.hits.capacity;

  CHECK_OK(device_fill(w.stream, w.lists.scores, 0, n * w.lists.capacity * sizeof(float)));
  CHECK_OK(pq_hits_find(w.stream, input, &w.lists, (struct lists_ranks){ NULL, rank }, w.device_thresholds, &w.hits,
                        w.n_listed_by_hits));
  CHECK_OK(device_copy_out(w.stream, w.thresholds, w.device_thresholds, n * sizeof(float)));
  CHECK_OK(device_copy_out(w.stream, w.n_hits, w.hits.n, n * sizeof(uint32_t)));
  CHECK_OK(device_copy_out(w.stream, w.hit_slots, w.hits.slots, n_entries * sizeof(uint32_t)));
  CHECK_OK(device_copy_out(w.stream, w.hit_scores, w.hits.scores, n_entries * sizeof(float)));
}

static void check(size_t n_items, size_t n_queries)
{
  struct pq_scan_input input = {
    .rows = w.rows, .n_splits = M, .subitem_scores = w.device_scores, .n_queries = n_queries, .n_blocks = 3
  };
  struct pq_packed_levels levels;
  size_t stride = 1 + dice_below(&w.dice, 3), n_tiles = (n_items + stride * TILE - 1) / (stride * TILE);
  uint32_t rank = 1 + (uint32_t)dice_below(&w.dice, 30);
  size_t bytes = pq_packed_table_bytes(n_queries) + pq_packed_n_scales(n_queries) * sizeof *levels.scales;

  CHECK(bytes <= n_queries * PQ_PACKED_QUERY_BYTES, "%zu queries take %zu bytes", n_queries, bytes);
  draw_world(n_items, n_queries);
  CHECK_OK(device_alloc(pq_packed_table_bytes(n_queries), 1, &levels.tables));
  CHECK_OK(device_alloc(pq_packed_n_scales(n_queries), sizeof *levels.scales, &levels.scales));
  CHECK_OK(pq_packed_maxima(w.stream, &input, &levels, &w.lists, n_items, stride, n_tiles, w.device_maxima));
  CHECK_OK(pq_packed_append(w.stream, &input, &levels, n_items, w.device_sampled, w.n_sampled,
                            (struct lists_ranks){ NULL, w.rank }, w.device_floors, &w.lists));
  CHECK_OK(pq_scan_score_lists(w.stream, &input, &w.lists));
  CHECK_OK(device_copy_out(w.stream, w.maxima, w.device_maxima, n_queries * n_tiles * sizeof(float)));
  CHECK_OK(device_copy_out(w.stream, w.n_listed, w.lists.n, n_queries * sizeof(uint32_t)));
  CHECK_OK(device_copy_out(w.stream, w.slots, w.lists.slots, n_queries * n_items * sizeof(uint32_t)));
  CHECK_OK(device_copy_out(w.stream, w.listed_scores, w.lists.scores, n_queries * n_items * sizeof(float)));
  find_hits(&input, rank);
  CHECK_OK(device_wait(w.stream));
  for (size_t q = 0; q < n_queries; q++) {
    check_maxima(q, stride, n_tiles);
    check_list(q);
    check_hits(q, rank);
  }
  device_free(&levels.tables);
  device_free(&levels.scales);
}

/* Every size of a group, full and not. */
static void check_sizes(void)
{
  static const size_t n_queries[] = { 1, 2, 3, 4, 5, 8, 11, 16, 17, 31, 32, 33, QUERIES_MAX };

  for (size_t i = 0; i < sizeof n_queries / sizeof n_queries[0]; i++)
    check(1 + dice_below(&w.dice, check_size(ITEMS_MAX, dice_below(&w.dice, 9) ? 5 * TILE : ITEMS_MAX)), n_queries[i]);
  check(1, 1);
  check(TILE, 2);
}

int main(void)
{
  w.dice.state = dice_seed();
  check_begin("gpu_pq_kernels");
  open_world();
  for (size_t round = 0; round < check_size(3, 1); round++)
    check_sizes();
#ifdef SLUICE_CUDA_MODEL
  for (size_t kib = 99; kib < 200; kib += 64) { /* cards with less shared memory */
    cuda_model_set_shared(kib * 1024);
    check_sizes();
  }
#endif
  close_world();
  return check_end("gpu_pq_kernels");
}
