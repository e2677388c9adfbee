/* SPDX-License-Identifier: Apache-2.0 */
/* Percentiles by sorting, so that they are exact, and how they are printed. */
#include "daemon/ctl/bench/ctl_bench_report.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/text/ctl_format.h"
#include "ingest/wire/wire_client.h"

enum { BAR_COLUMNS = 50 };

/* Above these shares, what was measured is what sluicectl could do. */
static const double LATE_SHARE = 0.01, READER_SHARE = 0.8;

const struct ctl_bench_percentile ctl_bench_percentiles[CTL_BENCH_PERCENTILES] = {
  { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p99.9", 0.999 }, { "max", 1 }
};

static int by_size(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

/* Sort the values and take the percentiles: the smallest value that at least this share does not exceed. */
static void take_percentiles(int64_t *values, uint64_t n, int64_t out[CTL_BENCH_PERCENTILES])
{
  if (n == 0)
    return;
  qsort(values, n, sizeof *values, by_size);
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++) {
    uint64_t rank = (uint64_t)ceil(ctl_bench_percentiles[i].share * (double)n);
    out[i] = values[rank < 1 ? 0 : rank - 1];
  }
}

/* values  sorted */
static void fill_histogram(const int64_t *values, uint64_t n, struct ctl_bench_histogram *h)
{
  static const double narrowest = 1.1; /* bins of less than a tenth show noise */

  if (n == 0)
    return;
  h->least_ns = fmax(1, (double)values[0]);
  h->factor = fmax(narrowest, pow(fmax(1, (double)values[n - 1]) / h->least_ns, 1.0 / CTL_BENCH_BINS));
  for (uint64_t i = 0; i < n; i++) {
    double bin = floor(log(fmax(1, (double)values[i]) / h->least_ns) / log(h->factor));
    size_t at = bin < 0 ? 0 : bin >= CTL_BENCH_BINS ? CTL_BENCH_BINS - 1 : (size_t)bin;
    h->counts[at]++;
    h->n_bins = at + 1 > h->n_bins ? at + 1 : h->n_bins;
  }
}

err_t ctl_bench_report_make(const struct ctl_bench_result *result, struct ctl_bench_report *out)
{
  AUTO(mem_free) int64_t *values = NULL;
  struct ctl_bench_report r = { .n_sent = result->n_sent };
  uint64_t n = 0;

  TRY(mem_array(result->n_sent + 1, sizeof *values, &values));
#define TAKE(field, unit_ns, to)                                   \
  n = 0;                                                           \
  for (uint64_t i = 0; i < result->n_sent; i++)                    \
    if (result->samples[i].fate == CTL_BENCH_ANSWERED)             \
      values[n++] = (int64_t)result->samples[i].field * (unit_ns); \
  take_percentiles(values, n, to)
  TAKE(queued_us, CLOCK_NS_PER_US, r.queued_ns);
  TAKE(searched_us, CLOCK_NS_PER_US, r.searched_ns);
  TAKE(latency_ns, 1, r.latency_ns);
#undef TAKE
  fill_histogram(values, n, &r.histogram);
  r.n_answered = n;
  for (size_t i = 0; i < CTL_BENCH_ERRORS; i++)
    r.n_errors += result->n_errors[i];
  r.n_missing = r.n_sent - r.n_answered - r.n_errors;
  *out = r;
  return ERR_OK;
}

const char *ctl_bench_report_doubt(const struct ctl_bench_result *result, char *text, size_t size)
{
  double late = result->n_sent ? (double)result->n_late / (double)result->n_sent : 0;

  if (late > LATE_SHARE)
    snprintf(text, size,
             "sluicectl itself was the limit: %.1f %% of the queries were sent late: use a lower --rate, or "
             "another machine, or several at a time",
             late * 100);
  else if (result->reader_share > READER_SHARE)
    snprintf(text, size,
             "sluicectl itself was the limit: taking the answers needed %.0f %% of a core: use a lower --rate "
             "or --k, or several at a time",
             result->reader_share * 100);
  else
    return NULL;
  return text;
}

/* ---- For people ---- */

static void print_head(const struct ctl_bench_setting *s, FILE *out)
{
  AUTO(mem_free) char *fields = json_object_size(s->fields) > 0 ? json_dumps(s->fields, JSON_REAL_PRECISION(17)) : NULL;
  char rate[32];

  snprintf(rate, sizeof rate, "%g", s->per_s);
  fprintf(out, "bench     %s queries/s to %s, k %s, method %s\n", rate, s->space ? s->space : "several spaces",
          ctl_format_count(s->k).s, s->method ? s->method : "exact");
  if (fields)
    fprintf(out, "with      %s\n", fields);
  if (s->queries)
    fprintf(out, "queries   %s of %s, again and again\n", ctl_format_count(s->n_queries).s, s->queries);
  else
    fprintf(out, "queries   %s random ones of --seed %llu, again and again\n", ctl_format_count(s->n_queries).s,
            (unsigned long long)s->seed);
}

static void print_errors(const struct ctl_bench_report *report, const struct ctl_bench_result *result, FILE *out)
{
  fprintf(out, "answered  %s; %s with an error; %s %s\n", ctl_format_count(report->n_answered).s,
          ctl_format_count(report->n_errors).s, ctl_format_count(report->n_missing).s,
          result->is_interrupted ? "open or missing at the end" : "missing");
  for (size_t i = 0; i < CTL_BENCH_ERRORS; i++) {
    if (result->n_errors[i])
      fprintf(out, "          %s %s\n", ctl_format_count(result->n_errors[i]).s, wire_error_name((enum answer_error)i));
  }
  if (result->n_undelivered)
    fprintf(out, "          Kafka did not take %s\n", ctl_format_count(result->n_undelivered).s);
  if (result->n_twice)
    fprintf(out, "          %s further answers to queries that had one\n", ctl_format_count(result->n_twice).s);
  if (result->n_unreadable)
    fprintf(out, "          %s values in the answer topic that are no answers\n",
            ctl_format_count(result->n_unreadable).s);
  if (*result->message)
    fprintf(out, "          the first: %s\n", result->message);
}

static void print_row(const char *name, const int64_t values[CTL_BENCH_PERCENTILES], FILE *out)
{
  fprintf(out, "%-11s", name);
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++)
    fprintf(out, " %9s", ctl_format_span(values[i]).s);
  fputc('\n', out);
}

