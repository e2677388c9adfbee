/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench filters: how long one core evaluates a filter to words over the whole catalogue, and how many updates of
 * attributes alone it applies to both arenas in a second. Sampled slots are compared with the reference evaluation. */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "engine/attributes/attribute_selection.h"
#include "engine/engine_state.h"
#include "tests/bench/bench_clock.h"
#include "tests/bench/bench_report.h"
#include "tests/support/attribute_get.h"
#include "tests/support/filter_matches.h"
#include "tests/support/vector_file.h"

enum { ATTRIBUTES = 8, BATCH = 1000, RUNS_MAX = 2000, SAMPLES = 20000, KEY_BYTES = 16, TEXT_BYTES = 12, TAGS = 3 };
enum { COUNTRY, SECTION, TAG_SET, IS_AVAILABLE, PRICE, YEAR, ADDED, SELLER };

/* A pass over this much memory takes the columns out of the cache. */
enum { FLUSH_BYTES = 64 << 20 };

struct filter_case {
  const char *name;
  const char *filter;
  double target_ms;
};

static const struct filter_case cases[] = {
  { "bitmaps, 3 clauses", "country = 'c1' and available = true and tags has 't0'", 0.1 },
  { "a rare text", "section = 's900'", 0 },
  { "100 texts", NULL, 0 },
  { "ranges, 3 clauses", "price < 20 and year between 1990 and 1999 and added >= '2026-03-01T00:00:00Z'", 0.5 },
  { "range, 1 clause", "price < 20", 0 },
  { "100 integers", NULL, 0 },
  { "mixed, 4 clauses",
    "(country = 'c1' or country = 'c2') and available = true and price < 20 and not (tags has 't1')", 0 },
};

enum { CASES = sizeof cases / sizeof cases[0], ROWS = 2 * CASES + 1 };

struct bench {
  struct bench_options options;
  struct attribute attributes[ATTRIBUTES];
  struct engine_space space;
  struct engine *engine;
  struct region region;
  uint64_t *words;
  uint8_t *flushed;
  double times[RUNS_MAX];
  char names[ROWS][64];
  struct bench_row rows[ROWS];
  size_t n_rows;
};

/* The catalogue -------------------- */

static void init_attributes(struct bench *b)
{
  static const struct {
    const char *name;
    enum attribute_type type;
  } attributes[ATTRIBUTES] = {
    [COUNTRY] = { "country", ATTRIBUTE_KEYWORD }, [SECTION] = { "section", ATTRIBUTE_KEYWORD },
    [TAG_SET] = { "tags", ATTRIBUTE_KEYWORDS },   [IS_AVAILABLE] = { "available", ATTRIBUTE_BOOL },
    [PRICE] = { "price", ATTRIBUTE_NUMBER },      [YEAR] = { "year", ATTRIBUTE_INTEGER },
    [ADDED] = { "added", ATTRIBUTE_TIME },        [SELLER] = { "seller", ATTRIBUTE_INTEGER },
  };

  for (size_t i = 0; i < ATTRIBUTES; i++)
    b->attributes[i] = (struct attribute){ span_of_str(attributes[i].name), attributes[i].type };
}

/* An item and the memory that its change points to. */
struct item {
  char key[KEY_BYTES];
  char texts[2 + TAGS][TEXT_BYTES];
  struct value tags[TAGS];
  struct attribute_value values[ATTRIBUTES];
};

/* Low numbers are frequent: text 0 of n has about one in log2(n) + 1 items. */
static struct value draw_text(struct dice *d, char letter, size_t n, char out[TEXT_BYTES])
{
  double x = (double)(dice_u64(d) >> 11) * 0x1p-53;
  size_t at = (size_t)exp2(x * log2((double)n + 1)) - 1;

  snprintf(out, TEXT_BYTES, "%c%zu", letter, at < n ? at : n - 1);
  return (struct value){ VALUE_TEXT, .text = span_of_str(out) };
}

static struct value integer(int64_t n)
{
  return (struct value){ VALUE_INTEGER, .integer = n };
}

static struct value draw_tags(struct dice *d, struct item *item)
{
  size_t n = 0;

