/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench filtered_vectors: `exact` of mol, bilinear and dot with filters that admit few or many items, shared by a
 * batch or different for each of its queries, with excluded keys, with at most n hits of a value, with hits that differ,
 * with boosts, and with a least score; the last five for recjpq too. Each row takes turns with the same search without
 * any of these. Answers are compared with brute force under the same filter, and each hit with the filter. Peers race
 * under filters, over the vectors of bilinear and dot.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/keys/key_set.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_peer.h"
#include "tests/bench/bilinear_data.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"
#include "tests/support/vector_file.h"

enum { LIKED = 128, LARGE_K = 2000, QUERIES = BENCH_BATCH_MAX };
enum { FILTER_BYTES = 64, UPDATE_ITEMS = 4096, MAKER_ITEMS = 100 };

/* `maker` has about MAKER_ITEMS random items of each value, `kind` items that are alike. `published` is up to DAYS ago. */
enum { LOT, MAKER, KIND, PUBLISHED, ATTRIBUTES };
static const struct attribute attributes[ATTRIBUTES] = {
  [LOT] = { { (const uint8_t *)"lot", 3 }, ATTRIBUTE_NUMBER },
  [MAKER] = { { (const uint8_t *)"maker", 5 }, ATTRIBUTE_INTEGER },
  [KIND] = { { (const uint8_t *)"kind", 4 }, ATTRIBUTE_INTEGER },
  [PUBLISHED] = { { (const uint8_t *)"published", 9 }, ATTRIBUTE_TIME },
};

#define DAY_MS INT64_C(86400000)
#define NOW_MS (20000 * DAY_MS)
enum { DAYS = 1000, HALF_LIFE_DAYS = 7 };

/* The boosts of a row, each at most so many times as far as the best score is above the SPREAD_K-th. */
enum { SPREAD_K = 100 };
static const struct boosting {
  const char *name;
  double lot, published, few; /* of a number, of an age, and of a filter that admits 1 % */
} boostings[] = {
  { "0.1 lot", 0.1, 0, 0 },  { "0.3 lot", 0.3, 0, 0 },    { "1 lot", 1, 0, 0 },
  { "10 lot", 10, 0, 0 },    { "1 published", 0, 1, 0 }, { "1 of few", 0, 0, 1 },
  { "all three", 0.3, 1, 1 },
};
enum { BOOSTINGS = sizeof boostings / sizeof boostings[0] };

static const double shares[] = { 0.5, 0.3, 0.1, 0.03, 0.01, 0.001 };
enum { SHARES = sizeof shares / sizeof shares[0] };

/* A similarity and its catalogue. */
struct subject {
  const char *name;
  size_t items, dim, batch;
  uint32_t k;
  const float *queries; /* [QUERIES][dim] */
  bench_part_of part_of;
  const void *data;
  double tolerance;   /* on a score */
  bool has_keys_only; /* no races with filters */
  const char *judge;  /* a method that takes excluded keys in another way */
  bool has_peers;
};

/* What the queries of a race admit. */
struct limits {
  double share;     /* of the items; 1: there is no filter */
  size_t n_filters; /* of a batch: its queries have them in turn; 0: one */
  size_t n_excluded;
  bool is_seen;  /* the excluded keys are a set that was made before */
  bool is_liked; /* they are the LIKED best items of the query, and then any others */
  struct max_per max_per;
  uint32_t candidates; /* of mmr; 0: none */
  uint32_t n_reaching; /* hits that reach the least score, of LARGE_K; 0: there is none */
  const struct boosting *boosting; /* NULL: none */
};

struct bench {
  struct bench_options options;
  const struct subject *subject;
  struct bench_engine engine;
  struct searcher *judge; /* keeps the answers of the engine's searcher as they are */
  struct method exact, brute_force;
  struct region region;
  double spread; /* as above, on average */
  float *lot; /* [items] uniform in 0..1: the attribute `lot` */
  uint8_t (*keys)[BENCH_KEY_BYTES];
  struct engine_racer plain;
  struct peer *peer;
  /* Of the current race. */
  struct limits limits;
  size_t batch, round;
  double lows[BENCH_BATCH_MAX]; /* lot of an admitted item is in low..low + share */
  struct query queries[BENCH_BATCH_MAX];
  struct answer answers[BENCH_BATCH_MAX];
  bool has_truth[QUERIES]; /* by round */
  struct truth truth[QUERIES];
};

