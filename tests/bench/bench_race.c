/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a race: the order of the racers, what is timed, and how answers are judged. */
#include "tests/bench/bench_race.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/bench/bench_clock.h"

/* Before a short run, the same method runs untimed for WARMING_MS. So it finds the caches as a stream of its own
 * searches leaves them, and not as another method does. */
static const double SHORT_MS = 60, WARMING_MS = 10;

enum { LEAST_RUNS = 2 };

err_t race_init(const struct bench_options *options, size_t items, size_t k, size_t batch, struct race *out)
{
  *out = (struct race){ .options = options, .items = items, .k = k, .batch = batch, .max_rounds = RACE_ROUNDS_MAX };
  return mem_array(RACERS_MAX, sizeof *out->racers, &out->racers);
}

void race_fini(struct race *race)
{
  mem_free(&race->racers);
}

struct racer *race_add(struct race *race, const char *name, void *self, void (*run)(void *, size_t),
                       void (*collect)(void *, struct found *))
{
  if (race->n_racers == RACERS_MAX) {
    fprintf(stderr, "bench: error: more than %d methods\n", (int)RACERS_MAX);
    exit(1);
  }
  struct racer *racer = &race->racers[race->n_racers++];

  snprintf(racer->name, sizeof racer->name, "%s", name);
  racer->self = self;
  racer->run = run;
  racer->collect = collect;
  return racer;
}

/* Judging -------------------- */

static bool has_id(const uint32_t *ids, size_t n, uint32_t id)
{
  for (size_t i = 0; i < n; i++) {
    if (ids[i] == id)
      return true;
  }
  return false;
}

/* Find the first of the K + 1 best that is not a hit: no item outside the hits scores higher. */
static double best_left_out(const struct truth *truth, const struct found *found)
{
  for (size_t i = 0; i < truth->n; i++) {
    if (!has_id(found->ids, found->n, truth->ids[i]))
      return truth->scores[i];
  }
  return -INFINITY;
}

static double recall_of(const struct truth *truth, const struct found *found, size_t k)
{
  size_t n_truth = k < truth->n ? k : truth->n, n_hit = 0;

  for (size_t i = 0; i < n_truth; i++)
    n_hit += has_id(found->ids, found->n, truth->ids[i]);
  return n_truth ? (double)n_hit / (double)n_truth : 1;
}

/* Are the hits the K best, in order, up to the tolerance? */
static bool check_exact(const struct race *race, size_t round, size_t query, const struct truth *truth,
                        const struct found *found)
{
  size_t n = race->k < truth->n ? race->k : truth->n;

  if (found->n != n)
    return false;
  for (size_t i = 0; i < n; i++) {
    double score = race->score_of(race->context, round, query, found->ids[i]);
    if (has_id(found->ids, i, found->ids[i]) || fabs(score - truth->scores[i]) > 2 * truth->tolerance)
      return false;
  }
  /* A filter may admit nothing: then no hit is the exact answer. */
  return n == 0 || best_left_out(truth, found) <= truth->scores[n - 1] + truth->tolerance;
}

/* Check what every method must deliver: correct scores and a receipt that is true. */
static bool check_receipt(const struct race *race, size_t round, size_t query, const struct truth *truth,
                          const struct found *found)
{
  for (size_t i = 0; found->has_scores && i < found->n; i++) {
    double score = race->score_of(race->context, round, query, found->ids[i]);
    if (!(fabs(score - (double)found->scores[i]) <= truth->tolerance))
      return false;
  }
  if (found->receipt.is_exact && !check_exact(race, round, query, truth, found))
    return false;
  double left_out = best_left_out(truth, found);
  return left_out == -INFINITY ||
         (found->receipt.has_bound && left_out <= (double)found->receipt.bound + truth->tolerance);
}

static void judge(struct race *race, struct racer *racer, size_t round)
{
  static struct found found[BENCH_BATCH_MAX];
  const struct truth *truth = race->truth_of(race->context, round);

  racer->collect(racer->self, found);
  for (size_t q = 0; q < race->batch; q++) {
    bool is_exact = check_exact(race, round, q, &truth[q], &found[q]);
    bool is_kept = !found[q].has_receipt || check_receipt(race, round, q, &truth[q], &found[q]);
    if ((racer->must_be_exact && !is_exact) || !is_kept)
      bench_fail("%s, round %zu, query %zu: %s", racer->name, round, q,
                 is_kept ? "not the K best" : "the receipt or a score is wrong");
    racer->was_wrong |= !is_exact;
    racer->sum_recall += recall_of(&truth[q], &found[q], race->k);
    racer->sum_scored += (double)found[q].n_scored;
    racer->n_judged++;
  }
}

/* Running -------------------- */

static void run_untimed(struct racer *racer, size_t round)
{
  if (racer->prepare)
    racer->prepare(racer->self, round);
  racer->run(racer->self, round);
}

