/* SPDX-License-Identifier: Apache-2.0 */
/* Build the body of /metrics, in the text format of Prometheus. Counters and histograms are rows in
 * daemon/counters/counters.h; gauges are here, those of the catalogue in daemon/http/sections/catalogue_status.c. */
#include "daemon/http/metrics.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "daemon/http/print/metric_print.h"
#include "daemon/http/sections/catalogue_status.h"
#include "daemon/http/sections/certificate_metrics.h"
#include "daemon/http/sections/kafka_metrics.h"
#include "daemon/http/sections/models_status.h"
#include "daemon/http/sections/process_metrics.h"
#include "daemon/http/sections/search_metrics.h"
#include "daemon/http/sections/seen_status.h"
#include "daemon/http/sections/store_metrics.h"

/* Print a gauge with the value 1 and a word in its label. */
static void print_word(FILE *out, const char *name, const char *help, const char *label, const char *word)
{
  struct metric_labels labels = { { { label, word } } };

  metric_print_head(out, name, "gauge", help);
  metric_print_count(out, name, &labels, 1);
}

static const char *const words_of_dead_letters[] = { "unreadable", "unusable", "unknown_space", "too_large",
                                                     "no_reply" };
static_assert(sizeof words_of_dead_letters / sizeof words_of_dead_letters[0] == COUNTERS_LETTERS, "a word is missing");

static const char *const *const words_of_errors = query_error_words;

static const char *const words_of_filter_plans[] = { "masked", "all", "few", "scan" };
static_assert(sizeof words_of_filter_plans / sizeof words_of_filter_plans[0] == COUNTERS_PLANS, "a word is missing");

static const char *const words_of_spans_dropped[] = { "full", "away", "refused" };
static_assert(sizeof words_of_spans_dropped / sizeof words_of_spans_dropped[0] == COUNTERS_SPAN_DROPS,
              "a word is missing");

static void print_by_word(FILE *out, const char *name, const char *label, const char *const *words,
                          const _Atomic uint64_t *counts, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    struct metric_labels labels = { { { label, words[i] } } };
    if (words[i])
      metric_print_count(out, name, &labels, counters_get(&counts[i]));
  }
}

static void print_counters(FILE *out, const struct counters *c)
{
#define COUNTERS_PRINT(field, name, help) metric_print_counter(out, name, help, counters_get(&c->field));
  COUNTERS_LIST(COUNTERS_PRINT)
#undef COUNTERS_PRINT
#define COUNTERS_PRINT_WORDS(field, n, name, label, help) \
  metric_print_head(out, name, "counter", help);          \
  print_by_word(out, name, label, words_of_##field, c->field, n);
  COUNTERS_BY_WORD(COUNTERS_PRINT_WORDS)
#undef COUNTERS_PRINT_WORDS
}

static void print_hists(FILE *out, const struct counters *c)
{
#define COUNTERS_PRINT_HIST(field, name, prometheus, help) \
  metric_print_head(out, prometheus, "histogram", help);   \
  metric_print_hist(out, prometheus, NULL, &c->field);
  COUNTERS_PLAIN_HISTS(COUNTERS_PRINT_HIST)
#undef COUNTERS_PRINT_HIST
}

/* Without canaries there is no value: 0 would look as if updates were visible at once. */
static void print_canary_age(FILE *out, const struct counters *c)
{
  static const char name[] = "sluice_canary_age_seconds";
  int64_t written_ns = atomic_load(&c->canary_written_ns);

  metric_print_head(out, name, "gauge", "Seconds since the newest canary that is visible was written");
  if (written_ns)
    metric_print_real(out, name, NULL, (double)(clock_now_ns() - written_ns) / (double)CLOCK_NS_PER_S);
}

void metrics_print_counters(const struct counters *c, FILE *out)
{
  print_counters(out, c);
  print_hists(out, c);
}

static void print_metrics(struct status *s, FILE *out)
{
  struct engine_epoch epoch;
  size_t n_failed;
  const char *backend = engine_backend_name(s->engine, &n_failed);
  struct engine_filters filters;

  engine_filters_get(s->engine, &filters);
  engine_epoch_get(s->engine, &epoch, NULL, 0);
  print_counters(out, s->counters);
  metric_print_gauge(out, "sluice_ready", "1 if the catalogue has caught up and queries are read, otherwise 0",
                     readiness_reason(s->readiness) == NULL);
  metric_print_gauge(out, "sluice_dead_letters_waiting", "Dead letters that wait for delivery",
                     counters_get(&s->counters->dead_letters_waiting));
  metric_print_gauge(out, "sluice_items", "Items in the published epoch", epoch.n_items);
  metric_print_gauge(out, "sluice_items_expired", "Of these, items that are expired at the epoch's time",
                     epoch.n_expired);
  metric_print_gauge(out, "sluice_items_embargoed", "Of these, items that are embargoed at the epoch's time",
                     epoch.n_embargoed);
  print_word(out, "sluice_backend", "1 for the backend that searches", "name", backend);
  metric_print_gauge(out, "sluice_backend_failures", "GPU backends that failed since the start; the CPU took over",
                     n_failed);
  metric_print_counter(out, "sluice_filters_evaluated_total", "Filters that searches evaluated", filters.n_evaluated);
  metric_print_counter(out, "sluice_filters_patched_total", "Filters that searches brought up to date",
                       filters.n_patched);
  metric_print_counter(out, "sluice_filters_known_total", "Filters that a search had evaluated before",
                       filters.n_known);
  print_word(out, "sluice_catalogue_phase", "1 for the current phase of the catalogue", "phase",
             catalogue_phase_word(catalogue_phase(s->catalogue)));
  catalogue_status_metrics(catalogue_report_of(s->catalogue), out);
  seen_status_metrics(s->seen, out);
  models_status_metrics(catalogue_models(s->catalogue), s->engine, out);
  metric_print_gauge(out, "sluice_epoch", "Number of the published epoch", epoch.number);
  metric_print_real_gauge(out, "sluice_epoch_age_seconds", "Seconds since the epoch was published",
                          (double)status_epoch_age_ns(s) / (double)CLOCK_NS_PER_S);
  print_canary_age(out, s->counters);
  store_metrics_print(s, out);
  certificate_metrics_print(s->config, out);
  kafka_metrics_print(out);
  process_metrics_print(out);
  print_hists(out, s->counters);
  search_metrics_print(s->searches, s->engine, out);
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