/* Queries -------------------- */

static size_t n_filters_of(const struct bench *b)
{
  return b->limits.n_filters ? b->limits.n_filters : 1;
}

static void set_filter(struct bench *b, size_t q, struct query *query)
{
  char *text;

  if (b->limits.share == 1)
    return;
  bench_check(region_array(&b->region, FILTER_BYTES, 1, &text));
  size_t n_filters = n_filters_of(b);
  b->lows[q] = (1 - b->limits.share) * (double)(q % n_filters) / (double)n_filters;
  snprintf(text, FILTER_BYTES, "lot >= %.9f and lot < %.9f", b->lows[q], b->lows[q] + b->limits.share);
  query->filter = span_of_str(text);
  bench_check(engine_check_filter(b->engine.engine, query, &b->region));
}

/* Ask for many hits, and let so few reach the least score. */
static void set_min_score(struct bench *b, struct query *query)
{
  const struct query *queries = query;
  struct answer answer;

  query->k = b->limits.n_reaching;
  bench_check(searcher_search(b->judge, 0, &b->exact, &queries, 1, &answer));
  query->min_score = answer.hits[answer.n_hits - 1].score;
  query->has_min_score = true;
  query->k = LARGE_K;
}

/* Put the best items of the query in the place of the first excluded ones. */
static void exclude_liked(struct bench *b, struct query *query)
{
  struct query liked = { .space = query->space, .k = LIKED, .vector = query->vector };
  const struct query *queries = &liked;
  struct answer answer;

  bench_check(searcher_search(b->judge, 0, &b->exact, &queries, 1, &answer));
  for (size_t i = 0; i < answer.n_hits && i < query->n_exclude; i++)
    query->exclude[i] = span_of(b->keys[bench_item_of(answer.hits[i].key)], BENCH_KEY_BYTES);
}

/* Make the excluded keys those that a known user has seen. */
static void make_seen(struct bench *b, struct query *query)
{
  struct key_set *seen;

  bench_check(region_array(&b->region, 1, sizeof *seen, &seen));
  bench_check(key_set_init(engine_key_hash(b->engine.engine), query->exclude, query->n_exclude, &b->region, seen));
  query->seen = seen;
  query->n_exclude = 0;
}

/* Each query excludes items of its own. */
static void set_excluded(struct bench *b, size_t q, struct query *query)
{
  size_t n = b->limits.n_excluded, step = b->subject->items / n;

  bench_check(region_array(&b->region, n, sizeof *query->exclude, &query->exclude));
  for (size_t i = 0; i < n; i++) /* no order that the memory has */
    query->exclude[i] = span_of(b->keys[(i * 7919 % n * step + q) % b->subject->items], BENCH_KEY_BYTES);
  query->n_exclude = n;
  if (b->limits.is_liked)
    exclude_liked(b, query);
  if (b->limits.is_seen)
    make_seen(b, query);
}

static void set_boosts(struct bench *b, struct query *query)
{
  const struct boosting *from = b->limits.boosting;
  struct boost *boosts;
  size_t n = 0;

  bench_check(region_array(&b->region, QUERY_BOOSTS_MAX, sizeof *boosts, &boosts));
  if (from->lot > 0)
    boosts[n++] = (struct boost){ .weight = from->lot, .attribute = attributes[LOT].name };
  if (from->published > 0)
    boosts[n++] = (struct boost){ .weight = from->published,
                                  .attribute = attributes[PUBLISHED].name,
                                  .half_life_ms = HALF_LIFE_DAYS * DAY_MS };
  if (from->few > 0)
    boosts[n++] = (struct boost){ .weight = from->few, .filter = span_of_str("lot >= 0.99") };
  for (size_t i = 0; i < n; i++)
    boosts[i].weight *= b->spread;
  query->boosts = boosts;
  query->n_boosts = n;
  query->now_unix_ms = NOW_MS;
  bench_check(engine_check_filter(b->engine.engine, query, &b->region));
}

