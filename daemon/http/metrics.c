/* SPDX-License-Identifier: Apache-2.0 */
/* Build the body of /metrics, in the text format of Prometheus. Counters and histograms are rows in daemon/counters.h;
 * gauges are here, and those of the catalogue in daemon/http/catalogue_status.c. */
#include "daemon/http/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/http/catalogue_status.h"
#include "daemon/http/metric_head.h"

/* Bucket bounds are powers of two from 64 us to 67 s. Buckets of struct hist end exactly there, so counts are exact. */
enum { BUCKETS_FROM = 6, BUCKETS_TO = 26 };

static void print_hist(FILE *out, const char *name, const char *help, const struct hist *h)
{
  struct hist_powers p;

  hist_powers_get(h, &p);
  metric_head_print(out, name, "histogram", help);
  for (int i = BUCKETS_FROM; i <= BUCKETS_TO; i++)
    fprintf(out, "%s_bucket{le=\"%.6f\"} %" PRIu64 "\n", name, (double)(UINT64_C(1) << i) / 1e6, p.below[i]);
  fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.6f\n%s_count %" PRIu64 "\n", name, p.n, name,
          (double)atomic_load_explicit(&h->sum, memory_order_relaxed) / 1e6, name, p.n);
}

static void print_gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
  metric_head_print(out, name, "gauge", help);
  fprintf(out, "%s %" PRIu64 "\n", name, value);
}

/* Print a gauge with the value 1 and a word in its label. */
static void print_word(FILE *out, const char *name, const char *help, const char *label, const char *word)
{
  metric_head_print(out, name, "gauge", help);
  fprintf(out, "%s{%s=\"%s\"} 1\n", name, label, word);
}

static void print_counter(FILE *out, const char *name, const char *help, uint64_t value)
{
  metric_head_print(out, name, "counter", help);
  fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void print_counters(FILE *out, const struct counters *c)
{
#define COUNTERS_PRINT(field, name, help) print_counter(out, name, help, counters_get(&c->field));
  COUNTERS_LIST(COUNTERS_PRINT)
#undef COUNTERS_PRINT
}

static void print_hists(FILE *out, const struct counters *c)
{
#define COUNTERS_PRINT_HIST(field, name, prometheus, help) print_hist(out, prometheus, help, &c->field);
  COUNTERS_HISTS(COUNTERS_PRINT_HIST)
#undef COUNTERS_PRINT_HIST
}

static void print_metrics(struct status *s, FILE *out)
{
  struct engine_epoch epoch;
  size_t n_failed;
  const char *backend = engine_backend_name(s->engine, &n_failed);

  engine_epoch_get(s->engine, &epoch, NULL, 0);
  print_counters(out, s->counters);
  print_gauge(out, "sluice_ready", "1 if the catalogue has caught up and queries are read, otherwise 0",
              status_not_ready(s) == NULL);
  print_gauge(out, "sluice_dead_letters_waiting", "Dead letters that wait for delivery",
              counters_get(&s->counters->dead_letters_waiting));
  print_gauge(out, "sluice_items", "Items in the published epoch", epoch.n_items);
  print_word(out, "sluice_backend", "1 for the backend that searches", "name", backend);
  print_gauge(out, "sluice_backend_failures", "GPU backends that failed since the start; the CPU took over", n_failed);
  print_word(out, "sluice_catalogue_phase", "1 for the current phase of the catalogue", "phase",
             catalogue_phase_word(catalogue_phase(s->catalogue)));
  catalogue_status_metrics(catalogue_report_of(s->catalogue), out);
  print_gauge(out, "sluice_epoch", "Number of the published epoch", epoch.number);
  print_hists(out, s->counters);
}

char *metrics_text(struct status *s)
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
