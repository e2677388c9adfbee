/* SPDX-License-Identifier: Apache-2.0 */
/* Searches while the catalogue changes: each answer is right for exactly the epoch that it names. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS = 150,
  SPLITS = 4,
  SUBITEMS = 12,
  SPLIT_DIM = 2,
  EPOCHS = 2000,
  REPLACE_EVERY = 7, /* in every seventh epoch, all items are replaced */
  SEARCHERS = 3,
  BATCH = 3,
  ENOUGH_SEARCHES = 200,
  MIN_EPOCHS = 50,
  ENOUGH_S = 4,
  AT_MOST_S = 120, /* on a machine that is busy */
};

/* The catalogue of one epoch; 255 means no item. */
struct state {
  uint8_t codes[ITEMS][SPLITS];
  bool is_live[ITEMS];
};

static uint64_t seed;
static struct temp_dir dir;
static float centroids[SPLITS][SUBITEMS][SPLIT_DIM];
static struct state states[EPOCHS + 1]; /* written before its epoch is published, never afterwards */
static struct engine *engine;
static _Atomic bool is_over;

struct worker {
  pthread_t thread;
  struct dice dice;
  _Atomic uint64_t n_searches;
  uint64_t n_epochs, last_epoch;
  char fault[200];
};

static struct span key_of(size_t i, char text[8])
{
  return span_of(text, (size_t)sprintf(text, "%zu", i * 7919 % 1000));
}

/* Compute a score as the engine defines it, in f32: fused products added in order, then the splits added in order. */
static float score_of(const float *query, const uint8_t *codes)
{
  float score = 0.0f;

  for (size_t m = 0; m < SPLITS; m++) {
    float dot = 0.0f;
    for (size_t k = 0; k < SPLIT_DIM; k++)
      dot = fmaf(query[m * SPLIT_DIM + k], centroids[m][codes[m]][k], dot);
    score = m ? score + dot : dot;
  }
  return score;
}

struct expected {
  float score;
  char key[8];
};

static int best_first(const void *a, const void *b)
{
  const struct expected *x = a, *y = b;

  if (x->score != y->score)
    return x->score < y->score ? 1 : -1;
  return span_compare(span_of_str(x->key), span_of_str(y->key));
}

static bool is_excluded(const struct query *query, struct span key)
{
  for (size_t i = 0; i < query->n_exclude; i++) {
    if (span_equal(query->exclude[i], key))
      return true;
  }
  return false;
}

/* Compute the answer that this epoch should give, best first. n_live is the number of its items. */
static size_t expect(const struct state *s, const struct query *query, struct expected *out, size_t *n_live)
{
  size_t n = 0;

  *n_live = 0;
  for (size_t i = 0; i < ITEMS; i++) {
    struct span key = key_of(i, out[n].key);
    *n_live += s->is_live[i];
    if (!s->is_live[i] || is_excluded(query, key))
      continue;
    out[n++].score = score_of(query->vector.v, s->codes[i]);
  }
  qsort(out, n, sizeof *out, best_first);
  return n;
}

#define FAULT(w, ...)                                  \
  do {                                                 \
    snprintf((w)->fault, sizeof (w)->fault, __VA_ARGS__); \
    return;                                            \
  } while (0)

static void check_answer(struct worker *w, const struct query *query, const struct answer *answer)
{
  struct expected expected[ITEMS + 1];
  size_t n_live;

  if (answer->epoch > EPOCHS || answer->epoch < w->last_epoch)
    FAULT(w, "epoch %llu after %llu", (unsigned long long)answer->epoch, (unsigned long long)w->last_epoch);
  size_t n = expect(&states[answer->epoch], query, expected, &n_live), n_hits = query->k < n ? query->k : n;
  if (answer->n_hits != n_hits || answer->counts.items != n_live)
    FAULT(w, "epoch %llu: %zu hits of %llu items, not %zu of %zu", (unsigned long long)answer->epoch, answer->n_hits,
          (unsigned long long)answer->counts.items, n_hits, n_live);
  for (size_t i = 0; i < n_hits; i++) {
    if (answer->hits[i].score != expected[i].score || !span_equal(answer->hits[i].key, span_of_str(expected[i].key)))
      FAULT(w, "epoch %llu: hit %zu is %.*s with %g, not %s with %g", (unsigned long long)answer->epoch, i,
            (int)answer->hits[i].key.n, (const char *)answer->hits[i].key.p, (double)answer->hits[i].score,
            expected[i].key, (double)expected[i].score);
  }
  if (!answer->receipt.is_exact || answer->receipt.has_bound != (n_hits < n))
    FAULT(w, "epoch %llu: a wrong receipt", (unsigned long long)answer->epoch);
  if (answer->epoch > 0 && (answer->n_watermark != 1 || answer->watermark[0].next != (int64_t)answer->epoch * 10))
    FAULT(w, "epoch %llu: a watermark of another epoch", (unsigned long long)answer->epoch);
}

