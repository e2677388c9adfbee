/* SPDX-License-Identifier: Apache-2.0 */
/* The three formats of a benchmark's rows: table, JSON and Markdown. */
#include "tests/bench/bench_report.h"

#include <string.h>

#include "tests/bench/bench_machine.h"

enum { CELL_BYTES = 48, COLUMNS = 26, LIMITS_MAX = 8 };

static struct {
  const char *key;
  double value;
} limits[LIMITS_MAX];
static size_t n_limits;

struct column {
  const char *title;
  bool (*print)(const struct bench_row *row, char *text); /* false: this cell is empty */
};

static bool print_if(bool is_known, char *text, const char *format, double value)
{
  snprintf(text, CELL_BYTES, format, value);
  return is_known;
}

static bool print_ms(double value, char *text)
{
  return print_if(value > 0, text, value < 10 ? "%.4f" : value < 100 ? "%.2f" : "%.1f", value);
}

static bool method_cell(const struct bench_row *r, char *text)
{
  snprintf(text, CELL_BYTES, "%s%s%s", r->method, r->variant ? " " : "", r->variant ? r->variant : "");
  return true;
}

static bool items_cell(const struct bench_row *r, char *text)
{
  return print_if(true, text, "%.0f", (double)r->items);
}

static bool k_cell(const struct bench_row *r, char *text)
{
  return print_if(r->k > 0, text, "%.0f", (double)r->k);
}

static bool batch_cell(const struct bench_row *r, char *text)
{
  return print_if(r->batch > 0, text, "%.0f", (double)r->batch);
}

static bool median_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->median_ms, text);
}

static bool p95_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->p95_ms, text);
}

static bool p99_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->p99_ms, text);
}

static bool cpu_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->cpu_ms, text);
}

static bool cpu_p95_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->cpu_p95_ms, text);
}

static bool device_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->device_ms, text);
}

static bool device_p95_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->device_p95_ms, text);
}

static bool before_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->before_ms, text);
}

static bool after_cell(const struct bench_row *r, char *text)
{
  return print_ms(r->after_ms, text);
}

static bool target_cell(const struct bench_row *r, char *text)
{
  return print_if(r->target_ms > 0, text, "%.2f", r->target_ms);
}

static bool ceiling_cell(const struct bench_row *r, char *text)
{
  return print_if(r->of_ceiling > 0, text, "%.2f", r->of_ceiling);
}

static bool scalar_cell(const struct bench_row *r, char *text)
{
  return print_if(r->ratio_to_scalar > 0, text, "%.2f x", r->ratio_to_scalar);
}

static bool other_cell(const struct bench_row *r, char *text)
{
  snprintf(text, CELL_BYTES, "%.2f x %s", r->ratio_to_other, r->other ? r->other : "");
  return r->other;
}

static bool p95_to_scalar_cell(const struct bench_row *r, char *text)
{
  return print_if(r->p95_to_scalar > 0, text, "%.2f", r->p95_to_scalar);
}

static bool p95_step_cell(const struct bench_row *r, char *text)
{
  return print_if(r->p95_step > 0, text, "%.2f", r->p95_step);
}

static bool verdict_cell(const struct bench_row *r, char *text)
{
  snprintf(text, CELL_BYTES, "%s", r->verdict == VERDICT_EXACT ? "yes" : "no");
  return r->verdict != VERDICT_UNCHECKED;
}

static bool recall_cell(const struct bench_row *r, char *text)
{
  return print_if(r->verdict != VERDICT_UNCHECKED, text, "%.4f", r->recall);
}

static bool scored_cell(const struct bench_row *r, char *text)
{
  return print_if(r->scored > 0, text, "%.0f", r->scored);
}

static bool bytes_cell(const struct bench_row *r, char *text)
{
  return print_if(r->bytes_per_item > 0, text, "%.0f", r->bytes_per_item);
}

static bool limit_cell(const struct bench_row *r, char *text)
{
  if (r->of_memory_limit > 0)
    return print_if(true, text, "%.0f %% of memory", 100 * r->of_memory_limit);
  return print_if(r->of_fma_peak > 0, text, "%.0f %% of FMA", 100 * r->of_fma_peak);
}

static bool rate_cell(const struct bench_row *r, char *text)
{
  return print_if(r->items_per_s > 0, text, "%.0f", r->items_per_s);
}

static bool ns_cell(const struct bench_row *r, char *text)
{
  return print_if(r->ns_per_item > 0, text, "%.3f", r->ns_per_item);
}

static const struct column columns[COLUMNS] = {
  { "method", method_cell },
  { "items", items_cell },
  { "k", k_cell },
  { "batch", batch_cell },
  { "median ms", median_cell },
  { "p95 ms", p95_cell },
  { "p99 ms", p99_cell },
  { "CPU ms", cpu_cell },
  { "CPU p95", cpu_p95_cell },
  { "device ms", device_cell },
  { "device p95", device_p95_cell },
  { "before ms", before_cell },
  { "after ms", after_cell },
  { "target ms", target_cell },
  { "of ceiling", ceiling_cell },
  { "scalar / it", scalar_cell },
  { "in times", other_cell },
  { "p95 / scalar", p95_to_scalar_cell },
  { "p95 step", p95_step_cell },
  { "exact", verdict_cell },
  { "recall", recall_cell },
  { "scored", scored_cell },
  { "bytes/item", bytes_cell },
  { "limit", limit_cell },
  { "items/s", rate_cell },
  { "ns/item/query", ns_cell },
};

