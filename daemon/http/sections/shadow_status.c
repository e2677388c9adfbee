/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and counts for Prometheus, which adds up those of several daemons; means for people. */
#include "daemon/http/sections/shadow_status.h"

#include <inttypes.h>

#include "daemon/http/print/json_put.h"
#include "daemon/http/print/metric_print.h"

/* ---- /status ---- */

static json_t *mean_json(double sum, uint64_t n)
{
  return n ? json_real(sum / (double)n) : json_null();
}

static json_t *latency_json(const struct hist *h)
{
  static const struct hist_window since_start;
  json_t *object = json_object();

  json_put_count(object, "p50", hist_window_quantile(&since_start, h, 0.5));
  json_put_count(object, "p99", hist_window_quantile(&since_start, h, 0.99));
  return object;
}

static json_t *dropped_json(const struct shadow_row *row)
{
  json_t *object = json_object();

  for (int why = 0; why < SHADOW_DROPS; why++)
    json_put_count(object, shadow_drop_word((enum shadow_drop)why), row->n_dropped[why]);
  return object;
}

static json_t *row_json(const struct shadow_row *row)
{
  json_t *object = json_object();

  json_put_real(object, "share", row->share);
  json_put_text(object, "problem", row->share > 0 && *row->problem ? row->problem : NULL);
  json_put_count(object, "compared", row->n_compared);
  json_put(object, "overlap", mean_json(row->overlap, row->n_compared));
  json_put_count(object, "ranked", row->n_ranked);
  json_put(object, "correlation", mean_json(row->correlation, row->n_ranked));
  json_put(object, "current_us", latency_json(&row->current_us));
  json_put(object, "shadow_us", latency_json(&row->shadow_us));
  json_put(object, "dropped", dropped_json(row));
  json_put_text(object, "reason", *row->reason ? row->reason : NULL);
  return object;
}

json_t *shadow_status_json(struct shadow_board *board, const char *space, uint32_t generation)
{
  json_t *object = NULL;

  shadow_board_lock(board);
  for (size_t i = 0; i < board->n && !object; i++) {
    const struct shadow_row *row = board->rows[i];
    if (row->generation == generation && strcmp(row->space_name, space) == 0)
      object = row_json(row);
  }
  shadow_board_unlock(board);
  return object ? object : json_null();
}

/* ---- /metrics ---- */

/* A value of a row, with the label that tells it from others of the same metric. */
struct row_label {
  struct metric_labels labels;
  char generation[16];
};

static const struct metric_labels *label(struct row_label *v, const struct shadow_row *row, const char *name,
                                         const char *text)
{
  snprintf(v->generation, sizeof v->generation, "%" PRIu32, row->generation);
  v->labels = (struct metric_labels){
    { { "space", row->space_name }, { "generation", v->generation }, { name, text } },
  };
  return &v->labels;
}

static double share_of(const struct shadow_row *row)
{
  return row->share;
}

static double compared_of(const struct shadow_row *row)
{
  return (double)row->n_compared;
}

static double overlap_of(const struct shadow_row *row)
{
  return row->overlap;
}

static double ranked_of(const struct shadow_row *row)
{
  return (double)row->n_ranked;
}

/* The mean of tau and 1: the share of the pairs of common hits that both put in the same order. A counter must never
 * decrease, as a sum of correlations could. */
static double agreement_of(const struct shadow_row *row)
{
  return (row->correlation + (double)row->n_ranked) / 2;
}

static const struct {
  const char *name, *type, *help;
  double (*value)(const struct shadow_row *row);
} plain[] = {
  { "sluice_model_shadow_share_ratio", "gauge",
    "Share of the queries that are to be compared with the current generation", share_of },
  { "sluice_model_shadow_compared_total", "counter", "Queries compared", compared_of },
  { "sluice_model_shadow_overlap_total", "counter", "Share of the hits that both generations have, summed over these",
    overlap_of },
  { "sluice_model_shadow_ranked_total", "counter", "Queries compared that have two common hits or more", ranked_of },
  { "sluice_model_shadow_agreement_total", "counter",
    "Share of the pairs of common hits that are in the same order, summed over these", agreement_of },
};

static void print_plain(const struct shadow_board *b, FILE *out)
{
  for (size_t m = 0; m < sizeof plain / sizeof *plain; m++) {
    metric_print_head(out, plain[m].name, plain[m].type, plain[m].help);
    for (size_t i = 0; b && i < b->n; i++) {
      struct row_label v;
      metric_print_real(out, plain[m].name, label(&v, b->rows[i], NULL, NULL), plain[m].value(b->rows[i]));
    }
  }
}

static void print_dropped(const struct shadow_board *b, FILE *out)
{
  static const char name[] = "sluice_model_shadow_dropped_total";

  metric_print_head(out, name, "counter", "Queries that were to be compared, and were not");
  for (size_t i = 0; b && i < b->n; i++) {
    for (int why = 0; why < SHADOW_DROPS; why++) {
      struct row_label v;
      metric_print_count(out, name, label(&v, b->rows[i], "reason", shadow_drop_word((enum shadow_drop)why)),
                         b->rows[i]->n_dropped[why]);
    }
  }
}

static void print_latency(const struct shadow_board *b, FILE *out)
{
  static const char name[] = "sluice_model_shadow_search_seconds";
  struct row_label v;

  metric_print_head(out, name, "histogram",
                    "Seconds that the search of one query took, alone in one thread, in the current generation and in "
                    "the one compared with it");
  for (size_t i = 0; b && i < b->n; i++) {
    metric_print_hist(out, name, label(&v, b->rows[i], "searched", "current"), &b->rows[i]->current_us);
    metric_print_hist(out, name, label(&v, b->rows[i], "searched", "shadow"), &b->rows[i]->shadow_us);
  }
}

void shadow_status_metrics(struct shadow_board *board, FILE *out)
{
  if (board)
    shadow_board_lock(board);
  print_plain(board, out);
  print_dropped(board, out);
  print_latency(board, out);
  if (board)
    shadow_board_unlock(board);
}
