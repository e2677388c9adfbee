/* SPDX-License-Identifier: Apache-2.0 */
/* Head, foot and tables of values of /status, as HTML. */
#include "daemon/http/pages/page_parts.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/http/print/html_print.h"

/* Return the text of a field; NULL: it is null or missing. */
static const char *text_of(const json_t *root, const char *field)
{
  return json_string_value(json_object_get(root, field));
}

void page_parts_head(FILE *out, const json_t *root)
{
  const char *not_ready = text_of(root, "not_ready");

  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
        "<noscript><meta http-equiv=\"refresh\" content=\"10\"/></noscript>"
        "<link rel=\"stylesheet\" href=\"page.css\"/><title>Sluice: ",
        out);
  html_print_text(out, not_ready ? not_ready : "ready");
  fputs("</title></head>\n<body><main>\n", out);
}

void page_parts_state(FILE *out, const json_t *root)
{
  const char *not_ready = text_of(root, "not_ready"), *role = text_of(root, "role");
  bool is_merge = role && strcmp(role, "merge") == 0;

  fprintf(out, "<h1>Sluice%s <span class=\"state%s\">", is_merge ? " merge" : "", not_ready ? " bad" : "");
  html_print_text(out, not_ready ? not_ready : "ready");
  fputs("</span></h1>\n", out);
}

static bool is_number(enum page_format format)
{
  return format == FORMAT_NUMBER || format == FORMAT_BYTES || format == FORMAT_MS_OF_US;
}

static void print_text(FILE *out, const json_t *value)
{
  if (json_is_string(value))
    html_print_text(out, json_string_value(value));
  else if (json_is_number(value))
    html_print_number(out, json_number_value(value));
  else
    fputs("-", out);
}

static void print_value(FILE *out, const json_t *value, enum page_format format)
{
  if (!json_is_number(value) || format == FORMAT_TEXT || format == FORMAT_LINE)
    print_text(out, value);
  else if (format == FORMAT_NUMBER)
    html_print_number(out, json_number_value(value));
  else if (format == FORMAT_BYTES)
    html_print_bytes(out, json_number_value(value));
  else if (format == FORMAT_MS_OF_US)
    html_print_number(out, json_number_value(value) / 1000);
  else if (format == FORMAT_DURATION)
    html_print_duration(out, json_number_value(value));
  else
    html_print_time(out, json_integer_value(value));
}

static const char *class_of(enum page_format format)
{
  if (is_number(format))
    return " class=\"number\"";
  if (format == FORMAT_TIME)
    return " class=\"time\"";
  return format == FORMAT_LINE ? " class=\"line\"" : "";
}

void page_parts_facts(FILE *out, const json_t *root, const struct page_column *facts, size_t n)
{
  fputs("<dl class=\"facts\">", out);
  for (size_t i = 0; i < n; i++) {
    fprintf(out, "<div><dt>%s</dt><dd>", facts[i].heading);
    print_value(out, json_object_get(root, facts[i].field), facts[i].format);
    fputs("</dd></div>", out);
  }
  fputs("<div><dt>Kafka</dt><dd>", out);
  print_text(out, json_object_get(json_object_get(root, "kafka"), "bootstrap"));
  fputs("</dd></div></dl>\n", out);
}

static void print_cell(FILE *out, const json_t *value, enum page_format format)
{
  fprintf(out, "<td%s>", class_of(format));
  print_value(out, value, format);
  fputs("</td>", out);
}

static void begin_table(FILE *out, const char *title, const struct page_column *columns, size_t n)
{
  fprintf(out, "<h2>%s</h2>\n<div class=\"wide\"><table><thead><tr>", title);
  for (size_t i = 0; i < n; i++)
    fprintf(out, "<th%s>%s</th>", class_of(columns[i].format), columns[i].heading);
  fputs("</tr></thead><tbody>\n", out);
}

static void end_table(FILE *out)
{
  fputs("</tbody></table></div>\n", out);
}

void page_parts_table(FILE *out, const char *title, const json_t *list, const struct page_column *columns, size_t n)
{
  if (json_array_size(list) == 0)
    return;
  begin_table(out, title, columns, n);
  for (size_t row = 0; row < json_array_size(list); row++) {
    fputs("<tr>", out);
    for (size_t i = 0; i < n; i++)
      print_cell(out, json_object_get(json_array_get(list, row), columns[i].field), columns[i].format);
    fputs("</tr>\n", out);
  }
  end_table(out);
}

/* Print a row of durations: of the last minutes, and since the start. */
static void print_times_row(FILE *out, const char *what, const json_t *recent, const json_t *all)
{
  static const struct page_column columns[] = { { "", "count", FORMAT_NUMBER },
                                                { "", "p50", FORMAT_MS_OF_US },
                                                { "", "p99", FORMAT_MS_OF_US } };

  fprintf(out, "<tr><td>%s</td>", what);
  for (size_t i = 0; i < 6; i++) {
    const json_t *times = i < 3 ? recent : all;
    bool is_known = i % 3 == 0 || json_integer_value(json_object_get(times, "count")) > 0;
    print_cell(out, is_known ? json_object_get(times, columns[i % 3].field) : NULL, columns[i % 3].format);
  }
  fputs("</tr>\n", out);
}

void page_parts_times(FILE *out, const json_t *root, const struct page_time *times, size_t n)
{
  static const struct page_column columns[] = {
    { "what", "", FORMAT_TEXT },      { "last minutes: count", "", FORMAT_NUMBER },    { "p50, ms", "", FORMAT_NUMBER },
    { "p99, ms", "", FORMAT_NUMBER }, { "since the start: count", "", FORMAT_NUMBER }, { "p50, ms", "", FORMAT_NUMBER },
    { "p99, ms", "", FORMAT_NUMBER },
  };
  const json_t *recent = json_object_get(root, "latency_us"), *all = json_object_get(root, "latency_since_start_us");

  begin_table(out, "Times", columns, sizeof columns / sizeof columns[0]);
  for (size_t i = 0; i < n; i++)
    print_times_row(out, times[i].what, json_object_get(recent, times[i].field), json_object_get(all, times[i].field));
  end_table(out);
}

void page_parts_counters(FILE *out, json_t *counters)
{
  const char *name;
  json_t *value;

  fputs("<details><summary>Counted since the start</summary><div class=\"wide\"><table><tbody>\n", out);
  json_object_foreach(counters, name, value)
  {
    fputs("<tr><td>", out);
    html_print_text(out, name);
    fputs("</td>", out);
    print_cell(out, value, FORMAT_NUMBER);
    fputs("</tr>\n", out);
  }
  fputs("</tbody></table></div></details>\n", out);
}

void page_parts_foot(FILE *out)
{
  fputs("<footer>The same for programs: <a href=\"status\">/status</a>, <a href=\"metrics\">/metrics</a>, "
        "<a href=\"readyz\">/readyz</a>, <a href=\"healthz\">/healthz</a></footer>\n"
        "</main>",
        out);
}
