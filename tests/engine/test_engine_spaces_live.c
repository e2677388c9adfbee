/* SPDX-License-Identifier: Apache-2.0 */
/* Searches while generations of a space are added, filled, switched to and removed: each answer is right for exactly
 * the epoch and the generation that it names, with filters, lifetimes, parts that several generations use, and whole
 * catalogues that are replaced. */
#include <inttypes.h>
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
#include "engine/engine_spaces.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS = 70,
  SPLITS = 3,
  SUBITEMS = 10,
  LAST_SUBITEMS = 9, /* of the last generation: it refuses a code */
  SPLIT_DIM = 2,
  GENERATIONS = 5, /* 1..5; each comes and goes many times */
  EPOCHS = 1500,
  REPLACE_EVERY = 41,
  SEARCHERS = 3,
  BATCH = 2,
  MIN_EPOCHS = 50,
  ENOUGH_S = 4,
  AT_MOST_S = 120, /* before everything was seen, on a machine that is busy */
  START_MS = 1000000,
};

/* One generation in one epoch. */
struct part_state {
  bool is_there;
  bool has[ITEMS];
  uint8_t codes[ITEMS][SPLITS];
};

/* The catalogue of one epoch. */
struct state {
  bool is_live[ITEMS];
  size_t current;
  struct part_state of[GENERATIONS + 1];
};

static uint64_t seed;
static struct temp_dir dir;
static float centroids[GENERATIONS + 1][SPLITS][SUBITEMS][SPLIT_DIM];
static char paths[GENERATIONS + 1][PATH_MAX];
static char digests[GENERATIONS + 1][ENGINE_DIGEST_BYTES];
static struct state states[EPOCHS + 1]; /* written before its epoch is published, never afterwards */
static struct engine *engine;
static _Atomic bool is_over;
static _Atomic int64_t now_ms;
static uint64_t n_indexed; /* how often the index of an added generation became complete */

/* Generations 4 and 5 use the parts of 1. */
static size_t root_of(size_t generation)
{
  return generation >= 4 ? 1 : generation;
}

static bool takes(size_t generation, const uint8_t *codes)
{
  bool is_taken = true;

  for (size_t m = 0; m < SPLITS; m++)
    is_taken &= generation < GENERATIONS || codes[m] < LAST_SUBITEMS;
  return is_taken;
}

static int64_t tell_time(void *context)
{
  (void)context;
  return atomic_load(&now_ms);
}

static struct span key_of(size_t i, char text[8])
{
  return span_of(text, (size_t)sprintf(text, "%zu", i * 7919 % 1000));
}

/* What never changes of an item. */
static int64_t color_of(size_t i)
{
  return (int64_t)(i % 3);
}

/* Every fourth item expires while the test runs. */
static int64_t expiry_of(size_t i)
{
  return i % 4 ? INT64_MAX / 2 : START_MS + 10 * (int64_t)i;
}

static float score_of(size_t generation, const float *query, const uint8_t *codes)
{
  float score = 0.0f;

  for (size_t m = 0; m < SPLITS; m++) {
    float dot = 0.0f;
    for (size_t k = 0; k < SPLIT_DIM; k++)
      dot = fmaf(query[m * SPLIT_DIM + k], centroids[generation][m][codes[m]][k], dot);
    score = m ? score + dot : dot;
  }
  return score;
}

/* ---- What an answer should be ---- */

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

/* color  of the filter; -1: there is none */
static size_t expect(const struct part_state *s, size_t generation, const struct query *query, int64_t color,
                     int64_t time_ms, struct expected *out, size_t *n_parts)
{
  size_t n = 0;

  *n_parts = 0;
  for (size_t i = 0; i < ITEMS; i++) {
    *n_parts += s->has[i];
    if (!s->has[i] || expiry_of(i) <= time_ms || (color >= 0 && color_of(i) != color))
      continue;
    key_of(i, out[n].key);
    out[n++].score = score_of(generation, query->vector.v, s->codes[i]);
  }
  qsort(out, n, sizeof *out, best_first);
  return n;
}

/* ---- Searching ---- */

struct worker {
  pthread_t thread;
  struct dice dice;
  _Atomic uint64_t n_searches;
  size_t numbers[GENERATIONS + 1]; /* of the last check of a query, by the generation that it named */
  bool has_number[GENERATIONS + 1];
  _Atomic uint64_t n_changed, n_unknown, n_pinned, n_of_others;
  char fault[240];
};