static void prepare(void *self, size_t round)
{
  struct bench *b = self;
  const struct subject *s = b->subject;

  round %= QUERIES / b->batch;
  if (b->round == round)
    return;
  b->round = round;
  region_reset(&b->region);
  for (size_t q = 0; q < b->batch; q++) {
    const float *vector = s->queries + (b->round * b->batch + q) * s->dim;
    b->queries[q] = (struct query){ .space = span_of_str("bench"), .k = s->k, .vector = { vector, s->dim } };
    b->queries[q].max_per = b->limits.max_per;
    b->queries[q].mmr = (struct mmr){ .diversity = b->limits.candidates ? 0.3 : 0, .candidates = b->limits.candidates };
    set_filter(b, q, &b->queries[q]);
    if (b->limits.boosting)
      set_boosts(b, &b->queries[q]);
    if (b->limits.n_reaching)
      set_min_score(b, &b->queries[q]);
    if (b->limits.n_excluded > 0)
      set_excluded(b, q, &b->queries[q]);
  }
}

static void search(struct bench *b, struct searcher *searcher, const struct method *method, struct answer *answers)
{
  const struct query *queries[BENCH_BATCH_MAX];

  for (size_t q = 0; q < b->batch; q++)
    queries[q] = &b->queries[q];
  bench_check(searcher_search(searcher, 0, method, queries, b->batch, answers));
}

static void run(void *self, size_t round)
{
  struct bench *b = self;

  (void)round;
  search(b, b->engine.searcher, &b->exact, b->answers);
}

/* Judging -------------------- */

/* Does the filter admit the item, if its bounds are moved outwards by `slack`? */
static bool is_in_filter(const struct bench *b, size_t q, size_t item, double slack)
{
  double lot = (double)b->lot[item], low = b->lows[q];

  return b->limits.share == 1 || (lot >= low - slack && lot < low + b->limits.share + slack);
}

static bool is_admitted(const struct bench *b, size_t q, uint32_t item)
{
  const struct query *query = &b->queries[q];
  const struct span *keys = query->seen ? query->seen->keys : query->exclude;

  for (size_t i = 0; i < b->limits.n_excluded; i++) {
    if (bench_item_of(keys[i]) == item)
      return false;
  }
  return is_in_filter(b, q, item, 1e-9);
}

static void collect(void *self, struct found *found)
{
  struct bench *b = self;
  struct engine_racer racer = { .batch = b->batch };

  memcpy(racer.answers, b->answers, b->batch * sizeof *b->answers);
  engine_racer_collect(&racer, found);
  for (size_t q = 0; q < b->batch; q++) {
    for (size_t i = 0; i < found[q].n; i++) {
      if (!is_admitted(b, q, found[q].ids[i]))
        bench_fail("%s, query %zu: hit %u is not admitted", b->subject->name, q, found[q].ids[i]);
    }
  }
}

static void find_truth(struct bench *b)
{
  static struct answer answers[BENCH_BATCH_MAX];

  for (size_t q = 0; q < b->batch; q++)
    b->queries[q].k++;
  search(b, b->judge, &b->brute_force, answers);
  for (size_t q = 0; q < b->batch; q++) {
    struct truth *truth = &b->truth[b->round * b->batch + q];
    b->queries[q].k--;
    truth->n = answers[q].n_hits;
    truth->tolerance = b->subject->tolerance;
    for (size_t i = 0; i < truth->n; i++) {
      truth->ids[i] = bench_item_of(answers[q].hits[i].key);
      truth->scores[i] = (double)answers[q].hits[i].score;
    }
  }
  b->has_truth[b->round] = true;
}

static const struct truth *truth_of(void *context, size_t round)
{
  struct bench *b = context;

  prepare(b, round);
  if (!b->has_truth[b->round])
    find_truth(b);
  return &b->truth[b->round * b->batch];
}

static double score_of(void *context, size_t round, size_t query, uint32_t item)
{
  struct bench *b = context;
  const struct truth *truth = &b->truth[(round * b->batch + query) % QUERIES];

  for (size_t i = 0; i < truth->n; i++) {
    if (truth->ids[i] == item)
      return truth->scores[i];
  }
  return -INFINITY;
}

/* Races -------------------- */

/* All rounds of a race have the same filters, so peers are told them once. */
static void tell_peers(struct bench *b)
{
  size_t n_filters = n_filters_of(b), n_items = b->subject->items;
  uint8_t *is_absent;

  prepare(b, 0);
  bench_check(mem_array(n_filters, n_items, &is_absent));
  for (size_t f = 0; f < n_filters; f++)
    for (size_t i = 0; i < n_items; i++)
      is_absent[f * n_items + i] = !is_in_filter(b, f, i, 0);
  peer_write_filters(&b->options, is_absent, n_filters, n_items);
  mem_free(&is_absent);
}