  for (size_t i = 0; i < TAGS; i++) {
    item->tags[n] = draw_text(d, 't', 500, item->texts[2 + i]);
    bool is_new = true;
    for (size_t j = 0; j < n; j++)
      is_new &= !span_equal(item->tags[j].text, item->tags[n].text);
    n += is_new;
  }
  return (struct value){ VALUE_LIST, .list = { item->tags, n } };
}

static struct value draw_value(struct dice *d, size_t attribute, struct item *item)
{
  switch (attribute) {
  case COUNTRY:
    return draw_text(d, 'c', 30, item->texts[0]);
  case SECTION:
    return draw_text(d, 's', 1000, item->texts[1]);
  case TAG_SET:
    return draw_tags(d, item);
  case IS_AVAILABLE:
    return (struct value){ VALUE_BOOL, .is_true = dice_below(d, 4) > 0 };
  case PRICE:
    return (struct value){ VALUE_NUMBER, .number = floor(exp2(10.0 * (double)dice_below(d, 1000) / 1000) * 100) / 100 };
  case YEAR:
    return integer((int64_t)(1950 + dice_below(d, 76)));
  case ADDED:
    return integer((int64_t)(1700000000000 + dice_below(d, 90000000) * 1000));
  default:
    return integer((int64_t)dice_below(d, 100000));
  }
}

static struct span key_of(size_t i, struct item *item)
{
  return span_of(item->key, (size_t)snprintf(item->key, KEY_BYTES, "%zu", i));
}

static struct item_change change_of(struct bench *b, size_t i, struct item *item)
{
  struct item_change change = { .key = key_of(i, item), .attributes = item->values, .n_attributes = ATTRIBUTES };

  for (size_t a = 0; a < ATTRIBUTES; a++)
    item->values[a] = (struct attribute_value){ b->attributes[a].name, draw_value(&b->options.dice, a, item) };
  return change;
}

static void open_engine(struct bench *b)
{
  struct engine_config config = { .spaces = &b->space,
                                  .n_spaces = 1,
                                  .max_items = b->options.items,
                                  .max_k = 10,
                                  .max_batch = 1,
                                  .isa = isa_detect(),
                                  .attributes = { b->attributes, ATTRIBUTES } };
  static char path[300];

  init_attributes(b);
  snprintf(path, sizeof path, "%s", bench_path(&b->options, "dot.safetensors"));
  vector_file_write_plain(path, "dot", 1);
  b->space = (struct engine_space){ .name = "bench", .model_path = path };
  bench_check(engine_open(&config, &b->engine));
}

static void fill(struct bench *b)
{
  static struct item items[BATCH];
  static struct item_change changes[BATCH];

  for (size_t done = 0; done < b->options.items;) {
    size_t n = b->options.items - done < BATCH ? b->options.items - done : (size_t)BATCH;
    for (size_t i = 0; i < n; i++)
      changes[i] = change_of(b, done + i, &items[i]);
    bench_check(engine_apply(b->engine, changes, n, NULL, 0));
    done += n;
    bench_progress("items", done, b->options.items);
  }
}

static const struct arena *front(const struct bench *b)
{
  return pair_front(b->engine->pair);
}

/* Filters -------------------- */

/* The filters that have a long list. */
static const char *long_filter(const struct filter_case *c)
{
  static char text[4096];
  bool is_texts = c->name == cases[2].name;
  size_t n = (size_t)snprintf(text, sizeof text, "%s in (", is_texts ? "section" : "seller");

  for (int i = 0; i < 100; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, is_texts ? "%s's%d'" : "%s%d", i ? ", " : "", 900 + 7 * i);
  snprintf(text + n, sizeof text - n, ")");
  return text;
}

static void check_sample(struct bench *b, const struct filter_case *c, const struct filter_node *filter)
{
  struct value values[ATTRIBUTES];
  const struct arena *a = front(b);

  for (size_t i = 0; i < SAMPLES; i++) {
    uint32_t slot = (uint32_t)dice_below(&b->options.dice, a->n_slots);
    struct region_mark mark = region_mark(&b->region);
    for (size_t j = 0; j < ATTRIBUTES; j++)
      bench_check(attribute_get(a->attributes, slot, j, &b->region, &values[j]));
    if (filter_matches(filter, values) != bits_get(b->words, slot))
      bench_fail("%s: slot %u is wrong", c->name, slot);
    region_rewind(&b->region, mark);
  }
}

