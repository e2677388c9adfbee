/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's report as fields of /status and as metrics for Prometheus. */
#include "daemon/http/catalogue_status.h"

#include <inttypes.h>

#include "base/clock.h"
#include "daemon/http/json_put.h"
#include "daemon/http/metric_head.h"

/* How far a partition is behind. */
struct lag {
  int64_t records;   /* not applied yet, up to the partition's end */
  int64_t held_back; /* how many of these an open transaction holds back */
  double age_s;      /* how long it has been behind */
};

static struct lag lag_of(const struct report_partition *p)
{
  struct lag lag = { 0 };

  if (p->end > p->next)
    lag.records = p->end - p->next;
  if (p->committed_end >= 0 && p->end > p->committed_end)
    lag.held_back = p->end - p->committed_end;
  if (p->behind_since_ns)
    lag.age_s = (double)(clock_now_ns() - p->behind_since_ns) / (double)CLOCK_NS_PER_S;
  return lag;
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
    struct lag lag = lag_of(p);
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

static json_t *unknown_json(const struct unknown_spaces *unknown)
{
  json_t *list = json_array();

  for (size_t i = 0; i < unknown->n; i++) {
    json_t *row = json_object();
    json_put_text(row, "name", unknown->spaces[i].name);
    json_put_count(row, "parts", unknown->spaces[i].n_parts);
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
  json_put(root, "unknown_spaces", unknown_json(&r->unknown));
  json_put_count(root, "open_dead_letters", r->n_open_letters);
  catalogue_report_unlock(r);
}

static void print_lags(const struct catalogue_report *r, FILE *out)
{
  metric_head_print(out, "sluice_catalogue_lag_records", "gauge",
                    "Records of a catalogue partition that are not applied yet");
  for (size_t i = 0; i < r->n; i++)
    fprintf(out, "sluice_catalogue_lag_records{partition=\"%zu\"} %" PRId64 "\n", i, lag_of(&r->partitions[i]).records);
  metric_head_print(out, "sluice_catalogue_held_back_records", "gauge",
                    "Records of a catalogue partition that an open transaction holds back (part of the lag)");
  for (size_t i = 0; i < r->n; i++)
    fprintf(out, "sluice_catalogue_held_back_records{partition=\"%zu\"} %" PRId64 "\n", i,
            lag_of(&r->partitions[i]).held_back);
  metric_head_print(out, "sluice_catalogue_behind_seconds", "gauge",
                    "Seconds that a catalogue partition has been behind its end, 0 if it is not");
  for (size_t i = 0; i < r->n; i++)
    fprintf(out, "sluice_catalogue_behind_seconds{partition=\"%zu\"} %.3f\n", i, lag_of(&r->partitions[i]).age_s);
}

/* Print a label's value. Prometheus wants backslash, quote and line feed escaped. */
static void print_label(const char *text, FILE *out)
{
  for (; *text; text++) {
    if (*text == '\n') {
      fputs("\\n", out);
      continue;
    }
    if (*text == '"' || *text == '\\')
      fputc('\\', out);
    fputc(*text, out);
  }
}

static void print_unknown(const struct unknown_spaces *unknown, FILE *out)
{
  metric_head_print(out, "sluice_unknown_space_parts_total", "counter",
                    "Item parts received for a space that is not configured");
  for (size_t i = 0; i < unknown->n; i++) {
    fputs("sluice_unknown_space_parts_total{space=\"", out);
    print_label(unknown->spaces[i].name, out);
    fprintf(out, "\"} %" PRIu64 "\n", unknown->spaces[i].n_parts);
  }
}

void catalogue_status_metrics(struct catalogue_report *r, FILE *out)
{
  catalogue_report_lock(r);
  print_lags(r, out);
  metric_head_print(out, "sluice_rebuild_waits", "gauge",
                    "1 while a rebuilt catalogue waits for sluicectl rebuild accept, otherwise 0");
  fprintf(out, "sluice_rebuild_waits %d\n", r->rebuild.waits);
  print_unknown(&r->unknown, out);
  catalogue_report_unlock(r);
}
