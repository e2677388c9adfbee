/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/http/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/catalogue/catalogue_status.h"
#include "daemon/http/json_put.h"

enum { WATERMARK_MAX = 4096, WINDOW_S = 60 };

static json_t *kafka_json(const struct status *s)
{
  const struct config *config = s->config;
  json_t *kafka = json_object();

  json_put_text(kafka, "bootstrap", kafka_setup_bootstrap(s->kafka));
  json_put_text(kafka, "catalogue_topic", config->catalogue.topic);
  json_put_text(kafka, "query_topic", config->query.topic);
  json_put_text(kafka, "answer_topic", config->query.answer_topic);
  json_put_text(kafka, "dead_letter_topic", config->catalogue.dead_letter_topic);
  return kafka;
}

/* positions  [WATERMARK_MAX]; those beyond are not shown */
static json_t *watermark_json(const struct engine_epoch *epoch, const struct position *positions)
{
  json_t *list = json_array();

  for (size_t i = 0; i < epoch->n_positions && i < WATERMARK_MAX; i++) {
    json_t *row = json_object();
    json_put_integer(row, "partition", positions[i].partition);
    json_put_integer(row, "next", positions[i].next);
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *spaces_json(struct status *s)
{
  json_t *list = json_array();

  for (size_t i = 0; i < engine_n_spaces(s->engine); i++) {
    struct engine_space_info info;
    json_t *row = json_object();
    engine_space_get(s->engine, i, &info);
    json_put_text(row, "name", info.name);
    json_put_text(row, "similarity", info.similarity);
    json_put_count(row, "items", info.n_items);
    json_put_count(row, "bytes_per_item", info.bytes_per_item);
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *counters_json(const struct counters *c)
{
  json_t *object = json_object();

#define COUNTERS_JSON(field, name, help) json_put_count(object, #field, counters_get(&c->field));
  COUNTERS_LIST(COUNTERS_JSON)
#undef COUNTERS_JSON
  return object;
}

static json_t *quantiles_json(const struct hist_window *w, const struct hist *h)
{
  json_t *object = json_object();

  json_put_count(object, "count", hist_window_count(w, h));
  json_put_count(object, "p50", hist_window_quantile(w, h, 0.5));
  json_put_count(object, "p95", hist_window_quantile(w, h, 0.95));
  json_put_count(object, "p99", hist_window_quantile(w, h, 0.99));
  return object;
}

/* Quantiles of the last one to two minutes, in microseconds: older durations would hide the current ones. */
static json_t *latency_json(const struct status *s)
{
  json_t *object = json_object();

#define COUNTERS_QUANTILES(field, name, prometheus, help) \
  json_put(object, name, quantiles_json(&s->windows.field, &s->counters->field));
  COUNTERS_HISTS(COUNTERS_QUANTILES)
#undef COUNTERS_QUANTILES
  return object;
}

void status_step(struct status *s)
{
  if (clock_now_ns() < s->windows_due_ns)
    return;
  if (s->windows_due_ns) {
#define COUNTERS_TURN(field, name, prometheus, help) hist_window_turn(&s->windows.field, &s->counters->field);
    COUNTERS_HISTS(COUNTERS_TURN)
#undef COUNTERS_TURN
  }
  s->windows_due_ns = clock_now_ns() + WINDOW_S * CLOCK_NS_PER_S;
}

static void put_readiness(const struct status *s, json_t *root)
{
  const char *not_ready = status_not_ready(s);

  json_put_bool(root, "ready", not_ready == NULL);
  json_put_text(root, "not_ready", not_ready);
  json_put_text(root, "phase", catalogue_phase_name(catalogue_phase(s->catalogue)));
}

static void put_backend(const struct status *s, json_t *root)
{
  size_t n_failed;
  const char *backend = engine_backend_name(s->engine, &n_failed);

  json_put_text(root, "isa", isa_name(s->isa));
  json_put_text(root, "backend", backend);
  json_put_count(root, "backends_failed", n_failed);
}

char *status_json(struct status *s)
{
  struct position positions[WATERMARK_MAX];
  struct engine_epoch epoch;
  json_t *root = json_object();

  engine_epoch_get(s->engine, &epoch, positions, WATERMARK_MAX);
  json_put_text(root, "version", SLUICE_VERSION);
  put_readiness(s, root);
  json_put_count(root, "epoch", epoch.number);
  json_put_count(root, "items", epoch.n_items);
  json_put_real(root, "uptime_s", (double)(clock_now_ns() - s->started_ns) / (double)CLOCK_NS_PER_S);
  json_put(root, "kafka", kafka_json(s));
  json_put(root, "watermark", watermark_json(&epoch, positions));
  json_put(root, "spaces", spaces_json(s));
  json_put(root, "counters", counters_json(s->counters));
  put_backend(s, root);
  json_put(root, "latency_us", latency_json(s));
  catalogue_status_json(catalogue_report_of(s->catalogue), root);
  char *text = json_dumps(root, JSON_COMPACT);
  json_decref(root);
  return text;
}

/* Bounds of buckets are powers of two in microseconds, from 64 us to 67 s: exactly where buckets of a histogram end. */
enum { BUCKETS_FROM = 6, BUCKETS_TO = 26 };

static void print_hist(FILE *out, const char *name, const char *help, const struct hist *h)
{
  struct hist_powers p;

  hist_powers_get(h, &p);
  fprintf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
  for (int i = BUCKETS_FROM; i <= BUCKETS_TO; i++)
    fprintf(out, "%s_bucket{le=\"%.6f\"} %" PRIu64 "\n", name, (double)(UINT64_C(1) << i) / 1e6, p.below[i]);
  fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.6f\n%s_count %" PRIu64 "\n", name, p.n, name,
          (double)atomic_load_explicit(&h->sum, memory_order_relaxed) / 1e6, name, p.n);
}

static void print_gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
  fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n%s %" PRIu64 "\n", name, help, name, name, value);
}

static void print_metrics(struct status *s, FILE *out)
{
  struct counters *c = s->counters;
  struct engine_epoch epoch;

  size_t n_failed;
  const char *backend = engine_backend_name(s->engine, &n_failed);

  engine_epoch_get(s->engine, &epoch, NULL, 0);
#define COUNTERS_PRINT(field, name, help) \
  fprintf(out, "# HELP %s %s\n# TYPE %s counter\n%s %" PRIu64 "\n", name, help, name, name, counters_get(&c->field));
  COUNTERS_LIST(COUNTERS_PRINT)
#undef COUNTERS_PRINT
  print_gauge(out, "sluice_ready", "1 when the catalogue has caught up and queries are read",
              status_not_ready(s) == NULL);
  print_gauge(out, "sluice_dead_letters_waiting", "Dead letters on their way that no broker has yet",
              counters_get(&c->dead_letters_waiting));
  print_gauge(out, "sluice_items", "Items in the published epoch", epoch.n_items);
  fprintf(out, "# HELP sluice_backend What is searched\n# TYPE sluice_backend gauge\nsluice_backend{name=\"%s\"} 1\n",
          backend);
  print_gauge(out, "sluice_backend_failures", "GPUs that failed, so that the processor took over", n_failed);
  fprintf(out, "# HELP sluice_catalogue_phase Where the catalogue stands\n# TYPE sluice_catalogue_phase gauge\n"
               "sluice_catalogue_phase{phase=\"%s\"} 1\n",
          catalogue_phase_word(catalogue_phase(s->catalogue)));
  catalogue_status_metrics(catalogue_report_of(s->catalogue), out);
  print_gauge(out, "sluice_epoch", "Number of the published epoch", epoch.number);
#define COUNTERS_PRINT_HIST(field, name, prometheus, help) print_hist(out, prometheus, help, &c->field);
  COUNTERS_HISTS(COUNTERS_PRINT_HIST)
#undef COUNTERS_PRINT_HIST
}

char *status_metrics(struct status *s)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  if (!out)
    return NULL;
  print_metrics(s, out);
  fclose(out);
  return text;
}

void status_line(struct status *s, char *text, size_t n)
{
  struct engine_epoch epoch;
  const char *not_ready = status_not_ready(s);

  engine_epoch_get(s->engine, &epoch, NULL, 0);
  snprintf(text, n, "%s%s; %" PRIu64 " items, epoch %" PRIu64 ", %" PRIu64 " queries answered",
           not_ready ? "not ready: " : "ready", not_ready ? not_ready : "", epoch.n_items, epoch.number,
           counters_get(&s->counters->answers));
}