static void name_variant(const struct bench *b, size_t bytes, char *out)
{
  struct limits l = b->limits;
  const char *name = b->subject->name;

  if (l.boosting)
    snprintf(out, bytes, "%s, boosts: %s", name, l.boosting->name);
  else if (l.max_per.n)
    snprintf(out, bytes, "%s, %u of a %.*s", name, l.max_per.n, (int)l.max_per.attribute.n, l.max_per.attribute.p);
  else if (l.candidates)
    snprintf(out, bytes, "%s, mmr of %u", name, l.candidates);
  else if (l.n_reaching)
    snprintf(out, bytes, "%s, %u of %u reach it", name, l.n_reaching, LARGE_K);
  else if (l.n_excluded)
    snprintf(out, bytes, "%s, %zu %s%s", name, l.n_excluded, l.is_liked ? "liked " : "",
             l.is_seen ? "seen" : "excluded");
  else if (l.n_filters)
    snprintf(out, bytes, "%s, %g %%, %zu filters", name, 100 * l.share, l.n_filters);
  else
    snprintf(out, bytes, "%s, %g %%", name, 100 * l.share);
}

/* Hits of mmr are not the k best, which the race would judge. Those of one batch are compared with what brute force
 * chooses. */
static void check_chosen(struct bench *b)
{
  static struct answer answers[BENCH_BATCH_MAX];

  prepare(b, 0);
  run(b, 0);
  search(b, b->judge, &b->brute_force, answers);
  for (size_t q = 0; q < b->batch; q++) {
    if (b->answers[q].n_hits != answers[q].n_hits)
      bench_fail("%s, query %zu: %zu hits, not %zu", b->subject->name, q, b->answers[q].n_hits, answers[q].n_hits);
    for (size_t i = 0; i < answers[q].n_hits && i < b->answers[q].n_hits; i++) {
      if (!span_equal(b->answers[q].hits[i].key, answers[q].hits[i].key))
        bench_fail("%s, query %zu: hit %zu of mmr is not that of %s", b->subject->name, q, i, b->brute_force.name);
    }
  }
}

static void race_at(struct bench *b, struct limits limits, size_t batch)
{
  AUTO(race_fini) struct race race = { 0 };
  const struct subject *s = b->subject;
  uint32_t k = limits.n_reaching ? LARGE_K : s->k;
  char variant[64];

  b->limits = limits;
  b->batch = batch;
  b->round = SIZE_MAX;
  memset(b->has_truth, 0, sizeof b->has_truth);
  bench_check(race_init(&b->options, s->items, k, batch, &race));
  bench_check(engine_racer_init(&b->engine, "exact", s->queries, QUERIES, s->dim, k, batch, &b->plain));
  name_variant(b, sizeof variant, variant);
  race.variant = variant;
  race.context = b;
  race.truth_of = truth_of;
  race.score_of = score_of;
  race_add(&race, "scalar", &b->plain, engine_racer_run, NULL); /* without a filter: ratios are to it */
  if (limits.candidates)
    check_chosen(b);
  struct racer *racer = race_add(&race, "exact", b, run, limits.candidates ? NULL : collect);
  racer->prepare = prepare;
  racer->must_be_exact = !limits.candidates;
  if (b->peer && limits.share < 1) {
    tell_peers(b);
    peer_join(b->peer, &race);
  }
  race_run(&race);
  race_report(&race);
}

static size_t at_most(size_t n, size_t most)
{
  return n < most ? n : most;
}

static void measure_spread(struct bench *b)
{
  const struct subject *s = b->subject;
  struct query query = { .space = span_of_str("bench"), .k = SPREAD_K };
  const struct query *queries = &query;
  struct answer answer = { 0 };

  b->spread = 0;
  for (size_t q = 0; q < QUERIES; q++) {
    query.vector = (struct floats){ s->queries + q * s->dim, s->dim };
    bench_check(searcher_search(b->judge, 0, &b->exact, &queries, 1, &answer));
    b->spread += (double)(answer.hits[0].score - answer.hits[answer.n_hits - 1].score) / QUERIES;
  }
}