#define FAULT(w, ...)                                    \
  do {                                                   \
    snprintf((w)->fault, sizeof(w)->fault, __VA_ARGS__); \
    return;                                              \
  } while (0)

static void check_hits(struct worker *w, const struct query *query, int64_t color, const struct answer *answer)
{
  struct expected expected[ITEMS + 1];
  size_t generation = answer->generation, n_parts;
  const struct part_state *s = &states[answer->epoch].of[generation];

  size_t n = expect(s, generation, query, color, answer->time_unix_ms, expected, &n_parts);
  size_t n_hits = query->k < n ? query->k : n;
  if (answer->n_hits != n_hits || answer->counts.items != n_parts)
    FAULT(w, "epoch %" PRIu64 ", generation %zu: %zu hits of %" PRIu64 " items, not %zu of %zu", answer->epoch,
          generation, answer->n_hits, answer->counts.items, n_hits, n_parts);
  for (size_t i = 0; i < n_hits; i++) {
    if (answer->hits[i].score != expected[i].score || !span_equal(answer->hits[i].key, span_of_str(expected[i].key)))
      FAULT(w, "epoch %" PRIu64 ", generation %zu: hit %zu is wrong", answer->epoch, generation, i);
  }
  if (!answer->receipt.is_exact)
    FAULT(w, "an exact search is not exact");
}

/* pinned  the generation that the query names; 0: none */
static void check_answer(struct worker *w, const struct query *query, size_t pinned, int64_t color,
                         const struct answer *answer)
{
  if (answer->epoch > EPOCHS || answer->generation > GENERATIONS)
    FAULT(w, "epoch %" PRIu64 ", generation %u", answer->epoch, answer->generation);
  const struct state *s = &states[answer->epoch];
  if (answer->generation != (pinned ? pinned : s->current) || !s->of[answer->generation].is_there)
    FAULT(w, "epoch %" PRIu64 ": generation %u answered, not %zu", answer->epoch, answer->generation,
          pinned ? pinned : s->current);
  if (!span_equal(answer->space, span_of_str("pq")) ||
      strncmp(answer->model, digests[answer->generation], ANSWER_MODEL_DIGITS) != 0)
    FAULT(w, "generation %u: the answer names another space or model", answer->generation);
  check_hits(w, query, color, answer);
  w->n_of_others += answer->generation > 1;
  w->n_pinned += pinned > 0;
}

/* Check a batch. Now and then keep the number of an earlier check, as if the queries had waited since then. Returns
 * whether there is something to search. */
static bool check_batch(struct worker *w, const struct query *queries, size_t pinned, struct method *method)
{
  size_t number = 0;

  for (size_t q = 0; q < BATCH; q++) {
    err_code_t err = engine_check_query(engine, &queries[q], &number, method);
    if (err == ERR_SPACE && pinned) {
      w->n_unknown++;
      return false;
    }
    if (err != ERR_OK) {
      snprintf(w->fault, sizeof w->fault, "a query was refused: %s", err_message());
      return false;
    }
  }
  if (!w->has_number[pinned] || dice_below(&w->dice, 4) > 0)
    w->numbers[pinned] = number;
  w->has_number[pinned] = true;
  return true;
}

/* Check and search a batch, and again while its generation changes. */
static void search_batch(struct worker *w, struct searcher *s, struct query *queries, const int64_t *colors,
                         size_t pinned)
{
  const struct query *pointers[BATCH] = { &queries[0], &queries[1] };
  struct answer answers[BATCH];
  struct method method;
  err_code_t err;

  do {
    if (!check_batch(w, queries, pinned, &method))
      return;
    err = searcher_search(s, w->numbers[pinned], &method, pointers, BATCH, answers);
    w->has_number[pinned] = err == ERR_OK;
    w->n_changed += err == ERR_SPACE_CHANGED;
  } while (err == ERR_SPACE_CHANGED);
  if (err != ERR_OK)
    FAULT(w, "a search failed: %s", err_message());
  for (size_t q = 0; q < BATCH && !*w->fault; q++)
    check_answer(w, &queries[q], pinned, colors[q], &answers[q]);
}

