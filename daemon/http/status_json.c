/* SPDX-License-Identifier: Apache-2.0 */
/* Build the JSON of /status, which the status page shows as tables. */
#include "daemon/http/status_json.h"

#include "base/clock.h"
#include "base/log_recent.h"
#include "daemon/config/config_shard.h"
#include "daemon/http/sections/catalogue_status.h"
#include "daemon/http/print/json_put.h"
#include "daemon/http/sections/process_metrics.h"
#include "daemon/http/sections/models_status.h"
#include "daemon/http/print/quantiles_json.h"
#include "daemon/http/sections/seen_status.h"
#include "daemon/http/sections/store_metrics.h"

enum { WATERMARK_MAX = 4096 };

static json_t *kafka_json(const struct status *s)
{
  const struct config *config = s->config;
  json_t *kafka = json_object();

  json_put_text(kafka, "bootstrap", kafka_setup_bootstrap(s->kafka));
  json_put_text(kafka, "catalogue_topic", config->catalogue.topic);
  json_put_text(kafka, "query_topic", config->query.topic);
  json_put_text(kafka, "query_group", config->query.group);
  json_put_text(kafka, "answer_topic", config->query.answer_topic);
  json_put_text(kafka, "partials_topic", config_is_shard(config) ? config->query.partials_topic : NULL);
  json_put_text(kafka, "dead_letter_topic", config->catalogue.dead_letter_topic);
  json_put_text(kafka, "seen_topic", *config->seen.topic ? config->seen.topic : NULL);
  json_put_text(kafka, "models_topic", *config->models.topic ? config->models.topic : NULL);
  json_put_text(kafka, "shadow_topic", *config->models.shadow_topic ? config->models.shadow_topic : NULL);
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
    if (!engine_space_get(s->engine, i, &info))
      continue;
    json_t *row = json_object();
    json_put_text(row, "name", info.name);
    json_put_count(row, "generation", info.generation);
    json_put_bool(row, "current", info.is_current);
    json_put_text(row, "model", info.digest);
    json_put_text(row, "similarity", info.similarity);
    json_put_count(row, "items", info.n_items);
    json_put_count(row, "alive", info.n_alive);
    json_put_count(row, "bytes_per_item", info.bytes_per_item);
    json_put_count(row, "item_vector", info.lengths.item_vector);
    json_put_count(row, "item_codes", info.lengths.item_codes);
    json_put_count(row, "subitems", info.lengths.n_subitems);
    json_put_count(row, "query_vector", info.lengths.query_vector);
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *attributes_json(struct status *s)
{
  const struct attributes *attributes = engine_attributes(s->engine);
  json_t *list = json_array();

  for (size_t i = 0; i < attributes->n; i++) {
    json_t *row = json_object();
    json_put(row, "name", json_stringn((const char *)attributes->v[i].name.p, attributes->v[i].name.n));
    json_put_text(row, "type", attribute_type_name(attributes->v[i].type));
    json_put_count(row, "items", engine_attribute_count(s->engine, i));
    json_array_append_new(list, row);
  }
  return list;
}

/* What time does to the items; null if the configuration names no lifetimes. */
static json_t *lifetimes_json(const struct status *s, const struct engine_epoch *epoch)
{
  int64_t next_ms = engine_next_change_ms(s->engine);

  if (!epoch->has_time)
    return json_null();
  json_t *object = json_object();
  json_put_integer(object, "time_unix_ms", epoch->time_unix_ms);
  json_put_count(object, "expired", epoch->n_expired);
  json_put_count(object, "embargoed", epoch->n_embargoed);
  json_put(object, "next_change_unix_ms", next_ms == INT64_MAX ? json_null() : json_integer(next_ms));
  return object;
}

static json_t *counters_json(const struct counters *c)
{
  json_t *object = json_object();

#define COUNTERS_JSON(field, name, help) json_put_count(object, #field, counters_get(&c->field));
  COUNTERS_LIST(COUNTERS_JSON)
#undef COUNTERS_JSON
#define COUNTERS_JSON_SUM(field, n, name, label, help) json_put_count(object, #field, counters_sum(c->field, n));
  COUNTERS_BY_WORD(COUNTERS_JSON_SUM)
#undef COUNTERS_JSON_SUM
  return object;
}

/* Quantiles in microseconds. Those since the start hide what is slow now, those of the last minutes what was rare.
 *
 * windows  which durations; all zeros: those since the start */
static json_t *latency_json(const struct status *s, const struct counters_windows *windows)
{
  json_t *object = json_object();

#define COUNTERS_QUANTILES(field, name, prometheus, help) \
  json_put(object, name, quantiles_json(&windows->field, &s->counters->field));
  COUNTERS_HISTS(COUNTERS_QUANTILES)
#undef COUNTERS_QUANTILES
  return object;
}

/* The newest warnings and errors of the log, newest first. */
static json_t *complaints_json(void)
{
  struct log_line lines[LOG_RECENT_MAX];
  size_t n = log_recent_get(lines);
  json_t *list = json_array();

  for (size_t i = 0; i < n; i++) {
    json_t *row = json_object();
    json_put_integer(row, "unix_ms", lines[i].unix_ms);
    json_put_text(row, "level", lines[i].level == LOG_LEVEL_ERROR ? "error" : "warn");
    json_put_text(row, "line", lines[i].text);
    json_array_append_new(list, row);
  }
  return list;
}

static void put_readiness(const struct status *s, json_t *root)
{
  const char *not_ready = readiness_reason(s->readiness);

  json_put_bool(root, "ready", not_ready == NULL);
  json_put_text(root, "not_ready", not_ready);
  json_put_text(root, "phase", catalogue_phase_name(catalogue_phase(s->catalogue)));
}

/* Which shard the daemon is; null if it has the whole catalogue. */
static json_t *shard_json(const struct config *config)
{
  if (!config_is_shard(config))
    return json_null();
  json_t *shard = json_object();
  json_put_count(shard, "index", config->catalogue.shard);
  json_put_count(shard, "of", config->catalogue.n_shards);
  return shard;
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

/* Memory and disk. */
static void put_sizes(const struct status *s, json_t *root)
{
  struct store_stats stats;

  store_stats(s->store, &stats);
  json_put_count(root, "memory_bytes", process_resident_bytes());
  json_put_count(root, "store_bytes", stats.used_bytes);
  json_put_count(root, "store_map_bytes", stats.map_bytes);
  json_put_count(root, "disk_free_bytes", store_metrics_disk_free_bytes(s));
}

json_t *status_json_tree(struct status *s, bool shows_data)
{
  static const struct counters_windows since_start;
  struct position positions[WATERMARK_MAX];
  struct engine_epoch epoch;
  json_t *root = json_object();

  engine_epoch_get(s->engine, &epoch, positions, WATERMARK_MAX);
  json_put_text(root, "version", SLUICE_VERSION);
  json_put_text(root, "role", "search");
  put_readiness(s, root);
  json_put(root, "shard", shard_json(s->config));
  json_put_count(root, "epoch", epoch.number);
  json_put_real(root, "epoch_age_s", (double)status_epoch_age_ns(s) / (double)CLOCK_NS_PER_S);
  json_put_count(root, "items", epoch.n_items);
  json_put_real(root, "uptime_s", (double)(clock_now_ns() - s->started_ns) / (double)CLOCK_NS_PER_S);
  json_put(root, "kafka", kafka_json(s));
  json_put(root, "watermark", watermark_json(&epoch, positions));
  json_put(root, "spaces", spaces_json(s));
  json_put(root, "attributes", attributes_json(s));
  json_put(root, "lifetimes", lifetimes_json(s, &epoch));
  json_put(root, "counters", counters_json(s->counters));
  put_backend(s, root);
  json_put(root, "latency_us", latency_json(s, &s->windows));
  json_put(root, "latency_since_start_us", latency_json(s, &since_start));
  json_put_text(root, "tracing", *s->config->tracing.endpoint ? s->config->tracing.endpoint : NULL);
  put_sizes(s, root);
  catalogue_status_json(catalogue_report_of(s->catalogue), root);
  json_put(root, "seen", seen_status_json(s->seen));
  json_put(root, "models", models_status_json(catalogue_models(s->catalogue), s->engine));
  json_put(root, "complaints", shows_data ? complaints_json() : json_null());
  return root;
}

char *status_json(struct status *s, bool shows_data)
{
  json_t *root = status_json_tree(s, shows_data);
  char *text = json_dumps(root, JSON_COMPACT);

  json_decref(root);
  return text;
}
