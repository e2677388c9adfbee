/* SPDX-License-Identifier: Apache-2.0 */
/* The scan for the best sums of similarity and boosts: what it leaves are exactly the items whose sums are high enough,
 * at every level of the processor, for several queries at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/boosts/boosted_scan.h"
#include "engine/engine_state.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/filter_attributes.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

/* Two blocks of the scan, and a part of a third. */
enum { ITEMS = 2 * PQ_BLOCK_ITEMS + 1000, CHANGES = 1024, SPLITS = 8, SUBITEMS = 64, DIM = 16, BATCH = 5, ROUNDS = 20 };

#define NOW 1700000000000

static uint64_t seed;

struct world {
  struct temp_dir dir;
  struct engine *engine;
  const struct arena *front;
  struct region region;
  struct dice dice;
};

static double draw_price(struct dice *d)
{
  double price = 1 / (1e-2 + fabs((double)dice_float(d, 1)));

  return dice_below(d, 5000) ? price : 1e6; /* a few are far off */
}

static void put_items(struct world *w, size_t first, size_t n)
{
  static uint8_t codes[CHANGES][SPLITS];
  static struct part parts[CHANGES];
  static struct attribute_value values[CHANGES][2];
  static struct item_change changes[CHANGES];
  static char keys[CHANGES][24];
  struct dice *d = &w->dice;

  for (size_t i = 0; i < n; i++) {
    snprintf(keys[i], sizeof keys[i], "%zu", first + i);
    for (size_t m = 0; m < SPLITS; m++)
      codes[i][m] = (uint8_t)dice_below(d, SUBITEMS);
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(codes[i], SPLITS) };
    values[i][0] = (struct attribute_value){ filter_attributes().v[PRICE].name,
                                             { .kind = VALUE_NUMBER, .number = draw_price(d) } };
    values[i][1] = (struct attribute_value){
      filter_attributes().v[EXPIRES].name,
      { .kind = VALUE_INTEGER, .integer = NOW - (int64_t)dice_below(d, 1u << 30) }
    };
    changes[i] = (struct item_change){ .key = span_of_str(keys[i]), .parts = &parts[i], .n_parts = 1 };
    changes[i].attributes = values[i];
    changes[i].n_attributes = dice_below(d, 3); /* some lack one, some both */
  }
  fixture_apply(w->engine, changes, n);
}

static void open_world(struct world *w, enum isa isa)
{
  static float centroids[SPLITS * SUBITEMS * DIM / SPLITS];
  char path[PATH_MAX];
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = ITEMS,
                                  .max_k = 1,
                                  .max_batch = 1,
                                  .isa = isa,
                                  .attributes = filter_attributes() };

  *w = (struct world){ .dice = { seed } };
  temp_dir_init(&w->dir);
  snprintf(path, sizeof path, "%s/pq.safetensors", w->dir.path);
  dice_fill(&w->dice, centroids, sizeof centroids / sizeof centroids[0], 1.0f);
  model_file_write_recjpq(path, centroids, SPLITS, SUBITEMS, DIM / SPLITS);
  assert_ok(engine_open(&config, &w->engine));
  for (size_t first = 0; first < ITEMS; first += CHANGES)
    put_items(w, first, ITEMS - first < CHANGES ? ITEMS - first : CHANGES);
  w->front = pair_acquire(w->engine->pair);
  pair_release(w->engine->pair, w->front); /* nobody publishes from here on */
}

static void close_world(struct world *w)
{
  engine_close(&w->engine);
  temp_dir_fini(&w->dir);
  region_fini(&w->region);
}

/* ---- One query ---- */

struct subject {
  struct query query;
  struct boost boosts[3];
  float vector[DIM];
  struct admission held;
  struct boosts bound;
  struct boost_bounds *bounds;
  uint64_t *before; /* what may be left */
  struct boosted_scan scan;
};

static void draw_query(struct world *w, struct subject *s)
{
  struct dice *d = &w->dice;

  dice_fill(d, s->vector, DIM, 1.0f);
  s->boosts[0] = (struct boost){ .weight = (double)dice_float(d, dice_below(d, 2) ? 0.1f : 10),
                                 .attribute = span_of_str("price") };
  s->boosts[1] = (struct boost){ .weight = (double)dice_float(d, 3),
                                 .attribute = span_of_str("expires"),
                                 .half_life_ms = 1 << 27 };
  s->boosts[2] = (struct boost){ .weight = (double)dice_float(d, dice_below(d, 6) ? 3 : 3e30f),
                                 .filter = span_of_str("price < 3") };
  s->query = (struct query){ .space = span_of_str("pq"),
                             .k = 1 + (uint32_t)dice_below(d, dice_below(d, 2) ? 5 : 300),
                             .vector = { s->vector, DIM },
                             .boosts = s->boosts + dice_below(d, 3),
                             .n_boosts = 1,
                             .now_unix_ms = NOW };
  s->query.n_boosts = 1 + dice_below(d, (size_t)(s->boosts + 3 - s->query.boosts));
  assert_ok(engine_check_filter(w->engine, &s->query, &w->region));
}