static void warm(struct racer *racer, size_t round)
{
  double begin = bench_wall_ms(), end = begin + WARMING_MS;

  do
    run_untimed(racer, round++);
  while (bench_wall_ms() < end);
  racer->warmed_ms += bench_wall_ms() - begin;
}

static void run_timed(struct racer *racer, size_t round)
{
  double scale = racer->scale > 0 ? racer->scale : 1;

  if (racer->prepare)
    racer->prepare(racer->self, round);
  double wall = bench_wall_ms(), cpu = bench_cpu_ms();
  racer->run(racer->self, round);
  cpu = bench_cpu_ms() - cpu;
  wall = bench_wall_ms() - wall;
  if (racer->told)
    racer->told(racer->self, &wall, &cpu);
  racer->wall[racer->n] = wall * scale;
  racer->cpu[racer->n++] = cpu * scale;
  racer->spent_ms += wall;
}

static bool needs_warming(const struct racer *racer)
{
  if (racer->n > 0)
    return racer->spent_ms / (double)racer->n < SHORT_MS;
  return racer->scale == 0 && !racer->is_peer;
}

static void run_once(struct race *race, struct racer *racer, size_t round)
{
  if (needs_warming(racer))
    warm(racer, round + 1);
  run_timed(racer, round);
  if (race->truth_of && racer->collect)
    judge(race, racer, round);
}

static bool is_done(const struct race *race, const struct racer *racer)
{
  double spent_ms = racer->spent_ms + racer->warmed_ms;

  return racer->n >= race->max_rounds || (racer->n >= LEAST_RUNS && spent_ms > 1e3 * race->options->seconds);
}

void race_run(struct race *race)
{
  for (size_t round = 0, n_ran = 1; n_ran > 0; round++) {
    n_ran = 0;
    for (size_t i = 0; i < race->n_racers; i++) {
      struct racer *racer = &race->racers[(round + i) % race->n_racers];
      if (!is_done(race, racer)) {
        run_once(race, racer, round);
        n_ran++;
      }
    }
    if (n_ran && round % 10 == 9)
      bench_progress("rounds", round + 1, race->max_rounds + 1);
  }
}

/* Reporting -------------------- */

static const struct racer *find_racer(const struct race *race, const char *name)
{
  for (size_t i = 0; i < race->n_racers; i++) {
    if (strcmp(race->racers[i].name, name) == 0)
      return &race->racers[i];
  }
  return NULL;
}

/* Return the ratio of the median CPU times, over the rounds that both ran. CPU times are compared, because other load
 * stretches the wall time of long searches more than that of short ones. */
static double ratio(const struct racer *a, const struct racer *b)
{
  size_t n = !a || !b ? 0 : a->n < b->n ? a->n : b->n;

  return n ? bench_quantile(a->cpu, n, 0.5) / bench_quantile(b->cpu, n, 0.5) : 0;
}

static struct bench_row row_of(const struct race *race, const struct racer *r)
{
  double ns = 1e6 * bench_quantile(r->cpu, r->n, 0.5), n_judged = r->n_judged ? (double)r->n_judged : 1;
  struct bench_row row = {
    .method = r->name,
    .variant = race->variant,
    .items = race->items,
    .k = race->k,
    .batch = race->batch,
    .threads = 1,
    .n_runs = r->n,
    .median_ms = bench_quantile(r->wall, r->n, 0.5),
    .p95_ms = bench_quantile(r->wall, r->n, 0.95),
    .p99_ms = r->n >= 200 ? bench_quantile(r->wall, r->n, 0.99) : 0,
    .cpu_ms = ns * 1e-6,
    .cpu_p95_ms = bench_quantile(r->cpu, r->n, 0.95),
    .ratio_to_scalar = ratio(find_racer(race, "scalar"), r),
    .recall = r->sum_recall / n_judged,
    .scored = r->sum_scored / n_judged,
    .bytes_per_item = r->bytes_per_item,
  };

  row.verdict = !r->n_judged ? VERDICT_UNCHECKED : r->was_wrong ? VERDICT_NOT_EXACT : VERDICT_EXACT;
  if (race->memory_rate > 0)
    row.of_memory_limit = r->scored_bytes / race->memory_rate / ns;
  if (race->fma_rate > 0)
    row.of_fma_peak = r->fmas / race->fma_rate / ns;
  if (r->is_per_item)
    row.ns_per_item = ns / (double)(race->items * race->batch);
  if (r->is_peer && find_racer(race, r->rival)) {
    row.other = r->rival;
    row.ratio_to_other = ratio(r, find_racer(race, r->rival));
  }
  return row;
}

void race_rows(const struct race *race, struct bench_row *rows)
{
  for (size_t i = 0; i < race->n_racers; i++)
    rows[i] = row_of(race, &race->racers[i]);
}

void race_report(const struct race *race)
{
  struct bench_row rows[RACERS_MAX];

  race_rows(race, rows);
  report_rows(race->options, rows, race->n_racers);
}