static void search_once(struct worker *w, struct searcher *s, struct region *region)
{
  static const char *const methods[] = { "pqtopk", "prune(2)", "exact" };
  size_t pinned = dice_below(&w->dice, 2) ? 1 + dice_below(&w->dice, GENERATIONS) : 0;
  const char *method = methods[dice_below(&w->dice, 3)];
  float vectors[BATCH][SPLITS * SPLIT_DIM];
  char space[16], filters[BATCH][16];
  struct query queries[BATCH];
  int64_t colors[BATCH];

  region_reset(region);
  snprintf(space, sizeof space, pinned ? "pq@%zu" : "pq", pinned);
  for (size_t q = 0; q < BATCH; q++) {
    for (size_t k = 0; k < SPLITS * SPLIT_DIM; k++)
      vectors[q][k] = (float)dice_below(&w->dice, 3) - 1.0f;
    queries[q] = (struct query){ .space = span_of_str(space),
                                 .method = span_of_str(method),
                                 .k = (uint32_t)(1 + dice_below(&w->dice, ITEMS)),
                                 .vector = { vectors[q], SPLITS * SPLIT_DIM } };
    colors[q] = (int64_t)dice_below(&w->dice, 4) - 1;
    snprintf(filters[q], sizeof filters[q], "color = %" PRId64, colors[q]);
    if (colors[q] >= 0)
      queries[q].filter = span_of_str(filters[q]);
    if (engine_check_filter(engine, &queries[q], region) != ERR_OK)
      FAULT(w, "a filter was refused: %s", err_message());
  }
  search_batch(w, s, queries, colors, pinned);
  atomic_fetch_add(&w->n_searches, 1);
}

/* Look at what the daemon's other threads look at. */
static void watch(struct worker *w)
{
  size_t n = engine_n_spaces(engine); /* the places are read in several epochs */
  struct engine_space_info info;

  for (size_t i = 0; i < n; i++) {
    if (!engine_space_get(engine, i, &info))
      continue;
    if (info.generation > GENERATIONS || strcmp(info.digest, digests[info.generation]) != 0 || info.n_items > ITEMS)
      FAULT(w, "generation %u is described wrongly", info.generation);
  }
  if (engine_count_missing(engine, span_of_str("pq"), 1, 2) > ITEMS)
    FAULT(w, "more items are missing than there are");
  if (!engine_space_find(engine, span_of_str("pq"), 0, &info))
    FAULT(w, "no generation is the current one");
}

static void *search_on(void *context)
{
  struct worker *w = context;
  struct region region = { 0 };
  struct searcher *s;

  if (searcher_open(engine, &s) != ERR_OK)
    return NULL;
  while (!atomic_load(&is_over) && !*w->fault) {
    search_once(w, s, &region);
    watch(w);
  }
  searcher_close(&s);
  region_fini(&region);
  return NULL;
}

/* ---- Changing ---- */

static const struct attribute attributes[] = { { { (const uint8_t *)"color", 5 }, ATTRIBUTE_INTEGER },
                                               { { (const uint8_t *)"expires", 7 }, ATTRIBUTE_TIME } };

struct change {
  struct item_change change;
  struct part parts[GENERATIONS];
  struct attribute_value values[2];
  char key[8];
  char names[GENERATIONS][16];
};

/* Make the change of an item from its state: the parts of the roots that `puts` has. */
static void make_put(const struct state *s, size_t i, unsigned puts, struct change *c)
{
  c->change = (struct item_change){ .key = key_of(i, c->key), .parts = c->parts, .attributes = c->values };
  c->values[0] = (struct attribute_value){ attributes[0].name, { VALUE_INTEGER, .integer = color_of(i) } };
  c->values[1] = (struct attribute_value){ attributes[1].name, { VALUE_INTEGER, .integer = expiry_of(i) } };
  c->change.n_attributes = 2;
  for (size_t g = 1; g <= GENERATIONS; g++) {
    size_t n = c->change.n_parts;
    if (!(puts >> g & 1))
      continue;
    snprintf(c->names[n], sizeof c->names[n], g > 1 ? "pq@%zu" : i % 2 ? "pq" : "pq@1", g);
    c->parts[n] = (struct part){ .space = span_of_str(c->names[n]), .codes = span_of(s->of[g].codes[i], SPLITS) };
    c->change.n_parts++;
  }
}