static void race_all(struct bench *b)
{
  size_t batch = b->subject->batch, tenth = b->subject->items / 10;

  measure_spread(b);
  for (size_t i = 0; i < BOOSTINGS; i++)
    race_at(b, (struct limits){ .share = 1, .boosting = &boostings[i] }, batch);
  race_at(b, (struct limits){ .share = 1, .n_excluded = at_most(10000, tenth) }, BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 1, .n_excluded = at_most(10000, tenth), .is_seen = true }, BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 1, .n_excluded = at_most(10000, tenth), .is_seen = true, .is_liked = true },
          BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 1, .n_excluded = at_most(100000, tenth) }, 1);
  for (uint32_t times = 5; times <= 10; times += 5)
    race_at(b, (struct limits){ .share = 1, .candidates = times * (uint32_t)b->subject->k }, batch);
  for (uint32_t n = 10; n < LARGE_K; n *= 10)
    race_at(b, (struct limits){ .share = 1, .n_reaching = n }, batch);
  for (size_t a = MAKER; a <= KIND; a++)
    for (uint32_t n = 1; n <= 2; n++)
      race_at(b, (struct limits){ .share = 1, .max_per = { attributes[a].name, n } }, batch);
  if (b->subject->has_keys_only)
    return;
  for (size_t i = 0; i < SHARES; i++)
    race_at(b, (struct limits){ .share = shares[i] }, batch);
  race_at(b, (struct limits){ .share = 0.3, .n_filters = BENCH_BATCH_MAX }, BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 0.1, .n_filters = BENCH_BATCH_MAX }, BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 0.1, .n_filters = 4 }, BENCH_BATCH_MAX);
  race_at(b, (struct limits){ .share = 0.01, .n_filters = BENCH_BATCH_MAX }, BENCH_BATCH_MAX);
}

/* Catalogues -------------------- */

/* The kind of an item: its first code, or the signs of its first numbers. */
static int64_t kind_of(const struct bench *b, size_t item)
{
  enum { SIGNS = 6 };
  struct part part = { 0 };
  int64_t kind = 0;

  b->subject->part_of(b->subject->data, (uint32_t)item, &part);
  if (part.codes.n)
    return part.codes.p[0];
  for (size_t i = 0; i < SIGNS; i++)
    kind = 2 * kind + (part.vector.v[i] < 0);
  return kind;
}

static void draw_attributes(struct bench *b, size_t item, struct attribute_value out[ATTRIBUTES])
{
  int64_t maker = (int64_t)dice_below(&b->options.dice, b->subject->items / MAKER_ITEMS + 1);

  b->lot[item] = (float)dice_below(&b->options.dice, 1 << 24) * 0x1p-24f;
  out[LOT].value = (struct value){ .kind = VALUE_NUMBER, .number = (double)b->lot[item] };
  out[MAKER].value = (struct value){ .kind = VALUE_INTEGER, .integer = maker };
  out[PUBLISHED].value = (struct value){ .kind = VALUE_INTEGER,
                                         .integer = NOW_MS - (int64_t)dice_below(&b->options.dice, DAYS * DAY_MS) };
  out[KIND].value = (struct value){ .kind = VALUE_INTEGER, .integer = kind_of(b, item) };
  for (size_t a = 0; a < ATTRIBUTES; a++)
    out[a].name = attributes[a].name;
}

static void put_attributes(struct bench *b)
{
  static struct item_change changes[UPDATE_ITEMS];
  static struct attribute_value values[UPDATE_ITEMS][ATTRIBUTES];
  size_t n_items = b->subject->items;

  for (size_t first = 0; first < n_items; first += UPDATE_ITEMS) {
    size_t n = n_items - first < UPDATE_ITEMS ? n_items - first : UPDATE_ITEMS;
    for (size_t i = 0; i < n; i++) {
      draw_attributes(b, first + i, values[i]);
      changes[i] = (struct item_change){ .key = bench_key((uint32_t)(first + i), b->keys[first + i]),
                                         .attributes = values[i],
                                         .n_attributes = ATTRIBUTES };
    }
    bench_check(engine_apply(b->engine.engine, changes, n, NULL, 0));
  }
}

