/* SPDX-License-Identifier: Apache-2.0 */
/* ops/bench memory: what the two arenas of a catalogue take, beside the formula of docs/operations.md. A child process
 * fills each catalogue, so that none finds memory of another. */
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/keys/keys.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bilinear_data.h"
#include "tests/bench/dot_data.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

enum { VECTORS = 4096, KEY_BYTES = 20, BATCH = 4096, SUBJECTS = 5 };

/* How many numbers of W's spectrum the engine sketches (choose_sketch_dim() in vector_model.c). */
enum { BILINEAR_SKETCHED = 128 };

#define MEMORY_MAX (8.0 * (1 << 30)) /* of one catalogue: what a machine of 16 GiB can spare */

/* A kind of catalogue. */
struct subject {
  const char *name;
  size_t column_bytes; /* in one arena, by the formula */
  bool has_no_cells;
  void (*run)(const struct bench_options *options, const struct subject *subject);
};

/* How the items come into the arenas: at once, as at a start and in a first fill, or by batches of updates. */
enum filling { AT_ONCE, BY_BATCHES, FILLINGS };
static const char *const filling_names[FILLINGS] = { "at once", "by batches" };

struct catalogue {
  const struct bench_options *options;
  const struct subject *subject;
  const char *model;
  bench_part_of part_of;
  const void *data;
  size_t n_data; /* items of the data; more items have their parts again */
  size_t n_items;
};

static double formula(const struct subject *subject)
{
  return 2.0 * (double)subject->column_bytes + (double)keys_bytes_per_pair(KEY_BYTES);
}

static size_t n_items_that_fit(const struct bench_options *options, const struct subject *subject)
{
  double most = MEMORY_MAX / formula(subject);

  return (double)options->items < most ? options->items : (size_t)most;
}

/* Read a line of /proc/self/status. */
static double read_bytes(const char *name)
{
  char line[128];
  double kib = 0;
  FILE *file = fopen("/proc/self/status", "re");

  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, name, strlen(name)) == 0)
      kib = strtod(line + strlen(name) + 1, NULL);
  }
  if (file)
    fclose(file);
  return kib * 1024;
}

