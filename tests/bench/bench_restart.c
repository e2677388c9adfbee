/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench restart: how long the daemon takes from its store to a searchable catalogue, and to a generation of a model
 * that derives from another one. The store is filled first, and answers after the load must be those before it, to the
 * bit. */
#include <stdio.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/mem.h"
#include "daemon/catalogue/store_loading.h"
#include "daemon/models/model_entries.h"
#include "daemon/models/model_fill.h"
#include "engine/engine_spaces.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

enum { QUERIES = 16, K = 100, BATCH = 32768, CHUNK = 4096, KEY_BYTES = 12, N_LOADS = 3 };

/* A kind of catalogue. */
struct subject {
  const char *name;
  const char *method;
  char model[320];
  const float *queries;
  size_t dim;
  bench_part_of part_of;
  const void *data;
};

struct bench {
  struct bench_options options;
  const struct subject *subject;
  struct store *store;
};

/* Keys as long as usual ones. They are put in an order that is not theirs. */
static struct span make_key(uint32_t item, char key[KEY_BYTES + 1])
{
  snprintf(key, KEY_BYTES + 1, "item%08x", item * 2654435761u);
  return span_of((const uint8_t *)key, KEY_BYTES);
}

static size_t make_changes(const struct bench *b, size_t begin, struct item_change *changes, struct part *parts,
                           char (*keys)[KEY_BYTES + 1])
{
  size_t n = b->options.items - begin < BATCH ? b->options.items - begin : BATCH;

  for (size_t i = 0; i < n; i++) {
    parts[i] = (struct part){ .space = span_of_str("bench") };
    b->subject->part_of(b->subject->data, (uint32_t)(begin + i), &parts[i]);
    changes[i] = (struct item_change){
      .key = make_key((uint32_t)(begin + i), keys[i]),
      .parts = &parts[i],
      .n_parts = 1,
      .offset = (int64_t)(begin + i),
    };
  }
  return n;
}

/* Put all items into the store, and into the engine in the usual way, by updates. Return the milliseconds of each. */
static void fill(struct bench *b, struct engine *engine, double *store_ms, double *engine_ms)
{
  static struct item_change changes[BATCH];
  static struct part parts[BATCH];
  static char keys[BATCH][KEY_BYTES + 1];

  store_set_log_partitions(b->store, 1);
  for (size_t begin = 0; begin < b->options.items; begin += BATCH) {
    size_t n = make_changes(b, begin, changes, parts, keys);
    struct store_position position = { .at = { 0, (int64_t)(begin + n) }, .last_offset = (int64_t)(begin + n) - 1 };
    double start = bench_wall_ms();
    bench_check(store_apply(b->store, changes, n, &position, 1, NULL));
    double stored = bench_wall_ms();
    for (size_t i = 0; i < n; i += CHUNK)
      bench_check(engine_apply(engine, changes + i, n - i < CHUNK ? n - i : CHUNK, NULL, 0));
    *store_ms += stored - start;
    *engine_ms += bench_wall_ms() - stored;
    bench_progress("items stored and applied", begin + n, b->options.items);
  }
}

struct kept_hit {
  char key[KEY_BYTES];
  float score;
};

/* Search all queries and keep the hits. */
static void search(struct bench *b, struct bench_engine *engine, struct kept_hit hits[QUERIES][K],
                   size_t n_hits[QUERIES])
{
  static struct engine_racer racer;

  bench_check(
      engine_racer_init(engine, b->subject->method, b->subject->queries, QUERIES, b->subject->dim, K, 1, &racer));
  for (size_t q = 0; q < QUERIES; q++) {
    engine_racer_search(&racer, q);
    n_hits[q] = racer.answers[0].n_hits;
    for (size_t h = 0; h < n_hits[q]; h++) {
      memcpy(hits[q][h].key, racer.answers[0].hits[h].key.p, KEY_BYTES);
      hits[q][h].score = racer.answers[0].hits[h].score;
    }
  }
}

