/* SPDX-License-Identifier: Apache-2.0 */
/* Build the JSON of /status and the line that `systemctl status` shows. */
#include "daemon/http/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/http/catalogue_status.h"
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
  json_put_text(root, "backend_reason", engine_backend_reason(s->engine));
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

void status_line(struct status *s, char *text, size_t n)
{
  struct engine_epoch epoch;
  const char *not_ready = status_not_ready(s);

  engine_epoch_get(s->engine, &epoch, NULL, 0);
  snprintf(text, n, "%s%s; %" PRIu64 " items, epoch %" PRIu64 ", %" PRIu64 " queries answered",
           not_ready ? "not ready: " : "ready", not_ready ? not_ready : "", epoch.n_items, epoch.number,
           counters_get(&s->counters->answers));
}