/* Return what was freed to the system at once, as the daemon's allocator does within seconds. */
static void purge(void)
{
  char name[32];

  snprintf(name, sizeof name, "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
  mallctl(name, NULL, NULL, NULL, 0);
}

static size_t make_changes(const struct catalogue *c, size_t begin, size_t most, struct item_change *changes)
{
  static struct part parts[BATCH];
  static char keys[BATCH][KEY_BYTES + 1];
  size_t n = c->n_items - begin < most ? c->n_items - begin : most;

  for (size_t i = 0; i < n; i++) {
    parts[i] = (struct part){ .space = span_of_str("bench") };
    c->part_of(c->data, (uint32_t)((begin + i) % c->n_data), &parts[i]);
    snprintf(keys[i], sizeof keys[i], "item%016zx", begin + i);
    changes[i] = (struct item_change){ .key = span_of_str(keys[i]), .parts = &parts[i], .n_parts = 1 };
  }
  return n;
}

static err_code_t take_all(void *context, struct engine_loading *loading)
{
  AUTO(region_fini) struct region scratch = { 0 };
  static struct item_change changes[BATCH];
  const struct catalogue *c = context;

  for (size_t begin = 0; begin < c->n_items; begin += LOAD_BLOCK_SLOTS) {
    size_t n = make_changes(c, begin, LOAD_BLOCK_SLOTS, changes);
    region_reset(&scratch);
    TRY(engine_loading_put(loading, &scratch, begin, changes, n));
  }
  return ERR_OK;
}

static void apply_all(const struct catalogue *c, struct engine *engine)
{
  static struct item_change changes[BATCH];

  for (size_t begin = 0; begin < c->n_items; begin += BATCH) {
    size_t n = make_changes(c, begin, BATCH, changes);
    bench_check(engine_apply(engine, changes, n, NULL, 0));
  }
}

static void fill(struct catalogue *c, enum filling filling, struct engine *engine)
{
  if (filling == AT_ONCE)
    bench_check(engine_replace(engine, take_all, c, 1, NULL, 0));
  else
    apply_all(c, engine);
  purge();
}

static void show(const struct catalogue *c, enum filling filling, double bytes, double peak)
{
  double each = bytes / (double)c->n_items, expected = formula(c->subject);
  const char *format = "%-26s %-11s %9zu %9.3f %9.1f %9.1f %+7.1f %% %9.3f\n";

  if (c->options->format == BENCH_JSON)
    format = "{\"workload\": \"memory\", \"space\": \"%s\", \"filled\": \"%s\", \"items\": %zu, \"gb\": %.4f, "
             "\"bytes_per_item\": %.2f, \"formula\": %.0f, \"formula_error_percent\": %.2f, \"peak_gb\": %.4f}\n";
  else if (c->options->format == BENCH_MARKDOWN)
    format = "| %s | %s | %zu | %.2f | %.1f | %.0f | %+.1f %% | %.2f |\n";
  printf(format, c->subject->name, filling_names[filling], c->n_items, bytes / 1e9, each, expected,
         100 * (expected / each - 1), peak / 1e9);
  fflush(stdout);
}

static void measure(struct catalogue *c, enum filling filling)
{
  struct engine_space space = { .name = "bench", .model_path = c->model, .has_no_cells = c->subject->has_no_cells };
  struct engine_config config = {
    .spaces = &space, .n_spaces = 1, .max_items = c->n_items, .max_k = 100, .max_batch = 1, .isa = isa_detect()
  };
  struct engine *engine;

  purge();
  double before = read_bytes("RssAnon"), all_before = read_bytes("VmRSS");
  bench_check(engine_open(&config, &engine));
  fill(c, filling, engine);
  show(c, filling, read_bytes("RssAnon") - before, read_bytes("VmHWM") - all_before);
  engine_close(&engine);
}

/* Measure each filling in a process of its own. */
static void measure_all(struct catalogue *c)
{
  c->n_items = n_items_that_fit(c->options, c->subject);
  for (enum filling filling = 0; filling < FILLINGS; filling++) {
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
      measure(c, filling);
      _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      bench_fail("%s, %s: the process that fills it failed", c->subject->name, filling_names[filling]);
  }
}

static void run_recjpq(const struct bench_options *options, const struct subject *subject)
{
  size_t n = n_items_that_fit(options, subject);
  struct dice dice = { options->seed };
  struct recjpq_data data;

  recjpq_data_open(&dice, n, 1, &data);
  measure_all(
      &(struct catalogue){ options, subject, recjpq_data_write(&data, options), recjpq_data_part_of, &data, n, 0 });
  recjpq_data_close(&data);
}

static void run_mol(const struct bench_options *options, const struct subject *subject)
{
  struct dice dice = { options->seed };
  struct mol_data data;

  mol_data_open(&dice, VECTORS, 1, &data);
  measure_all(
      &(struct catalogue){ options, subject, mol_data_write(&data, options), mol_data_part_of, &data, VECTORS, 0 });
  mol_data_close(&data);
}

static void run_bilinear(const struct bench_options *options, const struct subject *subject)
{
  struct dice dice = { options->seed };
  struct bilinear_data data;

  bilinear_data_open(&dice, VECTORS, 1, &data);
  measure_all(&(struct catalogue){
      options, subject, bilinear_data_write(&data, options), bilinear_data_part_of, &data, VECTORS, 0 });
  bilinear_data_close(&data);
}

static void run_dot(const struct bench_options *options, const struct subject *subject)
{
  struct dice dice = { options->seed };
  struct dot_data data;

  dot_data_open(&dice, VECTORS, 1, &data);
  measure_all(
      &(struct catalogue){ options, subject, dot_data_write(&data, options), dot_data_part_of, &data, VECTORS, 0 });
  dot_data_close(&data);
}

static bool is_wanted(const struct bench_options *options, const char *name)
{
  for (size_t i = 0; i < options->n_methods; i++) {
    if (strcmp(options->methods[i], name) == 0)
      return true;
  }
  return options->n_methods == 0;
}

static void show_head(const struct bench_options *options)
{
  if (options->format == BENCH_TABLE)
    printf("%-26s %-11s %9s %9s %9s %9s %9s %9s\n", "space", "filled", "items", "GB", "bytes", "formula", "error",
           "peak GB");
  else if (options->format == BENCH_MARKDOWN)
    printf("| space | filled | items | GB | bytes an item | formula | its error | GB at most |\n"
           "|---|---|--:|--:|--:|--:|--:|--:|\n");
  fflush(stdout); /* children must not print it again */
}

int main(int argc, char **argv)
{
  static const struct bench_options defaults = { .workload = "memory", .items = 10000000 };
  const size_t components = (size_t)MOL_COMPONENTS * MOL_COMPONENT_DIM;
  const struct subject subjects[SUBJECTS] = {
    { "recjpq", 15 * RECJPQ_SPLITS, false, run_recjpq },
    { "recjpq, cells off", RECJPQ_SPLITS, true, run_recjpq },
    { "mol", 4 * (components + MOL_LOGITS + MOL_COMPONENT_DIM) + components + 2 * MOL_COMPONENT_DIM, false, run_mol },
    { "bilinear", 4 * BILINEAR_DIM + BILINEAR_SKETCHED + 16, false, run_bilinear },
    { "dot", 4 * DOT_DIM + 8 + DOT_DIM, false, run_dot },
  };
  struct bench_options options;

  bench_begin(argc, argv, &defaults, &options);
  show_head(&options);
  for (size_t i = 0; i < SUBJECTS; i++) {
    if (is_wanted(&options, subjects[i].name))
      subjects[i].run(&options, &subjects[i]);
  }
  return bench_end(&options);
}
