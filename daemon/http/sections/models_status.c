/* SPDX-License-Identifier: Apache-2.0 */
/* What the report says about each generation, with the counts of items that the engine has now. */
#include "daemon/http/sections/models_status.h"

#include <inttypes.h>

#include "daemon/http/print/json_put.h"
#include "daemon/http/print/metric_print.h"
#include "daemon/http/sections/shadow_status.h"

/* The items of a generation in the front epoch. */
struct coverage {
  uint64_t n_items;
  uint64_t n_missing; /* items that the current generation has, and this one has not */
  double ratio;       /* share of the current generation's items that this one has */
};

static bool find_info(struct engine *engine, const struct models_report_row *row, struct engine_space_info *out)
{
  return engine_space_find(engine, span_of_str(row->space), row->generation, out);
}

/* Those that the fill found, and those that came later. */
static uint64_t unusable_parts(struct engine *engine, const struct models_report_row *row)
{
  struct engine_space_info info;

  return row->n_unusable + (find_info(engine, row, &info) ? info.n_refused : 0);
}

static struct coverage coverage_of(struct engine *engine, const struct models_report_row *row)
{
  struct engine_space_info info, current;
  struct coverage c = { 0 };

  if (!find_info(engine, row, &info) || !engine_space_find(engine, span_of_str(row->space), 0, &current))
    return c;
  c.n_items = info.n_items;
  c.n_missing = engine_count_missing(engine, span_of_str(row->space), current.generation, row->generation);
  c.ratio = current.n_items > c.n_missing ? (double)(current.n_items - c.n_missing) / (double)current.n_items
                                          : current.n_items == 0;
  return c;
}

/* ---- /status ---- */

static json_t *row_json(struct models *m, struct engine *engine, const struct models_report_row *row)
{
  struct coverage coverage = coverage_of(engine, row);
  struct engine_space_info info;
  bool has_info = find_info(engine, row, &info);
  json_t *object = json_object();

  json_put_text(object, "space", row->space);
  json_put_count(object, "generation", row->generation);
  json_put(object, "derives_from", row->root == row->generation ? json_null() : json_integer(row->root));
  json_put_text(object, "phase", model_phase_word(row->phase));
  json_put_bool(object, "indexed", row->is_indexed);
  json_put_bool(object, "current", row->is_current);
  json_put_bool(object, "wanted", row->is_wanted);
  json_put_text(object, "digest", has_info ? info.digest : *row->digest ? row->digest : NULL);
  json_put_text(object, "path", row->path);
  if (row->is_in_topic) {
    json_put_count(object, "file_bytes", row->n_bytes);
    json_put_count(object, "fetched_bytes", row->n_fetched);
  }
  json_put_count(object, "items", coverage.n_items);
  json_put_count(object, "missing_items", coverage.n_missing);
  json_put_real(object, "coverage", coverage.ratio);
  json_put_count(object, "walked_items", row->n_walked);
  json_put_count(object, "unusable_parts", unusable_parts(engine, row));
  json_put_text(object, "problem", *row->problem ? row->problem : NULL);
  json_put_count(object, "refused_items", row->n_refused);
  json_put_text(object, "refused", *row->refused ? row->refused : NULL);
  json_put(object, "shadow", shadow_status_json(models_shadows(m), row->space, row->generation));
  return object;
}

static json_t *rows_json(struct models *m, struct engine *engine, const struct models_report *r)
{
  json_t *list = json_array();

  for (size_t i = 0; i < r->n; i++)
    json_array_append_new(list, row_json(m, engine, &r->rows[i]));
  return list;
}

json_t *models_status_json(struct models *m, struct engine *engine)
{
  if (!m)
    return json_null();
  struct models_report *r = models_report_of(m);
  json_t *object = json_object();
  json_put_bool(object, "caught_up", models_have_caught_up(m));
  models_report_lock(r);
  json_put_text(object, "problem", *r->problem ? r->problem : NULL);
  json_put(object, "next", r->next < 0 ? json_null() : json_integer(r->next));
  json_put_count(object, "refused_records", r->n_refused);
  json_put_text(object, "refused", *r->refused ? r->refused : NULL);
  json_put(object, "generations", rows_json(m, engine, r));
  models_report_unlock(r);
  return object;
}