static void search_once(struct worker *w, struct searcher *s)
{
  static const char *const methods[] = { "pqtopk", "prune(1)", "prune(4)" };
  const char *method_text = methods[dice_below(&w->dice, 3)];
  float vectors[BATCH][SPLITS * SPLIT_DIM];
  char texts[BATCH][5][8];
  struct span exclude[BATCH][5];
  struct query queries[BATCH];
  const struct query *pointers[BATCH];
  struct answer answers[BATCH];
  struct method method = { 0 };
  size_t space = 0;

  for (size_t q = 0; q < BATCH; q++) {
    for (size_t k = 0; k < SPLITS * SPLIT_DIM; k++) /* coarse numbers, so many scores tie */
      vectors[q][k] = (float)dice_below(&w->dice, 3) - 1.0f;
    queries[q] = (struct query){ .space = span_of_str("pq"),
                                 .method = span_of_str(method_text),
                                 .k = (uint32_t)(1 + dice_below(&w->dice, 2 * ITEMS)),
                                 .vector = { vectors[q], SPLITS * SPLIT_DIM },
                                 .exclude = exclude[q],
                                 .n_exclude = dice_below(&w->dice, 6) };
    for (size_t i = 0; i < queries[q].n_exclude; i++)
      exclude[q][i] = key_of(dice_below(&w->dice, ITEMS), texts[q][i]);
    pointers[q] = &queries[q];
    if (engine_check_query(engine, &queries[q], &space, &method) != ERR_OK)
      FAULT(w, "a query was refused: %s", err_message());
  }
  if (searcher_search(s, space, &method, pointers, BATCH, answers) != ERR_OK)
    FAULT(w, "a search failed: %s", err_message());
  for (size_t q = 0; q < BATCH && !*w->fault; q++) {
    if (answers[q].epoch != answers[0].epoch)
      FAULT(w, "a batch has two epochs");
    check_answer(w, &queries[q], &answers[q]);
  }
  w->n_epochs += answers[0].epoch != w->last_epoch;
  w->last_epoch = answers[0].epoch;
  atomic_fetch_add(&w->n_searches, 1);
}

static void *search_on(void *context)
{
  struct worker *w = context;
  struct searcher *s;

  if (searcher_open(engine, &s) != ERR_OK)
    return NULL;
  while (!atomic_load(&is_over) && !*w->fault)
    search_once(w, s);
  searcher_close(&s);
  return NULL;
}

/* Read what the daemon's other threads read while searches run. */
static void watch_once(struct worker *w)
{
  struct engine_epoch epoch;
  struct engine_space_info info;
  struct position seen = { 0, 0 };
  size_t n_live = 0;

  engine_epoch_get(engine, &epoch, &seen, 1);
  if (epoch.number < w->last_epoch || epoch.number > EPOCHS)
    FAULT(w, "the watcher saw epoch %llu after %llu", (unsigned long long)epoch.number,
          (unsigned long long)w->last_epoch);
  for (size_t i = 0; i < ITEMS; i++)
    n_live += states[epoch.number].is_live[i];
  if (epoch.n_items != n_live || seen.next != (int64_t)epoch.number * 10)
    FAULT(w, "epoch %llu has %llu items up to %lld", (unsigned long long)epoch.number,
          (unsigned long long)epoch.n_items, (long long)seen.next);
  if (epoch.number > 0 && !engine_has_seen(engine, &seen, 1))
    FAULT(w, "what epoch %llu had seen was forgotten", (unsigned long long)epoch.number);
  if (engine_has_seen(engine, &(struct position){ 0, EPOCHS * 10 + 1 }, 1))
    FAULT(w, "what will never come was seen");
  engine_space_get(engine, 0, &info);
  if (info.n_items > ITEMS)
    FAULT(w, "the space has %llu items", (unsigned long long)info.n_items);
  w->last_epoch = epoch.number;
  atomic_fetch_add(&w->n_searches, 1);
}

static void *watch_on(void *context)
{
  struct worker *w = context;

  while (!atomic_load(&is_over) && !*w->fault)
    watch_once(w);
  return NULL;
}

/* Draw the changes of the next epoch, and the catalogue that follows from them. */
static size_t draw_batch(struct dice *dice, size_t epoch, struct item_change *changes, struct part *parts,
                         char keys[][8])
{
  struct state *s = &states[epoch];
  size_t n = 1 + dice_below(dice, 12);

  *s = states[epoch - 1];
  for (size_t i = 0; i < n; i++) {
    size_t item = dice_below(dice, ITEMS);
    changes[i] = (struct item_change){ .key = key_of(item, keys[i]), .is_delete = dice_below(dice, 5) < 2 };
    s->is_live[item] = !changes[i].is_delete;
    if (changes[i].is_delete)
      continue;
    for (size_t m = 0; m < SPLITS; m++)
      s->codes[item][m] = (uint8_t)dice_below(dice, SUBITEMS);
    parts[i] = (struct part){ .space = span_of_str("pq"), .codes = span_of(s->codes[item], SPLITS) };
    changes[i].parts = &parts[i];
    changes[i].n_parts = 1;
  }
  return n;
}