static void open_engine(struct bench *b, const char *model)
{
  struct engine_space space = { .name = "bench", .model_path = model };
  struct engine_config config = {
    .spaces = &space,
    .n_spaces = 1,
    .max_items = b->subject->items,
    .max_k = BENCH_K_MAX,
    .max_batch = BENCH_BATCH_MAX,
    .isa = isa_detect(),
    .attributes = { attributes, ATTRIBUTES },
  };

  bench_check(engine_open(&config, &b->engine.engine));
  bench_check(searcher_open(b->engine.engine, &b->engine.searcher));
  bench_check(searcher_open(b->engine.engine, &b->judge));
  bench_engine_fill(&b->engine, b->subject->items, b->subject->part_of, b->subject->data);
  put_attributes(b);
}

static void find_method(struct bench *b, const char *name, struct method *out)
{
  const struct subject *s = b->subject;
  struct engine_racer racer;

  bench_check(engine_racer_init(&b->engine, name, s->queries, 1, s->dim, s->k, 1, &racer));
  *out = racer.method;
}

static void run_subject(struct bench *b, const struct subject *subject, const char *model)
{
  b->subject = subject;
  bench_check(mem_array(subject->items, sizeof *b->lot, &b->lot));
  bench_check(mem_array(subject->items, sizeof *b->keys, &b->keys));
  open_engine(b, model);
  find_method(b, "exact", &b->exact);
  find_method(b, subject->judge, &b->brute_force);
  if (subject->has_peers)
    peer_open(&b->options, &b->peer);
  race_all(b);
  peer_close(&b->peer);
  searcher_close(&b->judge);
  bench_engine_close(&b->engine);
  mem_free(&b->lot);
  mem_free(&b->keys);
}

static bool is_wanted(const struct bench *b, const char *name)
{
  for (size_t i = 0; i < b->options.n_methods; i++) {
    if (strcmp(b->options.methods[i], name) == 0)
      return true;
  }
  return false;
}

static void run_mol(struct bench *b, size_t items)
{
  static struct mol_data data;

  mol_data_open_planted(&b->options.dice, items, QUERIES, &data);
  run_subject(b,
              &(struct subject){ "mol", items, MOL_DIM, 32, 100, data.queries, mol_data_part_of, &data, 4e-4, false,
                                 "brute_force", false },
              mol_data_write(&data, &b->options));
  mol_data_close(&data);
}

static void run_recjpq(struct bench *b, size_t items)
{
  static struct recjpq_data data;

  recjpq_data_open(&b->options.dice, items, QUERIES, &data);
  run_subject(b,
              &(struct subject){ "recjpq", items, RECJPQ_DIM, 32, 10, data.queries, recjpq_data_part_of, &data, 1e-4,
                                 true, "prune(8)", false },
              recjpq_data_write(&data, &b->options));
  recjpq_data_close(&data);
}

static void run_vectors(struct bench *b, size_t items)
{
  static struct bilinear_data data;
  struct subject subject = { "bilinear", items, BILINEAR_DIM,  1,   10, NULL, bilinear_data_part_of, &data,
                             1e-3,       false, "brute_force", true };

  bilinear_data_open(&b->options.dice, items, QUERIES, &data);
  subject.queries = data.queries;
  const char *path = bilinear_data_write(&data, &b->options); /* and the vectors, for the peers of both */
  if (is_wanted(b, "bilinear"))
    run_subject(b, &subject, path);
  subject.name = "dot";
  path = bench_path(&b->options, "model.safetensors"); /* where peers look for W, and do not find it now */
  vector_file_write_plain(path, "dot", BILINEAR_DIM);
  if (is_wanted(b, "dot"))
    run_subject(b, &subject, path);
  bilinear_data_close(&data);
}

int main(int argc, char **argv)
{
  static struct bench b;
  const struct bench_options defaults = {
    .workload = "filtered_vectors", .seconds = 2, .methods = { "recjpq", "mol", "bilinear", "dot" }, .n_methods = 4
  };

  bench_begin(argc, argv, &defaults, &b.options);
  report_begin(&b.options, "mol, bilinear and dot with filters; `scalar` is `exact` without a filter");
  size_t items = b.options.items;
  if (is_wanted(&b, "recjpq"))
    run_recjpq(&b, b.options.items = items ? items : 2194464);
  if (is_wanted(&b, "mol"))
    run_mol(&b, b.options.items = items ? items : 674044);
  if (is_wanted(&b, "bilinear") || is_wanted(&b, "dot"))
    run_vectors(&b, b.options.items = items ? items : 1000000);
  region_fini(&b.region);
  return bench_end(&b.options);
}
