/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's report as fields of /status and as metrics for Prometheus. */
#include "daemon/http/sections/catalogue_status.h"

#include <stdio.h>

#include "base/clock.h"
#include "daemon/http/print/json_put.h"
#include "daemon/http/print/metric_print.h"

/* How far a partition is behind. */
struct lag {
  int64_t records;   /* not applied yet, up to the partition's end */
  int64_t held_back; /* how many of these an open transaction holds back */
  double age_s;      /* of the oldest of these, at most */
};

/* Return since when the partition may have records that are not applied. While the topic is not read, that is since it
 * was last read to its end. 0: it has none. */
static int64_t behind_since(const struct catalogue_report *r, const struct report_partition *p)
{
  if (p->behind_since_ns || !r->is_away)
    return p->behind_since_ns;
  return p->at_end_ns ? p->at_end_ns : p->complete_ns;
}

static struct lag lag_of(const struct catalogue_report *r, const struct report_partition *p)
{
  int64_t since_ns = behind_since(r, p);
  struct lag lag = { 0 };

  if (p->end > p->next)
    lag.records = p->end - p->next;
  if (p->committed_end >= 0 && p->end > p->committed_end)
    lag.held_back = p->end - p->committed_end;
  if (since_ns)
    lag.age_s = (double)(clock_now_ns() - since_ns) / (double)CLOCK_NS_PER_S;
  return lag;
}

uint64_t catalogue_status_lag(struct catalogue_report *r)
{
  uint64_t n = 0;

  catalogue_report_lock(r);
  for (size_t i = 0; i < r->n; i++)
    n += (uint64_t)lag_of(r, &r->partitions[i]).records;
  catalogue_report_unlock(r);
  return n;
}

static json_t *offset_json(int64_t offset)
{
  return offset < 0 ? json_null() : json_integer(offset);
}

static json_t *partitions_json(const struct catalogue_report *r)
{
  json_t *list = json_array();

  for (size_t i = 0; i < r->n; i++) {
    const struct report_partition *p = &r->partitions[i];
    if (p->is_foreign)
      continue;
    struct lag lag = lag_of(r, p);
    json_t *row = json_object();
    json_put_count(row, "partition", i);
    json_put_integer(row, "next", p->next);
    json_put(row, "end", offset_json(p->end));
    json_put(row, "committed_end", offset_json(p->committed_end));
    json_put_integer(row, "lag", lag.records);
    json_put_integer(row, "held_back", lag.held_back);
    json_put_real(row, "age_s", lag.age_s);
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *rebuild_json(const struct report_rebuild *rebuild)
{
  if (!rebuild->is_under_way)
    return json_null();
  json_t *object = json_object();
  json_put_count(object, "number", rebuild->number);
  json_put_count(object, "items", rebuild->n_items);
  json_put_count(object, "live_items", rebuild->n_live_items);
  json_put_bool(object, "waits", rebuild->waits);
  json_put_text(object, "reason", rebuild->reason);
  return object;
}

/* List unknown names, with their counts as `what`. */
static json_t *unknown_json(const struct unknown_names *unknown, const char *what)
{
  json_t *list = json_array();

  for (size_t i = 0; i < unknown->n; i++) {
    json_t *row = json_object();
    json_put_text(row, "name", unknown->names[i].name);
    json_put_count(row, what, unknown->names[i].n);
    json_array_append_new(list, row);
  }
  return list;
}

void catalogue_status_json(struct catalogue_report *r, json_t *root)
{
  catalogue_report_lock(r);
  json_put_text(root, "problem", *r->problem ? r->problem : NULL);
  json_put(root, "rebuild", rebuild_json(&r->rebuild));
  json_put(root, "catalogue_log", partitions_json(r));
  json_put(root, "unknown_spaces", unknown_json(&r->unknown_spaces, "parts"));
  json_put(root, "unknown_attributes", unknown_json(&r->unknown_attributes, "values"));
  json_put_count(root, "undelivered_dead_letters", r->n_open_letters);
  catalogue_report_unlock(r);
}

struct partition_label {
  char number[24];
  struct metric_labels labels;
};

static const struct metric_labels *label_of(size_t partition, struct partition_label *label)
{
  snprintf(label->number, sizeof label->number, "%zu", partition);
  label->labels = (struct metric_labels){ { { "partition", label->number } } };
  return &label->labels;
}

/* Return the first partition from `i` on that no other shard reads; r->n: there is none. */
static size_t next_own(const struct catalogue_report *r, size_t i)
{
  while (i < r->n && r->partitions[i].is_foreign)
    i++;
  return i;
}

static void print_lags(const struct catalogue_report *r, FILE *out)
{
  struct partition_label label;

  metric_print_head(out, "sluice_catalogue_lag_records", "gauge",
                    "Records of a catalogue partition that are not applied yet");
  for (size_t i = next_own(r, 0); i < r->n; i = next_own(r, i + 1))
    metric_print_count(out, "sluice_catalogue_lag_records", label_of(i, &label),
                       (uint64_t)lag_of(r, &r->partitions[i]).records);
  metric_print_head(out, "sluice_catalogue_held_back_records", "gauge",
                    "Records of a catalogue partition that an open transaction holds back (part of the lag)");
  for (size_t i = next_own(r, 0); i < r->n; i = next_own(r, i + 1))
    metric_print_count(out, "sluice_catalogue_held_back_records", label_of(i, &label),
                       (uint64_t)lag_of(r, &r->partitions[i]).held_back);
  metric_print_head(out, "sluice_catalogue_behind_seconds", "gauge",
                    "Age of the oldest record of a catalogue partition that is not applied, 0 if there is none");
  for (size_t i = next_own(r, 0); i < r->n; i = next_own(r, i + 1))
    metric_print_real(out, "sluice_catalogue_behind_seconds", label_of(i, &label), lag_of(r, &r->partitions[i]).age_s);
}

static void print_unknown(const struct unknown_names *unknown, const char *metric, const char *label, const char *help,
                          FILE *out)
{
  metric_print_head(out, metric, "counter", help);
  for (size_t i = 0; i < unknown->n; i++) {
    struct metric_labels labels = { { { label, unknown->names[i].name } } };
    metric_print_count(out, metric, &labels, unknown->names[i].n);
  }
}

void catalogue_status_metrics(struct catalogue_report *r, FILE *out)
{
  catalogue_report_lock(r);
  print_lags(r, out);
  metric_print_gauge(out, "sluice_rebuild_waits",
                     "1 while a rebuilt catalogue waits for sluicectl rebuild accept, otherwise 0", r->rebuild.waits);
  print_unknown(&r->unknown_spaces, "sluice_unknown_space_parts_total", "space",
                "Item parts received for a space that is not configured", out);
  print_unknown(&r->unknown_attributes, "sluice_unknown_attribute_values_total", "attribute",
                "Values received for an attribute that is not configured", out);
  catalogue_report_unlock(r);
}
