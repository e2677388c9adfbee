/* SPDX-License-Identifier: Apache-2.0 */
/* Print the status page from the fields of /status and the history. */
#include "daemon/http/page.h"

#include <stddef.h>
#include <stdlib.h>

#include "daemon/http/chart.h"
#include "daemon/http/html_print.h"
#include "daemon/http/status_json.h"

/* How a value of /status is shown. */
enum format { FORMAT_TEXT, FORMAT_LINE, FORMAT_NUMBER, FORMAT_BYTES, FORMAT_MS_OF_US, FORMAT_DURATION, FORMAT_TIME };

struct column {
  const char *heading, *field;
  enum format format;
};

static bool is_number(enum format format)
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

static void print_value(FILE *out, const json_t *value, enum format format)
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

static const char *class_of(enum format format)
{
  if (is_number(format))
    return " class=\"number\"";
  if (format == FORMAT_TIME)
    return " class=\"time\"";
  return format == FORMAT_LINE ? " class=\"line\"" : "";
}

static void print_cell(FILE *out, const json_t *value, enum format format)
{
  fprintf(out, "<td%s>", class_of(format));
  print_value(out, value, format);
  fputs("</td>", out);
}

static void begin_table(FILE *out, const char *title, const struct column *columns, size_t n)
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

/* Print a list of objects, a row each. Nothing if there are none. */
static void print_table(FILE *out, const char *title, const json_t *list, const struct column *columns, size_t n)
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

#define PRINT_TABLE(out, title, list, columns) \
  print_table(out, title, list, columns, sizeof(columns) / sizeof(columns)[0])

/* Parts of the page -------------------- */

static void print_head(FILE *out, const char *state)
{
  fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
        "<noscript><meta http-equiv=\"refresh\" content=\"10\"/></noscript>"
        "<link rel=\"stylesheet\" href=\"page.css\"/><title>Sluice: ",
        out);
  html_print_text(out, state);
  fputs("</title></head>\n<body><main>\n", out);
}

static void print_state(FILE *out, const json_t *root)
{
  const char *not_ready = json_string_value(json_object_get(root, "not_ready"));
  const char *problem = json_string_value(json_object_get(root, "problem"));

  fprintf(out, "<h1>Sluice <span class=\"state%s\">", not_ready ? " bad" : "");
  html_print_text(out, not_ready ? not_ready : "ready");
  fputs("</span></h1>\n", out);
  if (!problem)
    return;
  fputs("<p class=\"problem\">The catalogue: ", out);
  html_print_text(out, problem);
  fputs("</p>\n", out);
}

static void print_facts(FILE *out, const json_t *root)
{
  static const struct column facts[] = {
    { "items", "items", FORMAT_NUMBER },
    { "epoch", "epoch", FORMAT_NUMBER },
    { "age of the epoch", "epoch_age_s", FORMAT_DURATION },
    { "running for", "uptime_s", FORMAT_DURATION },
    { "memory", "memory_bytes", FORMAT_BYTES },
    { "store", "store_bytes", FORMAT_BYTES },
    { "backend", "backend", FORMAT_TEXT },
    { "instruction set", "isa", FORMAT_TEXT },
    { "version", "version", FORMAT_TEXT },
  };
  const json_t *kafka = json_object_get(root, "kafka");

  fputs("<dl class=\"facts\">", out);
  for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
    fprintf(out, "<div><dt>%s</dt><dd>", facts[i].heading);
    print_value(out, json_object_get(root, facts[i].field), facts[i].format);
    fputs("</dd></div>", out);
  }
  fputs("<div><dt>Kafka</dt><dd>", out);
  print_text(out, json_object_get(kafka, "bootstrap"));
  fputs("</dd></div></dl>\n", out);
}

static void print_charts(FILE *out, struct history *history)
{
#define LINE(name, field, is_absent)                \
  {                                                 \
    name, offsetof(struct moment, field), is_absent \
  }
  static const struct chart charts[] = {
    { "Queries a second", { LINE("", queries_per_s, false) }, 1 },
    { "Query to answer, ms", { LINE("p50", answer_p50_ms, true), LINE("p99", answer_p99_ms, true) }, 2 },
    { "Updates a second", { LINE("", updates_per_s, false) }, 1 },
    { "Update to visible, ms", { LINE("p50", visible_p50_ms, true), LINE("p99", visible_p99_ms, true) }, 2 },
    { "Problems a second", { LINE("error answers", errors_per_s, false), LINE("dead letters", letters_per_s, false) }, 2 },
    { "Catalogue lag, records", { LINE("", lag_records, false) }, 1 },
  };
#undef LINE
  struct moment moments[HISTORY_MAX];
  size_t n = history_get(history, moments);

  fputs("<h2>The last ten minutes</h2>\n<div class=\"charts\">\n", out);
  for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++)
    chart_print(out, &charts[i], moments, n);
  fputs("</div>\n", out);
}