static void print_percentiles(const struct ctl_bench_report *report, FILE *out)
{
  fprintf(out, "\n%-11s", "");
  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++)
    fprintf(out, " %9s", ctl_bench_percentiles[i].name);
  fputc('\n', out);
  print_row("latency", report->latency_ns, out);
  print_row("  queued", report->queued_ns, out);
  print_row("  searched", report->searched_ns, out);
}

static void print_histogram(const struct ctl_bench_histogram *h, FILE *out)
{
  uint64_t most = 1;

  for (size_t i = 0; i < h->n_bins; i++)
    most = h->counts[i] > most ? h->counts[i] : most;
  fputs("\n  latency from\n", out);
  for (size_t i = 0; i < h->n_bins; i++) {
    size_t n = (size_t)((double)h->counts[i] / (double)most * BAR_COLUMNS);
    fprintf(out, "  %10s  ", ctl_format_span((int64_t)(h->least_ns * pow(h->factor, (double)i))).s);
    for (size_t c = 0; c < (h->counts[i] && n == 0 ? 1 : n); c++)
      fputc('#', out);
    fprintf(out, "%s%s\n", h->counts[i] ? " " : "", ctl_format_count(h->counts[i]).s);
  }
}

void ctl_bench_report_print(const struct ctl_bench_report *report, const struct ctl_bench_result *result,
                            const struct ctl_bench_setting *setting, FILE *out)
{
  print_head(setting, out);
  fprintf(out, "sent      %s in %s (%s/s); %s late by more than 1 ms, at most by %s\n",
          ctl_format_count(report->n_sent).s, ctl_format_span(result->took_ns).s,
          ctl_format_rate(report->n_sent, result->took_ns).s, ctl_format_count(result->n_late).s,
          ctl_format_span(result->latest_ns).s);
  print_errors(report, result, out);
  if (report->n_answered == 0)
    return;
  print_percentiles(report, out);
  print_histogram(&report->histogram, out);
}

