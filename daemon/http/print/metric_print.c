/* SPDX-License-Identifier: Apache-2.0 */
/* Print heads, labels, values and histograms as Prometheus reads them. */
#include "daemon/http/print/metric_print.h"

#include <inttypes.h>

/* Bucket bounds are powers of two from 64 us to 67 s. Buckets of struct hist end exactly there, so counts are exact. */
enum { BUCKETS_FROM = 6, BUCKETS_TO = 26 };

void metric_print_head(FILE *out, const char *name, const char *type, const char *help)
{
  fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Print a label's value. Prometheus wants backslash, quote and line feed escaped. */
static void print_escaped(FILE *out, const char *text)
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

/* Print the labels, and after them `last`, such as le="0.1"; NULL: there is no other label. */
static void print_labels(FILE *out, const struct metric_labels *labels, const char *last)
{
  char before = '{';

  for (size_t i = 0; labels && i < METRIC_LABELS_MAX && labels->label[i].name; i++) {
    fprintf(out, "%c%s=\"", before, labels->label[i].name);
    print_escaped(out, labels->label[i].value);
    fputc('"', out);
    before = ',';
  }
  if (last)
    fprintf(out, "%c%s", before, last);
  if (last || before == ',')
    fputc('}', out);
}

void metric_print_count(FILE *out, const char *name, const struct metric_labels *labels, uint64_t value)
{
  fputs(name, out);
  print_labels(out, labels, NULL);
  fprintf(out, " %" PRIu64 "\n", value);
}

void metric_print_real(FILE *out, const char *name, const struct metric_labels *labels, double value)
{
  fputs(name, out);
  print_labels(out, labels, NULL);
  fprintf(out, " %.6f\n", value);
}

static void print_bucket(FILE *out, const char *name, const struct metric_labels *labels, const char *le, uint64_t n)
{
  fprintf(out, "%s_bucket", name);
  print_labels(out, labels, le);
  fprintf(out, " %" PRIu64 "\n", n);
}

void metric_print_hist(FILE *out, const char *name, const struct metric_labels *labels, const struct hist *h)
{
  struct hist_powers p;
  char le[32];

  hist_powers_get(h, &p);
  for (int i = BUCKETS_FROM; i <= BUCKETS_TO; i++) {
    snprintf(le, sizeof le, "le=\"%.6f\"", (double)(UINT64_C(1) << i) / 1e6);
    print_bucket(out, name, labels, le, p.below[i]);
  }
  print_bucket(out, name, labels, "le=\"+Inf\"", p.n);
  fprintf(out, "%s_sum", name);
  print_labels(out, labels, NULL);
  fprintf(out, " %.6f\n%s_count", (double)atomic_load_explicit(&h->sum, memory_order_relaxed) / 1e6, name);
  print_labels(out, labels, NULL);
  fprintf(out, " %" PRIu64 "\n", p.n);
}

void metric_print_counter(FILE *out, const char *name, const char *help, uint64_t value)
{
  metric_print_head(out, name, "counter", help);
  metric_print_count(out, name, NULL, value);
}

void metric_print_gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
  metric_print_head(out, name, "gauge", help);
  metric_print_count(out, name, NULL, value);
}

void metric_print_real_gauge(FILE *out, const char *name, const char *help, double value)
{
  metric_print_head(out, name, "gauge", help);
  metric_print_real(out, name, NULL, value);
}