/* Both arenas must give the answers that there were before. A change without effect brings the other one to the front.
 */
static void compare(struct bench *b, struct bench_engine *engine, struct kept_hit before[QUERIES][K],
                    const size_t n_before[QUERIES])
{
  static struct kept_hit hits[QUERIES][K];
  size_t n_hits[QUERIES];

  for (int arena = 0; arena < 2; arena++) {
    search(b, engine, hits, n_hits);
    for (size_t q = 0; q < QUERIES; q++) {
      if (n_hits[q] != n_before[q] || memcmp(hits[q], before[q], n_hits[q] * sizeof hits[q][0]) != 0)
        bench_fail("%s: query %zu has other hits after the load", b->subject->name, q);
    }
    bench_check(engine_apply(engine->engine, NULL, 0, NULL, 0));
  }
}

static struct bench_row make_row(const struct bench *b, const char *variant, double ms, size_t threads, bool is_exact)
{
  return (struct bench_row){
    .method = b->subject->name,
    .variant = variant,
    .items = b->options.items,
    .threads = threads,
    .n_runs = 1,
    .median_ms = ms,
    .p95_ms = ms,
    .recall = is_exact,
    .verdict = is_exact ? VERDICT_EXACT : VERDICT_UNCHECKED,
    .items_per_s = (double)b->options.items / ms * 1e3,
  };
}

static void open_engine(struct bench *b, struct bench_engine *out)
{
  bench_check(bench_engine_open(b->subject->model, b->options.items, K, 1, isa_detect(), out));
}

static struct bench_row load(struct bench *b, const char *variant, size_t n_threads, struct kept_hit before[QUERIES][K],
                             const size_t n_before[QUERIES])
{
  struct bench_engine engine = { 0 };
  double ms[N_LOADS];

  for (size_t i = 0; i < N_LOADS; i++) {
    open_engine(b, &engine);
    struct store_loading loading = { .store = b->store, .engine = engine.engine, .n_threads = n_threads };
    double start = bench_wall_ms();
    bench_check(store_loading_run(&loading));
    ms[i] = bench_wall_ms() - start;
    if (i == 0)
      compare(b, &engine, before, n_before);
    bench_engine_close(&engine);
    bench_progress(variant, i + 1, N_LOADS);
  }
  return make_row(b, variant, bench_quantile(ms, N_LOADS, 0.5), n_threads, true);
}

static void add_derived(struct bench *b, struct engine *engine)
{
  struct engine_space space = { .name = "bench", .model_path = b->subject->model, .generation = 2, .parts_of = 1 };
  struct engine_model *model = NULL;

  bench_check(engine_load_model(&space, &model));
  bench_check(engine_add_space(engine, &model));
}

/* Take the steps that the daemon takes. Return the milliseconds. */
static double fill_derived(const struct bench *b, struct engine *engine, struct model_entry *entry)
{
  AUTO(region_fini) struct region region = { 0 };
  size_t n = FILL_ITEMS_MIN;
  double start = bench_wall_ms();

  while (!entry->walk.is_over) {
    double begin = bench_wall_ms();
    bench_check(model_fill_step(entry, engine, b->store, n, &region));
    n = model_fill_pace(n, FILL_ITEMS_MAX, (int64_t)(bench_wall_ms() - begin));
    bench_progress("items derived", entry->n_filled, b->options.items);
  }
  return bench_wall_ms() - start;
}

/* Fill a generation that uses the parts of the first one. Its model is the same one, so its answers are too. */
static struct bench_row derive(struct bench *b, struct kept_hit before[QUERIES][K], const size_t n_before[QUERIES])
{
  struct model_entries entries = { 0 };
  struct model_entry *entry;
  struct bench_engine engine = { 0 };