/* ---- /metrics ---- */

struct row_label {
  char number[16];
  struct metric_labels labels;
};

static const struct metric_labels *label_of(const struct models_report_row *row, struct row_label *label)
{
  snprintf(label->number, sizeof label->number, "%" PRIu32, row->generation);
  label->labels = (struct metric_labels){ { { "space", row->space }, { "generation", label->number } } };
  return &label->labels;
}

/* Every generation that ever was stays in the report. Series of those that are gone would only add up. */
static bool has_series(const struct models_report_row *row)
{
  return row->phase != MODEL_REMOVED;
}

static void print_current(const struct models_report *r, FILE *out)
{
  struct row_label label;

  metric_print_head(out, "sluice_model_current", "gauge", "1 for the generation that answers, otherwise 0");
  for (size_t i = 0; r && i < r->n; i++)
    if (has_series(&r->rows[i]))
      metric_print_count(out, "sluice_model_current", label_of(&r->rows[i], &label), r->rows[i].is_current);
  metric_print_head(out, "sluice_model_wanted", "gauge",
                    "1 for the generation that should answer by the newest switch, otherwise 0");
  for (size_t i = 0; r && i < r->n; i++)
    if (has_series(&r->rows[i]))
      metric_print_count(out, "sluice_model_wanted", label_of(&r->rows[i], &label), r->rows[i].is_wanted);
}

static void print_failed(const struct models_report *r, FILE *out)
{
  struct row_label label;

  metric_print_head(out, "sluice_model_failed", "gauge", "1 for a generation that cannot be used, otherwise 0");
  for (size_t i = 0; r && i < r->n; i++)
    if (has_series(&r->rows[i]))
      metric_print_count(out, "sluice_model_failed", label_of(&r->rows[i], &label), r->rows[i].is_failed);
}

static void print_coverage(struct engine *engine, const struct models_report *r, FILE *out)
{
  struct row_label label;

  metric_print_head(out, "sluice_model_coverage_ratio", "gauge",
                    "Share of the items of the current generation that a generation has");
  for (size_t i = 0; r && i < r->n; i++) {
    if (r->rows[i].is_in_engine)
      metric_print_real(out, "sluice_model_coverage_ratio", label_of(&r->rows[i], &label),
                        coverage_of(engine, &r->rows[i]).ratio);
  }
  metric_print_head(out, "sluice_model_unusable_parts", "gauge",
                    "Parts that the model of a generation cannot use: stored ones, and those that another one takes");
  for (size_t i = 0; r && i < r->n; i++)
    if (has_series(&r->rows[i]))
      metric_print_count(out, "sluice_model_unusable_parts", label_of(&r->rows[i], &label),
                         unusable_parts(engine, &r->rows[i]));
  metric_print_head(out, "sluice_model_refused_items_total", "counter",
                    "Records of the catalogue that were refused because of the part of a generation");
  for (size_t i = 0; r && i < r->n; i++)
    if (has_series(&r->rows[i]))
      metric_print_count(out, "sluice_model_refused_items_total", label_of(&r->rows[i], &label), r->rows[i].n_refused);
}

void models_status_metrics(struct models *m, struct engine *engine, FILE *out)
{
  struct models_report *r = m ? models_report_of(m) : NULL;

  if (r)
    models_report_lock(r);
  print_current(r, out);
  print_failed(r, out);
  print_coverage(engine, r, out);
  metric_print_gauge(out, "sluice_models_waits",
                     "1 while the control topic is not read because something is wrong, otherwise 0", r && *r->problem);
  metric_print_counter(out, "sluice_model_records_refused_total", "Records of the control topic that made no sense",
                       r ? r->n_refused : 0);
  if (r)
    models_report_unlock(r);
  shadow_status_metrics(m ? models_shadows(m) : NULL, out);
}