void report_begin(const struct bench_options *options, const char *title)
{
  const char *level = isa_name(isa_detect());

  if (options->format == BENCH_JSON)
    return;
  printf("%s%s\n%s%s, level %s, one thread unless said, seed %llu\n", options->format == BENCH_MARKDOWN ? "### " : "",
         title, options->format == BENCH_MARKDOWN ? "\n" : "", machine_cpu_name(), level,
         (unsigned long long)options->seed);
}

void report_limit(const struct bench_options *options, const char *key, const char *name, double value,
                  const char *unit)
{
  if (n_limits < LIMITS_MAX) {
    limits[n_limits].key = key;
    limits[n_limits++].value = value;
  }
  if (options->format != BENCH_JSON)
    printf("%s%s: %.1f %s\n", options->format == BENCH_MARKDOWN ? "\n" : "", name, value, unit);
}

void report_skipped(const struct bench_options *options, const char *method, const char *why)
{
  if (options->format == BENCH_JSON)
    fprintf(stderr, "bench: skipped %s: %s\n", method, why);
  else
    printf("%sskipped %s: %s\n", options->format == BENCH_MARKDOWN ? "\n" : "", method, why);
}

static void json_number(const char *key, double value)
{
  if (value > 0)
    printf(",\"%s\":%.6g", key, value);
}

static void json_row(const struct bench_options *options, const struct bench_row *r)
{
  printf("{\"workload\":\"%s\",\"items\":%zu,\"method\":\"%s\",\"k\":%zu,\"batch\":%zu,\"threads\":%zu",
         options->workload, r->items, r->method, r->k, r->batch, r->threads);
  if (r->variant)
    printf(",\"variant\":\"%s\"", r->variant);
  printf(",\"median_ms\":%.6g,\"p95_ms\":%.6g,\"runs\":%zu", r->median_ms, r->p95_ms, r->n_runs);
  json_number("p99_ms", r->p99_ms);
  json_number("cpu_median_ms", r->cpu_ms);
  json_number("cpu_p95_ms", r->cpu_p95_ms);
  if (r->device)
    printf(",\"device\":\"%s\"", r->device);
  json_number("device_median_ms", r->device_ms);
  json_number("device_p95_ms", r->device_p95_ms);
  json_number("before_median_ms", r->before_ms);
  json_number("after_median_ms", r->after_ms);
  json_number("target_ms", r->target_ms);
  json_number("of_ceiling", r->of_ceiling);
  json_number("ratio_to_scalar", r->ratio_to_scalar);
  if (r->other)
    printf(",\"other\":\"%s\",\"ratio_to_other\":%.6g", r->other, r->ratio_to_other);
  json_number("p95_to_scalar", r->p95_to_scalar);
  json_number("p95_step", r->p95_step);
  if (r->verdict != VERDICT_UNCHECKED)
    printf(",\"exact\":%s,\"recall\":%.6g", r->verdict == VERDICT_EXACT ? "true" : "false", r->recall);
  json_number("scored", r->scored);
  json_number("bytes_per_item", r->bytes_per_item);
  json_number("of_memory_limit", r->of_memory_limit);
  json_number("of_fma_peak", r->of_fma_peak);
  json_number("items_per_s", r->items_per_s);
  json_number("ns_per_item_and_query", r->ns_per_item);
  for (size_t i = 0; i < n_limits; i++)
    json_number(limits[i].key, limits[i].value);
  printf(",\"cpu\":\"%s\",\"isa\":\"%s\",\"seed\":%llu}\n", machine_cpu_name(), isa_name(isa_detect()),
         (unsigned long long)options->seed);
}

/* Return the text of a cell: "-" if it is empty. */
static void print_cell(const struct column *column, const struct bench_row *row, char *text)
{
  if (!column->print(row, text))
    snprintf(text, CELL_BYTES, "-");
}

/* Return the width of a column's widest cell; 0 if all are empty. */
static int column_width(const struct column *column, const struct bench_row *rows, size_t n)
{
  char text[CELL_BYTES];
  size_t width = strlen(column->title);
  bool is_used = false;

  for (size_t i = 0; i < n; i++) {
    is_used |= column->print(&rows[i], text);
    width = is_used && strlen(text) > width ? strlen(text) : width;
  }
  return is_used ? (int)width : 0;
}

/* Print one line of the table; row NULL: the titles. */
static void print_line(bool is_markdown, const int *widths, const struct bench_row *row)
{
  char text[CELL_BYTES];

  for (size_t c = 0; c < COLUMNS; c++) {
    if (!widths[c])
      continue;
    if (row)
      print_cell(&columns[c], row, text);
    else
      snprintf(text, sizeof text, "%s", columns[c].title);
    printf(is_markdown ? "| %*s " : "%*s  ", c == 0 ? -widths[c] : widths[c], text);
  }
  printf(is_markdown ? "|\n" : "\n");
}

void report_rows(const struct bench_options *options, const struct bench_row *rows, size_t n)
{
  bool is_markdown = options->format == BENCH_MARKDOWN;
  int widths[COLUMNS];

  if (options->format == BENCH_JSON) {
    for (size_t i = 0; i < n; i++)
      json_row(options, &rows[i]);
    fflush(stdout);
    return;
  }
  for (size_t c = 0; c < COLUMNS; c++)
    widths[c] = column_width(&columns[c], rows, n);
  printf("\n");
  print_line(is_markdown, widths, NULL);
  for (size_t c = 0; is_markdown && c < COLUMNS; c++) {
    if (widths[c])
      printf(c == 0 ? "|---" : "|--:");
  }
  printf(is_markdown ? "|\n" : "");
  for (size_t i = 0; i < n; i++)
    print_line(is_markdown, widths, &rows[i]);
  fflush(stdout);
}
