/* SPDX-License-Identifier: Apache-2.0 */
/* The texts for probes, for people, and for Prometheus. */
#include "daemon/merge/merge_pages.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/http/print/json_put.h"
#include "daemon/http/sections/kafka_metrics.h"
#include "daemon/http/print/metric_print.h"
#include "daemon/http/metrics.h"
#include "daemon/http/sections/process_metrics.h"
#include "daemon/http/print/quantiles_json.h"
#include "daemon/merge/merge_page.h"

static double seconds_since(int64_t ns)
{
  return (double)(clock_now_ns() - ns) / (double)CLOCK_NS_PER_S;
}

/* List the shards in memory that the caller frees; no rows without memory. */
static size_t list_shards(const struct merge_view *view, struct shard_heard **out)
{
  *out = NULL;
  if (mem_array(SHARDS_HEARD_MAX, sizeof **out, out) != ERR_OK)
    return 0;
  return shards_heard_list(view->heard, *out, SHARDS_HEARD_MAX);
}

/* ---- /readyz ---- */

/* Print the shards of the layout that begins at a row, and return the row after it. */
static size_t print_layout(FILE *out, const struct shard_heard *rows, size_t n, size_t from)
{
  size_t i = from;

  for (uint32_t shard = 0; shard < rows[from].n_shards; shard++) {
    if (i < n && rows[i].n_shards == rows[from].n_shards && rows[i].shard == shard) {
      fprintf(out, "shard %" PRIu32 " of %" PRIu32 ": heard %.1f s ago\n", shard, rows[i].n_shards,
              seconds_since(rows[i].heard_ns));
      i++;
    } else {
      fprintf(out, "shard %" PRIu32 " of %" PRIu32 ": not heard\n", shard, rows[from].n_shards);
    }
  }
  return i;
}

static char *make_ready(const void *context, const char *not_ready)
{
  const struct merge_view *view = context;
  AUTO(mem_free) struct shard_heard *rows = NULL;
  size_t n_shards = list_shards(view, &rows), n;
  char *text = NULL;
  FILE *out = open_memstream(&text, &n);

  if (!out)
    return NULL;
  fprintf(out, "%s%s\n", not_ready ? "not ready: " : "ready", not_ready ? not_ready : "");
  for (size_t i = 0; i < n_shards;)
    i = print_layout(out, rows, n_shards, i);
  if (n_shards == 0)
    fprintf(out, "no shard was heard of\n");
  fclose(out);
  return text;
}

/* ---- /status ---- */