/* Draw codes that a generation takes, if there is one that uses the parts of this root. */
static void draw_codes(struct dice *dice, const struct state *s, size_t root, uint8_t *out)
{
  bool has_user, is_taken;

  do {
    has_user = is_taken = false;
    for (size_t m = 0; m < SPLITS; m++)
      out[m] = (uint8_t)dice_below(dice, SUBITEMS);
    for (size_t g = 1; g <= GENERATIONS; g++) {
      has_user |= root_of(g) == root && s->of[g].is_there;
      is_taken |= root_of(g) == root && s->of[g].is_there && takes(g, out);
    }
  } while (has_user && !is_taken);
}

/* Draw new parts of an item, of generations that are there and of others: those are ignored. */
static unsigned draw_parts(struct dice *dice, struct state *s, size_t i)
{
  unsigned puts = 0;
  uint8_t codes[SPLITS];

  for (size_t root = 1; root <= GENERATIONS; root++) {
    if (root_of(root) != root || dice_below(dice, 2))
      continue;
    draw_codes(dice, s, root, codes);
    for (size_t g = root; g <= GENERATIONS; g++) {
      if (root_of(g) != root)
        continue;
      memcpy(s->of[g].codes[i], codes, SPLITS);
      s->of[g].has[i] = s->of[g].is_there && takes(g, codes);
    }
    puts |= 1u << root;
  }
  return puts;
}

static void apply_some(struct dice *dice, struct state *s)
{
  static struct change made[16];
  struct item_change changes[16];
  size_t n = 1 + dice_below(dice, 16);

  for (size_t c = 0; c < n; c++) {
    size_t i = dice_below(dice, ITEMS);
    bool is_delete = dice_below(dice, 6) == 0, is_whole = dice_below(dice, 8) == 0;
    for (size_t g = 1; (is_delete || is_whole) && g <= GENERATIONS; g++)
      s->of[g].has[i] = false;
    s->is_live[i] = !is_delete;
    make_put(s, i, is_delete ? 0 : draw_parts(dice, s, i), &made[c]);
    /* a later change of the item overwrites its codes in the state: keep those of this one */
    for (size_t p = 0; p < made[c].change.n_parts; p++) {
      static uint8_t kept[16][GENERATIONS][SPLITS];
      memcpy(kept[c][p], made[c].parts[p].codes.p, SPLITS);
      made[c].parts[p].codes.p = kept[c][p];
    }
    made[c].change.is_delete = is_delete;
    made[c].change.is_whole = is_whole;
    changes[c] = made[c].change;
  }
  assert_ok(engine_apply(engine, changes, n, NULL, 0));
}

static err_code_t feed(void *context, struct engine_loading *loading)
{
  AUTO(region_fini) struct region scratch = { 0 };
  const struct state *s = context;
  static struct change made;
  size_t slot = 0;

  for (size_t i = 0; i < ITEMS; i++) {
    unsigned puts = 0;
    for (size_t g = 1; g <= GENERATIONS; g++)
      puts |= s->of[g].has[i] ? 1u << root_of(g) : 0;
    make_put(s, i, puts, &made);
    if (s->is_live[i])
      TRY(engine_loading_put(loading, &scratch, slot++, &made.change, 1));
  }
  return ERR_OK;
}

static void replace(struct dice *dice, struct state *s)
{
  for (size_t i = 0; i < ITEMS; i++) {
    s->is_live[i] = dice_below(dice, 4) > 0;
    for (size_t g = 1; g <= GENERATIONS; g++)
      s->of[g].has[i] = false;
    if (s->is_live[i])
      draw_parts(dice, s, i);
  }
  assert_ok(engine_replace(engine, feed, s, 2, NULL, 0));
}

static void add(struct state *s, size_t generation)
{
  const struct engine_space space = { .name = "pq",
                                      .model_path = paths[generation],
                                      .generation = (uint32_t)generation,
                                      .parts_of = (uint32_t)root_of(generation) };
  struct engine_model *model = NULL;

  assert_ok(engine_load_model(&space, &model));
  assert_string_equal(engine_model_digest(model), digests[generation]);
  s->of[generation].is_there = true;
  assert_ok(engine_add_space(engine, &model));
  assert_null(model);
}