/* ---- For programs ---- */

static json_t *percentiles_json(const int64_t values[CTL_BENCH_PERCENTILES])
{
  json_t *object = json_object();

  for (size_t i = 0; i < CTL_BENCH_PERCENTILES; i++)
    json_object_set_new(object, ctl_bench_percentiles[i].name, json_integer(values[i] / CLOCK_NS_PER_US));
  return object;
}

static json_t *errors_json(const struct ctl_bench_result *result)
{
  json_t *object = json_object();

  for (size_t i = 0; i < CTL_BENCH_ERRORS; i++) {
    if (result->n_errors[i])
      json_object_set_new(object, wire_error_name((enum answer_error)i), json_integer((json_int_t)result->n_errors[i]));
  }
  return object;
}

static json_t *histogram_json(const struct ctl_bench_histogram *h)
{
  json_t *list = json_array();

  for (size_t i = 0; i < h->n_bins; i++)
    json_array_append_new(list, json_pack("{s:f,s:I}", "from_us", h->least_ns * pow(h->factor, (double)i) / 1000,
                                          "count", (json_int_t)h->counts[i]));
  return list;
}

static void put_text(json_t *object, const char *name, const char *text)
{
  json_object_set_new(object, name, text ? json_string(text) : json_null());
}

static void put_count(json_t *object, const char *name, uint64_t n)
{
  json_object_set_new(object, name, json_integer((json_int_t)n));
}

static void put_setting(json_t *root, const struct ctl_bench_setting *s)
{
  put_text(root, "space", s->space);
  put_text(root, "method", s->method ? s->method : "exact");
  put_text(root, "filter", json_string_value(json_object_get(s->fields, "filter")));
  json_object_set_new(root, "fields", s->fields ? json_incref(s->fields) : json_object());
  put_text(root, "queries", s->queries);
  put_count(root, "k", s->k);
  put_count(root, "n_queries", s->n_queries);
  put_text(root, "seed", s->queries ? NULL : ctl_format_number(s->seed).s);
  json_object_set_new(root, "rate", json_real(s->per_s));
}

void ctl_bench_report_print_json(const struct ctl_bench_report *report, const struct ctl_bench_result *result,
                                 const struct ctl_bench_setting *setting, FILE *out)
{
  json_t *root = json_object();
  char doubt[256];

  put_setting(root, setting);
  put_count(root, "sent", report->n_sent);
  json_object_set_new(root, "sent_s", json_real((double)result->took_ns / (double)CLOCK_NS_PER_S));
  put_count(root, "late", result->n_late);
  put_count(root, "latest_us", (uint64_t)(result->latest_ns / CLOCK_NS_PER_US));
  put_count(root, "answered", report->n_answered);
  put_count(root, "missing", report->n_missing);
  put_count(root, "undelivered", result->n_undelivered);
  put_count(root, "twice", result->n_twice);
  put_count(root, "unreadable", result->n_unreadable);
  json_object_set_new(root, "errors", errors_json(result));
  json_object_set_new(root, "interrupted", json_boolean(result->is_interrupted));
  put_text(root, "doubt", ctl_bench_report_doubt(result, doubt, sizeof doubt));
  json_object_set_new(root, "latency_us", percentiles_json(report->latency_ns));
  json_object_set_new(root, "queued_us", percentiles_json(report->queued_ns));
  json_object_set_new(root, "searched_us", percentiles_json(report->searched_ns));
  json_object_set_new(root, "histogram", histogram_json(&report->histogram));
  if (json_dumpf(root, out, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6)) == 0)
    fputc('\n', out);
  json_decref(root);
}