/* Print a row of durations: of the last minutes, and since the start. */
static void print_times_row(FILE *out, const char *what, const json_t *recent, const json_t *all)
{
  static const struct column columns[] = { { "", "count", FORMAT_NUMBER },
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

static void print_times(FILE *out, const json_t *root)
{
  static const struct column columns[] = {
    { "what", "", FORMAT_TEXT },      { "last minutes: count", "", FORMAT_NUMBER },    { "p50, ms", "", FORMAT_NUMBER },
    { "p99, ms", "", FORMAT_NUMBER }, { "since the start: count", "", FORMAT_NUMBER }, { "p50, ms", "", FORMAT_NUMBER },
    { "p99, ms", "", FORMAT_NUMBER },
  };
  static const char *const times[][2] = {
    { "answer", "query to answer" },    { "queued", "waiting for a search" },       { "search", "search of a batch" },
    { "visible", "update to visible" }, { "seen", "reading what a user has seen" },
  };
  const json_t *recent = json_object_get(root, "latency_us"), *all = json_object_get(root, "latency_since_start_us");

  begin_table(out, "Times", columns, sizeof columns / sizeof columns[0]);
  for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
    print_times_row(out, times[i][1], json_object_get(recent, times[i][0]), json_object_get(all, times[i][0]));
  end_table(out);
}

static void print_catalogue(FILE *out, const json_t *root)
{
  static const struct column spaces[] = { { "space", "name", FORMAT_TEXT },
                                          { "generation", "generation", FORMAT_NUMBER },
                                          { "similarity", "similarity", FORMAT_TEXT },
                                          { "items", "items", FORMAT_NUMBER },
                                          { "not expired", "alive", FORMAT_NUMBER },
                                          { "bytes an item", "bytes_per_item", FORMAT_NUMBER } };
  static const struct column attributes[] = { { "attribute", "name", FORMAT_TEXT },
                                              { "type", "type", FORMAT_TEXT },
                                              { "items that have it", "items", FORMAT_NUMBER } };
  static const struct column partitions[] = { { "partition", "partition", FORMAT_NUMBER },
                                              { "next offset", "next", FORMAT_NUMBER },
                                              { "end", "end", FORMAT_NUMBER },
                                              { "not applied yet", "lag", FORMAT_NUMBER },
                                              { "oldest of these, s", "age_s", FORMAT_NUMBER } };

  PRINT_TABLE(out, "Spaces", json_object_get(root, "spaces"), spaces);
  PRINT_TABLE(out, "Attributes", json_object_get(root, "attributes"), attributes);
  PRINT_TABLE(out, "Partitions of the catalogue", json_object_get(root, "catalogue_log"), partitions);
  PRINT_TABLE(out, "Partitions of the seen topic", json_object_get(json_object_get(root, "seen"), "partitions"),
              partitions);
}

static void print_complaints(FILE *out, const json_t *root)
{
  static const struct column columns[] = { { "UTC", "unix_ms", FORMAT_TIME },
                                           { "level", "level", FORMAT_TEXT },
                                           { "line", "line", FORMAT_LINE } };

  PRINT_TABLE(out, "Newest warnings and errors", json_object_get(root, "complaints"), columns);
}

static void print_counters(FILE *out, json_t *root)
{
  const char *name;
  json_t *value;

  fputs("<details><summary>Counted since the start</summary><div class=\"wide\"><table><tbody>\n", out);
  json_object_foreach(json_object_get(root, "counters"), name, value)
  {
    fputs("<tr><td>", out);
    html_print_text(out, name);
    fputs("</td>", out);
    print_cell(out, value, FORMAT_NUMBER);
    fputs("</tr>\n", out);
  }
  fputs("</tbody></table></div></details>\n", out);
}

/* A box that shows an item. It needs the script, which makes it visible, and is outside of what the script renews. */
static void print_look_up(FILE *out)
{
  fputs("<form id=\"look-up\" hidden=\"\"><label>Show the item <input name=\"key\" required=\"\" "
        "autocomplete=\"off\" placeholder=\"its key\"/></label> <button>Show</button><pre></pre></form>",
        out);
}

static void print_page(FILE *out, struct status *s, json_t *root, bool shows_data)
{
  const char *not_ready = json_string_value(json_object_get(root, "not_ready"));

  print_head(out, not_ready ? not_ready : "ready");
  print_state(out, root);
  print_facts(out, root);
  print_charts(out, &s->history);
  print_times(out, root);
  print_catalogue(out, root);
  print_complaints(out, root);
  print_counters(out, root);
  fputs("<footer>The same for programs: <a href=\"status\">/status</a>, <a href=\"metrics\">/metrics</a>, "
        "<a href=\"readyz\">/readyz</a>, <a href=\"healthz\">/healthz</a></footer>\n"
        "</main>",
        out);
  if (shows_data)
    print_look_up(out);
  fputs("<script src=\"page.js\"></script></body></html>\n", out);
}

char *page_html(struct status *s, bool shows_data)
{
  json_t *root = status_json_tree(s, shows_data);
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  if (!out) {
    json_decref(root);
    return NULL;
  }
  print_page(out, s, root, shows_data);
  json_decref(root);
  if (fclose(out) == 0)
    return text;
  free(text);
  return NULL;
}
