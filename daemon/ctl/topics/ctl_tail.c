/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl tail: follow one of the daemon's topics, a line for each record. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "daemon/ctl/text/ctl_payload.h"
#include "daemon/ctl/text/ctl_print.h"
#include "ingest/json/json_bytes.h"
#include "ingest/readers/topic_scan.h"

enum { STEP_MS = 1000, RECORDS_MAX = 1000000000 };

/* A topic that can be followed. */
struct source {
  const char *word;
  const char *topic;
  const struct kafka_properties *kafka; /* of the daemon's client for this topic */
  enum wire_kind kind;
};

static err_t find_source(const struct config *c, const char *word, struct source *out)
{
  const struct source sources[] = {
    { "answers", c->query.answer_topic, &c->query.answer_kafka, WIRE_ANSWER },
    { "items", c->catalogue.topic, &c->catalogue.kafka, WIRE_ITEM },
    { "queries", c->query.topic, &c->query.kafka, WIRE_QUERY },
    { "seen", c->seen.topic, &c->seen.kafka, WIRE_SEEN },
  };

  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    if (strcmp(word, sources[i].word) == 0) {
      if (sources[i].kind == WIRE_ITEM || sources[i].kind == WIRE_SEEN)
        TRY(ctl_context_verify_catalogue(c));
      *out = sources[i];
      return ERR_OK;
    }
  }
  FAIL(ERR_USAGE, "tail expects answers, items, queries or seen, not \"%s\"", word);
}

static void print_record(const struct topic_scan_record *record, const struct source *source)
{
  json_t *json = json_pack("{s:s,s:i,s:I}", "time", ctl_format_time(record->timestamp_ms).s, "partition",
                           record->partition, "offset", (json_int_t)record->offset);

  json_object_set_new(json, "key", record->has_key ? json_bytes_make(record->key) : json_null());
  json_object_set_new(json, "value",
                      record->has_value
                          ? ctl_payload_json(record->value, topic_scan_header(record, "content-type"), source->kind)
                          : json_null());
  ctl_print_json_value(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17), stdout);
  json_decref(json);
}

/* n_most  end after so many records; 0: never */
static err_t follow(struct topic_scan *scan, const struct source *source, uint64_t n_most)
{
  struct topic_scan_record record;
  enum topic_scan_found found;

  for (uint64_t n = 0; n_most == 0 || n < n_most;) {
    TRY(topic_scan_next(scan, STEP_MS, &record, &found));
    if (found != TOPIC_SCAN_RECORD)
      continue;
    print_record(&record, source);
    if (fflush(stdout) != 0)
      FAIL(ERR_SYSTEM, "standard output is closed");
    n++;
  }
  return ERR_OK;
}

static err_t tail(struct ctl_context *ctx, const char *word, uint64_t newest, uint64_t n_most)
{
  AUTO(topic_scan_close) struct topic_scan *scan = NULL;
  const struct topic_scan_range range = { .newest = (int64_t)newest, .follows = true };
  struct source source = { 0 };
  struct kafka_layers layers;

  TRY(find_source(ctx->config, word, &source));
  if (!*source.topic)
    FAIL(ERR_USAGE, "the configuration has no seen.topic");
  TRY(ctl_context_layers(ctx, NULL, 0, source.kafka, &layers));
  TRY(topic_scan_open(&layers, source.topic, &range, CTL_KAFKA_TIMEOUT_MS, &scan));
  return follow(scan, &source, n_most);
}

static err_t run_tail(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  uint64_t newest = 0, n_most = 0;
  const struct ctl_option known[] = {
    { "newest", .number = &newest, .min = 1, .max = RECORDS_MAX },
    { "count", .number = &n_most, .min = 1, .max = RECORDS_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (argc - optind > 1)
    FAIL(ERR_USAGE, "%s: tail expects one word", argv[optind + 1]);
  TRY(ctl_context_open(options, &ctx));
  return tail(ctx, optind < argc ? argv[optind] : "answers", newest, n_most);
}

const struct ctl_command ctl_tail_command = {
  .name = "tail",
  .arguments = "[answers | items | queries | seen] [--newest N] [--count N]",
  .summary = "follow a topic, one line of JSON for each record",
  .help = "  --newest N   begin with the newest N records of each partition (default: what comes from now on)\n"
          "  --count N    end after N records (default: never; end it with Ctrl-C)\n"
          "\n"
          "Each line has time, partition, offset, key and value. The topic is the one in the configuration, and the\n"
          "answer topic unless a word says otherwise. Refused records are shown by dead-letters.\n",
  .run = run_tail,
};