/* Put a part into one generation, and into no other that uses it. */
static void fill_one(struct dice *dice, struct state *s, size_t generation, size_t i)
{
  struct change made;

  make_put(s, i, 1u << root_of(generation), &made);
  for (size_t m = 0; m < SPLITS; m++)
    s->of[generation].codes[i][m] = (uint8_t)dice_below(dice, LAST_SUBITEMS);
  s->of[generation].has[i] = true;
  made.parts[0].codes.p = s->of[generation].codes[i];
  assert_ok(engine_check_fill(engine, span_of_str("pq"), (uint32_t)generation, &made.parts[0]));
  assert_ok(engine_fill_space(engine, span_of_str("pq"), (uint32_t)generation, &made.change, 1));
}

static void remove_generation(struct state *s, size_t generation)
{
  memset(&s->of[generation], 0, sizeof s->of[generation]);
  assert_ok(engine_remove_space(engine, span_of_str("pq"), (uint32_t)generation));
}

static bool has_index(size_t generation)
{
  return !engine_lacks_index(engine, span_of_str("pq"), (uint32_t)generation);
}

/* An answer is the same without an index, with a part of it, and with all of it. */
static void build_index(size_t generation)
{
  bool had_index = has_index(generation);

  assert_ok(engine_build_index(engine, span_of_str("pq"), (uint32_t)generation));
  assert_true(!had_index || has_index(generation));
  n_indexed += !had_index && has_index(generation);
}

/* Return a generation without an index; or the given one. */
static size_t draw_lacking(struct dice *dice, const struct state *s, size_t otherwise)
{
  for (size_t i = 0; i < GENERATIONS; i++) {
    size_t generation = 1 + (i + otherwise) % GENERATIONS;
    if (s->of[generation].is_there && !has_index(generation) && dice_below(dice, 8))
      return generation;
  }
  return otherwise;
}

static bool is_published(size_t epoch)
{
  struct engine_epoch front;

  engine_epoch_get(engine, &front, NULL, 0);
  return front.number == epoch;
}

/* Draw what the next epoch changes, write its state, and publish it. */
static void next_epoch(struct dice *dice, size_t epoch)
{
  struct state *s = &states[epoch];
  size_t generation = 1 + dice_below(dice, GENERATIONS), kind = dice_below(dice, 11), i = dice_below(dice, ITEMS);

  *s = states[epoch - 1];
  atomic_fetch_add(&now_ms, (int64_t)dice_below(dice, 3));
  if (epoch % REPLACE_EVERY == 0) {
    replace(dice, s);
  } else if (kind == 0 && !s->of[generation].is_there) {
    add(s, generation);
  } else if (kind == 1 && s->of[generation].is_there && s->current != generation) {
    s->current = generation;
    assert_ok(engine_set_current(engine, span_of_str("pq"), (uint32_t)generation));
  } else if (kind == 2 && s->of[generation].is_there && s->current != generation) {
    remove_generation(s, generation);
  } else if (kind == 3 && s->of[generation].is_there && s->is_live[i]) {
    fill_one(dice, s, generation, i);
  } else if (kind >= 4 && kind < 8 && s->of[generation].is_there) {
    do
      build_index(draw_lacking(dice, s, generation));
    while (!is_published(epoch) && dice_below(dice, 3));
    if (!is_published(epoch)) /* the step has changed the back arena alone */
      apply_some(dice, s);
  } else {
    apply_some(dice, s);
  }
}

/* Write the first sub-items of each split. */
static void write_model(const char *path, float from[SPLITS][SUBITEMS][SPLIT_DIM], size_t n_subitems)
{
  float packed[SPLITS * SUBITEMS * SPLIT_DIM];

  for (size_t m = 0; m < SPLITS; m++)
    memcpy(packed + m * n_subitems * SPLIT_DIM, from[m], n_subitems * sizeof *from[m]);
  model_file_write_recjpq(path, packed, SPLITS, n_subitems, SPLIT_DIM);
}

