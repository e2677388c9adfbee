/* SPDX-License-Identifier: Apache-2.0 */
/* Print the status page from the fields of /status and the history. */
#include "daemon/http/pages/page.h"

#include <stddef.h>
#include <stdlib.h>

#include "daemon/http/pages/chart.h"
#include "daemon/http/print/html_print.h"
#include "daemon/http/pages/page_parts.h"
#include "daemon/http/status_json.h"
#include "daemon/http/pages/try_page.h"

/* Parts of the page -------------------- */

static void print_state(FILE *out, const json_t *root)
{
  const char *problem = json_string_value(json_object_get(root, "problem"));

  page_parts_state(out, root);
  if (!problem)
    return;
  fputs("<p class=\"problem\">The catalogue: ", out);
  html_print_text(out, problem);
  fputs("</p>\n", out);
}

static void print_facts(FILE *out, const json_t *root)
{
  static const struct page_column facts[] = {
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

  page_parts_facts(out, root, facts, sizeof facts / sizeof facts[0]);
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
    { "Problems a second",
      { LINE("error answers", errors_per_s, false), LINE("dead letters", letters_per_s, false) },
      2 },
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

static void print_times(FILE *out, const json_t *root)
{
  static const struct page_time times[] = {
    { "answer", "query to answer" },    { "queued", "waiting for a search" },       { "search", "search of a batch" },
    { "visible", "update to visible" }, { "seen", "reading what a user has seen" },
  };

  page_parts_times(out, root, times, sizeof times / sizeof times[0]);
}

static void print_catalogue(FILE *out, const json_t *root)
{
  static const struct page_column spaces[] = { { "space", "name", FORMAT_TEXT },
                                               { "generation", "generation", FORMAT_NUMBER },
                                               { "similarity", "similarity", FORMAT_TEXT },
                                               { "items", "items", FORMAT_NUMBER },
                                               { "not expired", "alive", FORMAT_NUMBER },
                                               { "bytes an item", "bytes_per_item", FORMAT_NUMBER } };
  static const struct page_column attributes[] = { { "attribute", "name", FORMAT_TEXT },
                                                   { "type", "type", FORMAT_TEXT },
                                                   { "items that have it", "items", FORMAT_NUMBER } };
  static const struct page_column partitions[] = { { "partition", "partition", FORMAT_NUMBER },
                                                   { "next offset", "next", FORMAT_NUMBER },
                                                   { "end", "end", FORMAT_NUMBER },
                                                   { "not applied yet", "lag", FORMAT_NUMBER },
                                                   { "oldest of these, s", "age_s", FORMAT_NUMBER } };

  PAGE_PARTS_TABLE(out, "Spaces", json_object_get(root, "spaces"), spaces);
  PAGE_PARTS_TABLE(out, "Attributes", json_object_get(root, "attributes"), attributes);
  PAGE_PARTS_TABLE(out, "Partitions of the catalogue", json_object_get(root, "catalogue_log"), partitions);
  PAGE_PARTS_TABLE(out, "Partitions of the seen topic", json_object_get(json_object_get(root, "seen"), "partitions"),
                   partitions);
}

static void print_complaints(FILE *out, const json_t *root)
{
  static const struct page_column columns[] = { { "UTC", "unix_ms", FORMAT_TIME },
                                                { "level", "level", FORMAT_TEXT },
                                                { "line", "line", FORMAT_LINE } };

  PAGE_PARTS_TABLE(out, "Newest warnings and errors", json_object_get(root, "complaints"), columns);
}

/* A box that shows an item. It needs the script, which makes it visible, and is outside of what the script renews. */
static void print_look_up(FILE *out)
{
  fputs("<form id=\"look-up\" hidden=\"\"><label>Show the item <input name=\"key\" required=\"\" "
        "autocomplete=\"off\" placeholder=\"its key\"/></label> <button>Show</button><pre></pre></form>",
        out);
}

/* A box to try a query. Without scripts it is a page of its own, which is not renewed while somebody types. */
static void print_try(FILE *out, const struct status *s)
{
  try_form_print(out, s, NULL, " hidden=\"\"");
  fputs("<section id=\"tried\" aria-live=\"polite\"></section>"
        "<noscript><p><a href=\"try\">Try a query by an item's key</a></p></noscript>\n",
        out);
}

static void print_page(FILE *out, struct status *s, json_t *root, bool shows_data)
{
  page_parts_head(out, root);
  print_state(out, root);
  print_facts(out, root);
  print_charts(out, &s->history);
  print_times(out, root);
  print_catalogue(out, root);
  print_complaints(out, root);
  page_parts_counters(out, json_object_get(root, "counters"));
  page_parts_foot(out);
  if (shows_data)
    print_look_up(out);
  if (shows_data && s->trial)
    print_try(out, s);
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
