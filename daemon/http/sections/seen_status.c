/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of the seen topic as a field of /status and as metrics for Prometheus. */
#include "daemon/http/sections/seen_status.h"

#include "daemon/http/print/json_put.h"
#include "daemon/http/print/metric_print.h"

static int64_t lag_of(const struct seen_partition *p)
{
  return p->end > p->next ? p->end - p->next : 0;
}

static json_t *partitions_json(const struct seen_progress *p)
{
  json_t *list = json_array();

  for (size_t i = 0; i < p->n; i++) {
    json_t *row = json_object();
    json_put_count(row, "partition", i);
    json_put_integer(row, "next", p->partitions[i].next);
    json_put(row, "end", p->partitions[i].end < 0 ? json_null() : json_integer(p->partitions[i].end));
    json_put_integer(row, "lag", lag_of(&p->partitions[i]));
    json_array_append_new(list, row);
  }
  return list;
}

json_t *seen_status_json(struct seen *s)
{
  struct seen_store_stats stats;

  if (!s)
    return json_null();
  struct seen_progress *p = seen_progress_of(s);
  json_t *object = json_object();
  seen_stats(s, &stats);
  json_put_count(object, "users", stats.n_users);
  json_put_count(object, "items", stats.n_items);
  json_put_count(object, "used_bytes", stats.used_bytes);
  json_put_bool(object, "caught_up", atomic_load(&p->has_caught_up));
  seen_progress_lock(p);
  json_put_text(object, "problem", *p->problem ? p->problem : NULL);
  json_put(object, "partitions", partitions_json(p));
  seen_progress_unlock(p);
  return object;
}

static void print_lags(struct seen_progress *p, FILE *out)
{
  char partition[24];
  struct metric_labels labels = { { { "partition", partition } } };

  seen_progress_lock(p);
  for (size_t i = 0; i < p->n; i++) {
    snprintf(partition, sizeof partition, "%zu", i);
    metric_print_count(out, "sluice_seen_lag_records", &labels, (uint64_t)lag_of(&p->partitions[i]));
  }
  seen_progress_unlock(p);
}

static bool is_waiting(struct seen_progress *p)
{
  seen_progress_lock(p);
  bool has_problem = *p->problem != '\0';
  seen_progress_unlock(p);
  return has_problem;
}

void seen_status_metrics(struct seen *s, FILE *out)
{
  struct seen_store_stats stats = { 0 };

  if (s)
    seen_stats(s, &stats);
  metric_print_gauge(out, "sluice_seen_users", "Users of whom seen items are remembered", stats.n_users);
  metric_print_gauge(out, "sluice_seen_items", "Seen items that are remembered, of all users", stats.n_items);
  metric_print_gauge(out, "sluice_seen_waits",
                     "1 while the seen topic is not read because something is wrong, otherwise 0",
                     s && is_waiting(seen_progress_of(s)));
  metric_print_head(out, "sluice_seen_lag_records", "gauge", "Records of a seen partition that are not stored yet");
  if (s)
    print_lags(seen_progress_of(s), out);
}
