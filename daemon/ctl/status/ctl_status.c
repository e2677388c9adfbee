/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl status: show the daemon's status. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/status/ctl_rebuild.h"
#include "daemon/ctl/status/ctl_status_catalogue.h"
#include "daemon/ctl/text/ctl_print.h"

static bool is_merge(const json_t *status)
{
  return strcmp(ctl_json_text(status, "role"), "merge") == 0;
}

/* Print the first line, up to how long the daemon has been up. */
static void print_state(const json_t *status)
{
  double uptime_s = json_number_value(json_object_get(status, "uptime_s"));
  bool is_ready = json_is_true(json_object_get(status, "ready"));
  const json_t *shard = json_object_get(status, "shard");

  printf("sluiced %s, %s", ctl_json_text(status, "version"), is_merge(status) ? "merge, " : "");
  if (json_is_object(shard))
    printf("shard %" PRIu64 " of %" PRIu64 ", ", ctl_json_count(shard, "index"), ctl_json_count(shard, "of"));
  printf("%s%s, up %s", is_ready ? "ready" : "NOT READY: ", is_ready ? "" : ctl_json_text(status, "not_ready"),
         ctl_format_span((int64_t)(uptime_s * (double)CLOCK_NS_PER_S)).s);
}

static void print_head(const json_t *status)
{
  const char *reason = json_string_value(json_object_get(status, "backend_reason"));
  uint64_t n_items = ctl_json_count(status, "items");

  print_state(status);
  printf(", %s kernels\n", ctl_json_text(status, "isa"));
  if (json_is_string(json_object_get(status, "problem")))
    printf("problem    %s\n", ctl_json_text(status, "problem"));
  printf("backend    %s%s%s\n", ctl_json_text(status, "backend"), reason ? ", because the GPU is NOT USED: " : "",
         reason ? reason : "");
  printf("catalogue  %s %s, epoch %" PRIu64 ", published %s ago\n", ctl_format_count(n_items).s,
         ctl_format_plural(n_items, "item", "items"), ctl_json_count(status, "epoch"),
         ctl_format_span((int64_t)(json_number_value(json_object_get(status, "epoch_age_s")) * 1e9)).s);
}

static void print_kafka(const json_t *status)
{
  static const struct {
    const char *name;
    const char *label;
  } rows[] = {
    { "bootstrap", "broker" },        { "catalogue_topic", "items" }, { "query_topic", "queries" },
    { "partials_topic", "partials" }, { "answer_topic", "answers" },  { "dead_letter_topic", "dead letters" },
    { "seen_topic", "seen" },
  };
  const json_t *kafka = json_object_get(status, "kafka");

  puts("Kafka");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (json_is_string(json_object_get(kafka, rows[i].name))) /* null: no such topic is configured */
      printf("  %-16s %s\n", rows[i].label, ctl_json_text(kafka, rows[i].name));
  }
}

static void print_counters(json_t *status)
{
  const char *name;
  json_t *value;

  puts("since the start; all else that is counted is 0");
  json_object_foreach(json_object_get(status, "counters"), name, value)
  {
    if (json_integer_value(value) > 0)
      printf("  %-16s %s\n", name, ctl_format_count((uint64_t)json_integer_value(value)).s);
  }
}

static void print_quantiles(const char *name, const json_t *quantiles)
{
  uint64_t n = ctl_json_count(quantiles, "count");

  if (n == 0)
    printf("  %-16s none\n", name);
  else
    printf("  %-16s %s, %s, %s (of %s)\n", name,
           ctl_format_span((int64_t)ctl_json_count(quantiles, "p50") * CLOCK_NS_PER_US).s,
           ctl_format_span((int64_t)ctl_json_count(quantiles, "p95") * CLOCK_NS_PER_US).s,
           ctl_format_span((int64_t)ctl_json_count(quantiles, "p99") * CLOCK_NS_PER_US).s, ctl_format_count(n).s);
}

static void print_latency(const json_t *status, const char *field, const char *title)
{
  const char *name;
  json_t *quantiles, *list = json_object_get(status, field);

  if (list)
    puts(title);
  json_object_foreach(list, name, quantiles) print_quantiles(name, quantiles);
}

static bool is_printed_above(const char *name)
{
  static const char *const names[] = { "version",
                                       "ready",
                                       "not_ready",
                                       "phase",
                                       "epoch",
                                       "items",
                                       "backend",
                                       "kafka",
                                       "spaces",
                                       "isa",
                                       "uptime_s",
                                       "watermark",
                                       "rebuild",
                                       "latency_us",
                                       "counters",
                                       "backends_failed",
                                       "backend_reason",
                                       "attributes",
                                       "lifetimes",
                                       "latency_since_start_us",
                                       "epoch_age_s",
                                       "role",
                                       "shard",
                                       "shards",
                                       "problem",
                                       "complaints",
                                       "catalogue_log",
                                       "unknown_spaces",
                                       "unknown_attributes" };

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(name, names[i]) == 0)
      return true;
  }
  return false;
}