static json_t *shards_json(const struct merge_view *view)
{
  AUTO(mem_free) struct shard_heard *rows = NULL;
  size_t n = list_shards(view, &rows);
  json_t *list = json_array();

  for (size_t i = 0; i < n; i++) {
    json_t *row = json_object();
    json_put_count(row, "shard", rows[i].shard);
    json_put_count(row, "of", rows[i].n_shards);
    json_put_real(row, "heard_s", seconds_since(rows[i].heard_ns));
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *kafka_json(const struct merge_view *view)
{
  json_t *kafka = json_object();

  json_put_text(kafka, "bootstrap", view->bootstrap);
  json_put_text(kafka, "query_group", view->config->query.group);
  json_put_text(kafka, "partials_topic", view->config->query.partials_topic);
  json_put_text(kafka, "answer_topic", view->config->query.answer_topic);
  return kafka;
}

static json_t *counters_json(const struct merge_view *view)
{
  const struct merge_counters *c = view->merge_counters;
  json_t *object = json_object();

#define MERGE_JSON(field, name, help) json_put_count(object, #field, atomic_load(&c->field));
  MERGE_COUNTERS(MERGE_JSON)
  MERGE_GAUGES(MERGE_JSON)
#undef MERGE_JSON
  json_put_count(object, "answers", counters_get(&view->counters->answers));
  json_put_count(object, "errors", counters_sum(view->counters->errors, COUNTERS_ERRORS));
  json_put_count(object, "undeliverable", counters_get(&view->counters->undeliverable));
  json_put_count(object, "spans", counters_get(&view->counters->spans));
  json_put_count(object, "spans_dropped", counters_sum(view->counters->spans_dropped, COUNTERS_SPAN_DROPS));
  return object;
}

/* Quantiles in microseconds.
 *
 * windows  which durations; all zeros: those since the start */
static json_t *latency_json(const struct merge_view *view, const struct merge_windows *windows)
{
  json_t *object = json_object();

  json_put(object, "answer", quantiles_json(&windows->answer_us, &view->counters->answer_us));
  json_put(object, "wait", quantiles_json(&windows->wait_us, &view->merge_counters->wait_us));
  json_put(object, "send", quantiles_json(&windows->send_us, &view->merge_counters->send_us));
  return object;
}

static json_t *status_tree(const struct merge_view *view, const char *not_ready)
{
  static const struct merge_windows since_start;
  json_t *root = json_object();

  json_put_text(root, "version", SLUICE_VERSION);
  json_put_text(root, "role", "merge");
  json_put_bool(root, "ready", not_ready == NULL);
  json_put_text(root, "not_ready", not_ready);
  json_put_real(root, "uptime_s", seconds_since(view->started_ns));
  json_put(root, "kafka", kafka_json(view));
  json_put(root, "shards", shards_json(view));
  json_put(root, "latency_us", latency_json(view, view->windows));
  json_put(root, "latency_since_start_us", latency_json(view, &since_start));
  json_put(root, "counters", counters_json(view));
  json_put_text(root, "tracing", *view->config->tracing.endpoint ? view->config->tracing.endpoint : NULL);
  json_put_count(root, "memory_bytes", process_resident_bytes());
  return root;
}

static char *make_status(const void *context, const char *not_ready)
{
  json_t *root = status_tree(context, not_ready);
  char *text = json_dumps(root, JSON_COMPACT);

  json_decref(root);
  return text;
}

static char *make_page(const void *context, const char *not_ready)
{
  json_t *root = status_tree(context, not_ready);
  char *text = merge_page_html(root);

  json_decref(root);
  return text;
}

/* ---- /metrics ---- */

static void print_shards(const struct merge_view *view, FILE *out)
{
  static const char name[] = "sluice_merge_shard_heard_seconds";
  AUTO(mem_free) struct shard_heard *rows = NULL;
  size_t n = list_shards(view, &rows);
  char shard[16], of[16];

  metric_print_head(out, name, "gauge", "Seconds since a part or a heartbeat of a shard was read");
  for (size_t i = 0; i < n; i++) {
    snprintf(shard, sizeof shard, "%" PRIu32, rows[i].shard);
    snprintf(of, sizeof of, "%" PRIu32, rows[i].n_shards);
    struct metric_labels labels = { { { "shard", shard }, { "of", of } } };
    metric_print_real(out, name, &labels, seconds_since(rows[i].heard_ns));
  }
}

static void print_counters(const struct merge_counters *c, FILE *out)
{
#define MERGE_PRINT(field, name, help) metric_print_counter(out, name, help, atomic_load(&c->field));
  MERGE_COUNTERS(MERGE_PRINT)
#undef MERGE_PRINT
#define MERGE_PRINT(field, name, help) metric_print_gauge(out, name, help, atomic_load(&c->field));
  MERGE_GAUGES(MERGE_PRINT)
#undef MERGE_PRINT
#define MERGE_PRINT(field, name, help)             \
  metric_print_head(out, name, "histogram", help); \
  metric_print_hist(out, name, NULL, &c->field);
  MERGE_HISTS(MERGE_PRINT)
#undef MERGE_PRINT
}

static char *make_metrics(const void *context, const char *not_ready)
{
  const struct merge_view *view = context;
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  if (!out)
    return NULL;
  metric_print_gauge(out, "sluice_ready", "1 if the catalogue has caught up and queries are read, otherwise 0",
                     not_ready == NULL);
  metrics_print_counters(view->counters, out);
  print_counters(view->merge_counters, out);
  print_shards(view, out);
  kafka_metrics_print(out);
  process_metrics_print(out);
  fclose(out);
  return text;
}

struct other_pages merge_pages(const struct merge_view *view)
{
  return (struct other_pages){ view, make_page, make_ready, make_status, make_metrics };
}