static void apply_epoch(struct dice *dice, size_t epoch)
{
  struct item_change changes[12];
  struct part parts[12];
  char keys[12][8];
  size_t n = draw_batch(dice, epoch, changes, parts, keys);

  assert_ok(engine_apply(engine, changes, n, &(struct position){ 0, (int64_t)epoch * 10 }, 1));
}

/* Feed all items of an epoch, about six at a time, each with a part of an unknown space. */
static err_code_t feed_epoch(void *context, struct engine_loading *loading)
{
  AUTO(region_fini) struct region scratch = { 0 };
  const struct state *s = context;
  size_t first = 0;
  struct item_change changes[6];
  struct part parts[6][2];
  char keys[6][8];
  size_t n = 0;

  for (size_t i = 0; i < ITEMS; i++) {
    if (s->is_live[i]) {
      parts[n][0] = (struct part){ .space = span_of_str("unknown"), .codes = span_of(s->codes[i], 1) };
      parts[n][1] = (struct part){ .space = span_of_str("pq"), .codes = span_of(s->codes[i], SPLITS) };
      changes[n] = (struct item_change){ .key = key_of(i, keys[n]), .is_whole = true, .parts = parts[n], .n_parts = 2 };
      n++;
    }
    if (n == 6 || i == ITEMS - 1) {
      region_reset(&scratch);
      TRY(engine_loading_put(loading, &scratch, first, changes, n));
      first += n;
      n = 0;
    }
  }
  return ERR_OK;
}

/* Replace the whole catalogue in one epoch. */
static void replace_epoch(struct dice *dice, size_t epoch)
{
  struct state *s = &states[epoch];

  for (size_t i = 0; i < ITEMS; i++) {
    s->is_live[i] = dice_below(dice, 2);
    for (size_t m = 0; m < SPLITS; m++)
      s->codes[i][m] = (uint8_t)dice_below(dice, SUBITEMS);
  }
  assert_ok(engine_replace(engine, feed_epoch, s, 2, &(struct position){ 0, (int64_t)epoch * 10 }, 1));
}

static bool has_searched_enough(struct worker *workers)
{
  for (size_t i = 0; i < SEARCHERS; i++) {
    if (atomic_load(&workers[i].n_searches) < ENOUGH_SEARCHES)
      return false;
  }
  return true;
}

/* Number of searches that have ended so far. */
static size_t count_searches(struct worker *workers)
{
  size_t n = 0;

  for (size_t i = 0; i < SEARCHERS; i++)
    n += atomic_load(&workers[i].n_searches);
  return n;
}

static void open_engine(struct dice *dice, char *path, size_t size)
{
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { &space, 1, ITEMS, 2 * ITEMS, BATCH, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };

  for (size_t i = 0; i < sizeof centroids / sizeof(float); i++)
    ((float *)centroids)[i] = (float)dice_below(dice, 9) * 0.25f - 1.0f;
  snprintf(path, size, "%s/pq.safetensors", dir.path);
  model_file_write_recjpq(path, &centroids[0][0][0], SPLITS, SUBITEMS, SPLIT_DIM);
  assert_ok(engine_open(&config, &engine));
}

static void every_answer_is_right_for_the_epoch_that_it_names(void **state)
{
  struct dice dice = { seed };
  struct worker workers[SEARCHERS + 1] = { 0 };
  uint64_t n_epochs = 0;
  char path[sizeof dir.path + 32];
  size_t epoch = 0;

  (void)state;
  open_engine(&dice, path, sizeof path);
  for (size_t i = 0; i <= SEARCHERS; i++) {
    workers[i].dice.state = seed + 100 + i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, i < SEARCHERS ? search_on : watch_on, &workers[i]), 0);
  }
  int64_t begin_ns = clock_now_ns(), end_ns = begin_ns + AT_MOST_S * CLOCK_NS_PER_S;
  while (epoch < MIN_EPOCHS || (epoch < EPOCHS && clock_now_ns() - begin_ns < ENOUGH_S * CLOCK_NS_PER_S)) {
    epoch++;
    if (epoch % REPLACE_EVERY == 0)
      replace_epoch(&dice, epoch);
    else
      apply_epoch(&dice, epoch);
    /* Wait for the searches: a fast writer would finish before they begin. */
    while (count_searches(workers) < epoch / 4 && clock_now_ns() < end_ns)
      sched_yield();
  }
  while (!has_searched_enough(workers) && clock_now_ns() < end_ns)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  atomic_store(&is_over, true);
  for (size_t i = 0; i <= SEARCHERS; i++) {
    pthread_join(workers[i].thread, NULL);
    if (*workers[i].fault)
      fail_msg("%s", workers[i].fault);
    assert_true(atomic_load(&workers[i].n_searches) > 0);
    n_epochs += workers[i].n_epochs;
  }
  assert_true(n_epochs >= 10); /* searches and writes did run at the same time */
  engine_close(&engine);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_answer_is_right_for_the_epoch_that_it_names),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