  open_engine(b, &engine);
  struct store_loading loading = { .store = b->store, .engine = engine.engine, .n_threads = cores_available() };
  bench_check(store_loading_run(&loading));
  add_derived(b, engine.engine);
  bench_check(model_entries_add(&entries, 0, span_of_str("bench"), 2, &entry));
  model_entry_set_root(entry, 1);
  double ms = fill_derived(b, engine.engine, entry);
  bench_check(engine_set_current(engine.engine, span_of_str("bench"), 2));
  compare(b, &engine, before, n_before);
  model_entries_fini(&entries);
  bench_engine_close(&engine);
  return make_row(b, "a derived generation, step by step", ms, 1, true);
}

static void run_subject(const struct bench_options *options, const struct subject *subject)
{
  static struct bench b;
  static struct kept_hit before[QUERIES][K];
  size_t n_before[QUERIES];
  struct bench_engine engine = { 0 };
  double store_ms = 0, engine_ms = 0;
  char store_path[320];
  struct bench_row rows[5];

  b = (struct bench){ .options = *options, .subject = subject };
  snprintf(store_path, sizeof store_path, "%s/%s-store", options->dir, subject->name);
  bench_check(store_open(store_path, &b.store));
  open_engine(&b, &engine);
  fill(&b, engine.engine, &store_ms, &engine_ms);
  search(&b, &engine, before, n_before);
  bench_engine_close(&engine);
  rows[0] = make_row(&b, "into the store", store_ms, 1, false);
  rows[1] = make_row(&b, "into both arenas, batch by batch", engine_ms, 1, false);
  rows[2] = load(&b, "from the store, 1 thread", 1, before, n_before);
  rows[3] = load(&b, "from the store, all processors", cores_available(), before, n_before);
  rows[4] = derive(&b, before, n_before);
  report_rows(options, rows, 5);
  store_close(&b.store);
}

/* A MoL item as a producer sends it that runs the item network itself: components and gate. Their values do not matter
 * for the time. */
static void ready_made_part_of(const void *context, uint32_t item, struct part *part)
{
  static const size_t n_components = MOL_COMPONENTS * MOL_COMPONENT_DIM;
  const struct mol_data *data = context;
  size_t start = (size_t)item * MOL_DIM % ((data->n_items - 8) * MOL_DIM);

  part->components = (struct floats){ data->items + start, n_components };
  part->item_gate = (struct floats){ data->items + start, MOL_LOGITS };
}

static void run_recjpq(struct bench_options *options)
{
  struct recjpq_data codes;

  options->items = options->items ? options->items : 2194464;
  recjpq_data_open(&options->dice, options->items, QUERIES, &codes);
  struct subject subject = { "recjpq", "exact", "", codes.queries, RECJPQ_DIM, recjpq_data_part_of, &codes };
  snprintf(subject.model, sizeof subject.model, "%s", recjpq_data_write(&codes, options));
  run_subject(options, &subject);
  recjpq_data_close(&codes);
}

static void run_mol(struct bench_options *options, const char *name, bench_part_of part_of)
{
  struct mol_data vectors;

  options->items = options->items ? options->items : 674044;
  mol_data_open(&options->dice, options->items, QUERIES, &vectors);
  struct subject subject = { name, "average(4000)", "", vectors.queries, MOL_DIM, part_of, &vectors };
  snprintf(subject.model, sizeof subject.model, "%s", mol_data_write(&vectors, options));
  run_subject(options, &subject);
  mol_data_close(&vectors);
}

static bool is_wanted(const struct bench_options *options, const char *name)
{
  for (size_t i = 0; i < options->n_methods; i++) {
    if (strcmp(options->methods[i], name) == 0)
      return true;
  }
  return options->n_methods == 0;
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "restart", .items = 0 };
  struct bench_options options;

  bench_begin(argc, argv, &defaults, &options);
  report_begin(&options, "From the store to a searchable catalogue (wall time)");
  size_t items = options.items;
  if (is_wanted(&options, "recjpq"))
    run_recjpq(&options);
  options.items = items;
  if (is_wanted(&options, "mol"))
    run_mol(&options, "mol", mol_data_part_of);
  options.items = items;
  if (is_wanted(&options, "ready-made"))
    run_mol(&options, "ready-made", ready_made_part_of);
  return bench_end(&options);
}