/* Print the rows of a list, a line each. */
static void print_rows(const char *name, const json_t *list)
{
  json_t *row, *value;
  const char *member;
  size_t i;

  json_array_foreach(list, i, row)
  {
    const char *before = "";
    printf("  %-16s ", i ? "" : name);
    json_object_foreach(row, member, value)
    {
      char *text = json_dumps(value, JSON_ENCODE_ANY);
      printf("%s%s %s", before, member, text ? text : "?");
      free(text);
      before = ", ";
    }
    putchar('\n');
  }
}

/* Print a value on one line: a string as it is, a whole number with commas, anything else as JSON. Null has no line. */
static void print_value(const char *name, const json_t *value)
{
  char *text = NULL;

  if (json_is_null(value))
    return;
  if (json_is_object(json_array_get(value, 0)))
    print_rows(name, value);
  else if (json_is_string(value))
    printf("  %-16s %s\n", name, json_string_value(value));
  else if (json_is_integer(value) && json_integer_value(value) >= 0)
    printf("  %-16s %s\n", name, ctl_format_count((uint64_t)json_integer_value(value)).s);
  else if ((text = json_dumps(value, JSON_ENCODE_ANY)))
    printf("  %-16s %s\n", name, text);
  free(text);
}

/* Print the members that nothing above has printed, such as those of a newer daemon. */
static void print_rest(json_t *status)
{
  const char *name, *inner;
  json_t *value, *inner_value;
  bool has_title = false;

  json_object_foreach(status, name, value)
  {
    if (is_printed_above(name) || json_is_null(value) || json_is_object(value))
      continue;
    if (!has_title)
      puts("also");
    has_title = true;
    print_value(name, value);
  }
  json_object_foreach(status, name, value)
  {
    if (is_printed_above(name) || !json_is_object(value))
      continue;
    puts(name);
    json_object_foreach(value, inner, inner_value) print_value(inner, inner_value);
  }
}

/* Print the newest warnings and errors of the log, the newest last. */
static void print_complaints(const json_t *status)
{
  const json_t *list = json_object_get(status, "complaints");

  if (json_array_size(list) > 0)
    puts("newest warnings and errors");
  for (size_t i = json_array_size(list); i-- > 0;) {
    const json_t *row = json_array_get(list, i);
    printf("  %s %-5s %s\n", ctl_format_time(json_integer_value(json_object_get(row, "unix_ms"))).s,
           ctl_json_text(row, "level"), ctl_json_text(row, "line"));
  }
}

/* ---- The role merge ---- */

static void print_shards(const json_t *status)
{
  size_t i;
  json_t *row;

  puts("shards that were heard of");
  json_array_foreach(json_object_get(status, "shards"), i, row)
      printf("  shard %" PRIu64 " of %-6" PRIu64 " %s ago\n", ctl_json_count(row, "shard"), ctl_json_count(row, "of"),
             ctl_format_span((int64_t)(json_number_value(json_object_get(row, "heard_s")) * 1e9)).s);
  if (json_array_size(json_object_get(status, "shards")) == 0)
    puts("  none");
}

static void print_merge(json_t *status)
{
  print_state(status);
  putchar('\n');
  print_shards(status);
  print_kafka(status);
  print_latency(status, "latency_us", "latency of the last one to two minutes: p50, p95, p99");
  print_latency(status, "latency_since_start_us", "latency since the start: p50, p95, p99");
  print_counters(status);
  print_rest(status);
  print_complaints(status);
}

/* ---- A daemon with a catalogue ---- */

static void print_status(json_t *status)
{
  print_head(status);
  ctl_status_lifetimes_print(status);
  ctl_rebuild_print(json_object_get(status, "rebuild"), stdout);
  print_kafka(status);
  ctl_status_catalogue_print(status);
  print_latency(status, "latency_us", "latency of the last one to two minutes: p50, p95, p99");
  print_latency(status, "latency_since_start_us", "latency since the start: p50, p95, p99");
  print_counters(status);
  print_rest(status);
  print_complaints(status);
}

static err_t run_status(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(ctl_json_close) json_t *status = NULL;
  bool prints_json = false;
  const struct ctl_option known[] = { { "json", .is_given = &prints_json }, { 0 } };

  TRY(ctl_option_take_only(known, argc, argv));
  TRY(ctl_context_open_for_http(options, &ctx));
  TRY(http_get_status(ctx->http, &status));
  if (!prints_json)
    is_merge(status) ? print_merge(status) : print_status(status);
  else
    ctl_print_json_value(status, JSON_INDENT(2) | JSON_PRESERVE_ORDER, stdout);
  return ERR_OK;
}

const struct ctl_command ctl_status_command = {
  .name = "status",
  .arguments = "[--json]",
  .summary = "show what the daemon is doing",
  .help = "  --json   print the daemon's /status page as it is\n",
  .run = run_status,
};