static float sum_of(const struct subject *s, uint32_t slot)
{
  const struct score_tables *t = s->scan.similarity;

  return boosts_score(t->ops->score(t, slot), boosts_of_slot(&s->bound, slot));
}

/* Draw what may be left. k of the others were found before. */
static void draw_words(struct world *w, struct subject *s)
{
  size_t n_words = bits_words(w->front->n_slots), share = 2 + dice_below(&w->dice, 30);

  assert_ok(region_array(&w->region, n_words, sizeof *s->scan.words, &s->scan.words));
  assert_ok(region_array(&w->region, n_words, sizeof *s->before, &s->before));
  assert_ok(kth_best_init(s->query.k, &w->region, &s->scan.best));
  for (uint32_t slot = 0, n_found = 0; slot < w->front->n_slots; slot++) {
    if (n_found < s->query.k && dice_below(&w->dice, 3) == 0) {
      kth_best_add(&s->scan.best, sum_of(s, slot));
      n_found++;
    } else if (dice_below(&w->dice, share)) {
      bits_set(s->scan.words, slot);
    }
  }
  kth_best_cut(&s->scan.best);
  memcpy(s->before, s->scan.words, n_words * sizeof *s->before);
}

static void begin(struct world *w, struct subject *s)
{
  const struct arena_space *in = &w->front->spaces[0];
  const struct space *space = in->space;
  const struct query *query = &s->query;
  const struct admission_target target = { .arena = w->front, .cache = w->engine->filters };
  struct prepared_queries *prepared;

  draw_query(w, s);
  assert_ok(admission_find(&target, &query, 1, &w->region, &s->held));
  assert_ok(boosts_bind(w->front, &w->engine->attributes, query, &w->region, &s->bound));
  assert_ok(boosts_evaluate(&s->bound, &target, &w->region, &s->held));
  assert_ok(boost_bounds_make(&s->bound, w->engine->kernels, &w->region, &s->bounds));
  assert_ok(space->similarity->prepare_queries(space->model, w->engine->kernels, &query, 1, &w->region, &prepared));
  assert_ok(in->on[0]->ops->score_tables(in->on[0], prepared, in->n_items, w->engine->kernels, &w->region,
                                         &s->scan.similarity));
  s->scan.bounds = s->bounds;
  draw_words(w, s);
}

static int compare_falling(const void *a, const void *b)
{
  const float *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

/* Return the k-th best of the sums that were found before and those that may be left. */
static float kth_of(struct world *w, const struct subject *s, const float *found)
{
  size_t n = s->query.k;
  float *sums;

  assert_ok(region_array(&w->region, n + w->front->n_slots, sizeof *sums, &sums));
  memcpy(sums, found, n * sizeof *sums);
  for (uint32_t slot = 0; slot < w->front->n_slots; slot++) {
    if (bits_get(s->before, slot))
      sums[n++] = sum_of(s, slot);
  }
  qsort(sums, n, sizeof *sums, compare_falling);
  return sums[s->query.k - 1];
}

static void check(struct world *w, const struct subject *s, const float *found)
{
  float kth = kth_of(w, s, found);
  uint64_t n = 0;

  assert_true(s->scan.best.threshold == kth);
  for (uint32_t slot = 0; slot < w->front->n_slots; slot++) {
    bool is_left = bits_get(s->scan.words, slot);
    assert_int_equal(is_left, bits_get(s->before, slot) && sum_of(s, slot) >= kth);
    n += is_left;
  }
  assert_int_equal(s->scan.n_left, n);
  assert_true(s->scan.n_scored >= n);
}

static void count_pause(void *context)
{
  ++*(int *)context;
}

static void just_the_best_sums_are_left(void **state)
{
  static struct subject subjects[BATCH];
  struct boosted_scan *scans[BATCH];
  float *found[BATCH];
  int n_pauses;
  const struct search_pause pause = { count_pause, &n_pauses };
  struct world w;

  (void)state;
  for (enum isa isa = ISA_REF; isa <= isa_detect(); isa++) {
    open_world(&w, isa);
    for (int round = 0; round < ROUNDS; round++) {
      region_reset(&w.region);
      for (size_t q = 0; q < BATCH; q++) {
        begin(&w, &subjects[q]);
        scans[q] = &subjects[q].scan;
        assert_ok(region_array(&w.region, subjects[q].query.k, sizeof *found[q], &found[q]));
        memcpy(found[q], subjects[q].scan.best.scores, subjects[q].query.k * sizeof *found[q]);
      }
      n_pauses = 0;
      boosted_scan_all(scans, BATCH, &pause);
      assert_int_equal(n_pauses, 1);
      for (size_t q = 0; q < BATCH; q++) {
        check(&w, &subjects[q], found[q]);
        admission_release(&subjects[q].held);
      }
    }
    close_world(&w);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(just_the_best_sums_are_left) };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