static void write_models(struct dice *dice)
{
  for (size_t g = 1; g <= GENERATIONS; g++) {
    for (size_t i = 0; i < (size_t)SPLITS * SUBITEMS * SPLIT_DIM; i++)
      (&centroids[g][0][0][0])[i] = (float)dice_below(dice, 9) * 0.25f - 1.0f;
    snprintf(paths[g], sizeof paths[g], "%s/%zu.safetensors", dir.path, g);
    write_model(paths[g], centroids[g], g < GENERATIONS ? SUBITEMS : LAST_SUBITEMS);
  }
}

/* The digest of each generation's file, by another way than adding it: an engine that has just this one. */
static void open_engines(void)
{
  struct engine_space space = { .name = "pq" };
  struct engine_config config = { .spaces = &space,
                                  .n_spaces = 1,
                                  .max_items = ITEMS,
                                  .max_k = ITEMS,
                                  .max_batch = BATCH,
                                  .isa = isa_detect(),
                                  .attributes = { attributes, 2 },
                                  .lifetimes = { NULL, "expires", { tell_time, NULL } } };
  struct engine_space_info info;

  for (size_t g = GENERATIONS; g >= 1; g--) {
    space.model_path = paths[g];
    assert_ok(engine_open(&config, &engine));
    assert_true(engine_space_get(engine, 0, &info));
    assert_int_equal(info.generation, 1);
    memcpy(digests[g], info.digest, sizeof digests[g]);
    if (g > 1)
      engine_close(&engine);
  }
}

/* What all searchers have done so far. */
struct tally {
  uint64_t n_searches, n_of_others, n_pinned, n_changed, n_unknown;
};

static struct tally tally(struct worker *workers)
{
  struct tally t = { 0 };

  for (size_t i = 0; i < SEARCHERS; i++) {
    t.n_searches += workers[i].n_searches;
    t.n_of_others += workers[i].n_of_others;
    t.n_pinned += workers[i].n_pinned;
    t.n_changed += workers[i].n_changed;
    t.n_unknown += workers[i].n_unknown;
  }
  return t;
}

static bool has_seen_all(const struct tally *t)
{
  return t->n_of_others > 0 && t->n_pinned > 0 && t->n_changed > 0 && t->n_unknown > 0 && n_indexed > 0;
}

/* Publish epochs beside the searchers until they have met everything that can happen. Returns the number of epochs. */
static size_t publish_epochs(struct dice *dice, struct worker *workers)
{
  int64_t begin_ns = clock_now_ns(), end_ns = begin_ns + AT_MOST_S * CLOCK_NS_PER_S;
  struct tally t = { 0 };
  size_t epoch = 0;

  while (epoch < EPOCHS && clock_now_ns() < end_ns) {
    bool is_long_enough = clock_now_ns() - begin_ns >= ENOUGH_S * CLOCK_NS_PER_S;
    if (is_long_enough && epoch >= MIN_EPOCHS && has_seen_all(&t))
      break;
    next_epoch(dice, ++epoch);
    while ((t = tally(workers)).n_searches < epoch && clock_now_ns() < end_ns)
      sched_yield();
  }
  return epoch;
}

static void every_answer_is_right_for_its_epoch_and_its_generation(void **state)
{
  struct dice dice = { seed };
  struct worker workers[SEARCHERS] = { 0 };

  (void)state;
  atomic_store(&now_ms, START_MS);
  write_models(&dice);
  open_engines();
  states[0].current = 1;
  states[0].of[1].is_there = true;
  for (size_t i = 0; i < SEARCHERS; i++) {
    workers[i].dice.state = seed + 100 + i;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, search_on, &workers[i]), 0);
  }
  size_t epoch = publish_epochs(&dice, workers);
  atomic_store(&is_over, true);
  for (size_t i = 0; i < SEARCHERS; i++) {
    pthread_join(workers[i].thread, NULL);
    if (*workers[i].fault)
      fail_msg("%s", workers[i].fault);
  }
  struct tally t = tally(workers);
  printf("%zu epochs, %" PRIu64 " searches: %" PRIu64 " by later generations, %" PRIu64 " pinned; %" PRIu64
         " checked again, %" PRIu64 " of unknown generations; %" PRIu64 " indexes built\n",
         epoch, t.n_searches, t.n_of_others, t.n_pinned, t.n_changed, t.n_unknown, n_indexed);
  assert_true(epoch >= MIN_EPOCHS && has_seen_all(&t));
  engine_close(&engine);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_answer_is_right_for_its_epoch_and_its_generation),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
