/* SPDX-License-Identifier: Apache-2.0 */
/* Print the page from the fields of /status. */
#include "daemon/merge/merge_page.h"

#include <stdlib.h>

#include "daemon/http/pages/page_parts.h"

static void print_facts(FILE *out, json_t *root)
{
  static const struct page_column facts[] = {
    { "running for", "uptime_s", FORMAT_DURATION },
    { "memory", "memory_bytes", FORMAT_BYTES },
    { "version", "version", FORMAT_TEXT },
  };

  page_parts_facts(out, root, facts, sizeof facts / sizeof facts[0]);
}

static void print_shards(FILE *out, const json_t *root)
{
  static const struct page_column shards[] = { { "shard", "shard", FORMAT_NUMBER },
                                               { "of", "of", FORMAT_NUMBER },
                                               { "heard, s ago", "heard_s", FORMAT_NUMBER } };

  PAGE_PARTS_TABLE(out, "Shards that were heard of", json_object_get(root, "shards"), shards);
}

/* Print what is counted that people look at first, in one row. */
static void print_queries(FILE *out, json_t *root)
{
  static const struct page_column columns[] = { { "answered", "answers", FORMAT_NUMBER },
                                                { "answered with an error", "errors", FORMAT_NUMBER },
                                                { "with shards missing", "incomplete", FORMAT_NUMBER },
                                                { "waiting for parts", "open_queries", FORMAT_NUMBER },
                                                { "memory of these", "open_bytes", FORMAT_BYTES } };
  json_t *list = json_array();

  json_array_append(list, json_object_get(root, "counters"));
  PAGE_PARTS_TABLE(out, "Queries", list, columns);
  json_decref(list);
}

static void print_times(FILE *out, const json_t *root)
{
  static const struct page_time times[] = {
    { "answer", "query to answer" },
    { "wait", "first part of a query to its last" },
    { "send", "sending a batch of answers" },
  };

  page_parts_times(out, root, times, sizeof times / sizeof times[0]);
}

static void print_page(FILE *out, json_t *root)
{
  page_parts_head(out, root);
  page_parts_state(out, root);
  print_facts(out, root);
  print_shards(out, root);
  print_queries(out, root);
  print_times(out, root);
  page_parts_counters(out, json_object_get(root, "counters"));
  page_parts_foot(out);
  fputs("<script src=\"page.js\"></script></body></html>\n", out);
}

char *merge_page_html(json_t *root)
{
  char *text = NULL;
  size_t n;
  FILE *out = open_memstream(&text, &n);

  if (!out)
    return NULL;
  print_page(out, root);
  if (fclose(out) == 0)
    return text;
  free(text);
  return NULL;
}