static void run_case(struct bench *b, const struct filter_case *c, bool is_cold)
{
  struct attributes attributes = { b->attributes, ATTRIBUTES };
  const struct filter_node *filter;
  size_t n = 0, n_words = bits_words(front(b)->n_slots);
  double end = bench_wall_ms() + 1e3 * b->options.seconds;

  region_reset(&b->region);
  bench_check(
      filter_parse(span_of_str(c->filter ? c->filter : long_filter(c)), NULL, 0, &attributes, &b->region, &filter));
  while (n < RUNS_MAX && (n == 0 || bench_wall_ms() < end)) {
    if (is_cold)
      memset(b->flushed, (int)n, FLUSH_BYTES);
    double start = bench_cpu_ms();
    bench_check(attribute_columns_select(front(b)->attributes, filter, 0, n_words, b->words, &b->region));
    b->times[n++] = bench_cpu_ms() - start;
  }
  check_sample(b, c, filter);
  snprintf(b->names[b->n_rows], sizeof b->names[0], "%s (%.2g %%)", c->name,
           100.0 * (double)bits_count(b->words, n_words) / (double)front(b)->n_slots);
  b->rows[b->n_rows] = (struct bench_row){ .method = b->names[b->n_rows],
                                           .variant = is_cold ? "cold" : "warm",
                                           .items = b->options.items,
                                           .k = 1,
                                           .batch = 1,
                                           .threads = 1,
                                           .n_runs = n,
                                           .median_ms = bench_quantile(b->times, n, 0.5),
                                           .p95_ms = bench_quantile(b->times, n, 0.95),
                                           .target_ms = c->target_ms,
                                           .verdict = VERDICT_EXACT };
  b->n_rows++;
}

/* Updates -------------------- */

/* Change price and availability of random items. A batch is what a publish interval may hold. */
static void run_updates(struct bench *b)
{
  static struct item items[BATCH];
  static struct item_change changes[BATCH];
  static const size_t changed[2] = { PRICE, IS_AVAILABLE };
  double end = bench_wall_ms() + 1e3 * b->options.seconds;
  size_t n = 0;

  while (n < RUNS_MAX && (n == 0 || bench_wall_ms() < end)) {
    for (size_t i = 0; i < BATCH; i++) {
      changes[i] = (struct item_change){ .key = key_of(dice_below(&b->options.dice, b->options.items), &items[i]),
                                         .attributes = items[i].values,
                                         .n_attributes = 2 };
      for (size_t j = 0; j < 2; j++)
        items[i].values[j] = (struct attribute_value){ b->attributes[changed[j]].name,
                                                       draw_value(&b->options.dice, changed[j], &items[i]) };
    }
    double start = bench_cpu_ms();
    bench_check(engine_apply(b->engine, changes, BATCH, NULL, 0));
    b->times[n++] = bench_cpu_ms() - start;
  }
  b->rows[b->n_rows++] = (struct bench_row){ .method = "updates of two attributes, a batch",
                                             .items = b->options.items,
                                             .k = 1,
                                             .batch = BATCH,
                                             .threads = 1,
                                             .n_runs = n,
                                             .median_ms = bench_quantile(b->times, n, 0.5),
                                             .p95_ms = bench_quantile(b->times, n, 0.95),
                                             .target_ms = BATCH / 500.0,
                                             .items_per_s = 1e3 * BATCH / bench_quantile(b->times, n, 0.5) };
}

int main(int argc, char **argv)
{
  static struct bench b;

  const struct bench_options defaults = { .workload = "filters", .items = 2200000, .seconds = 0.5 };

  bench_begin(argc, argv, &defaults, &b.options);
  bench_check(mem_array(bits_words(b.options.items), sizeof *b.words, &b.words));
  bench_check(mem_array(FLUSH_BYTES, 1, &b.flushed));
  open_engine(&b);
  fill(&b);
  report_begin(&b.options, "Filters over a catalogue, to words");
  for (size_t i = 0; i < CASES; i++) {
    run_case(&b, &cases[i], false);
    run_case(&b, &cases[i], true);
  }
  run_updates(&b);
  report_rows(&b.options, b.rows, b.n_rows);
  engine_close(&b.engine);
  region_fini(&b.region);
  mem_free(&b.flushed);
  mem_free(&b.words);
  return bench_end(&b.options);
}
