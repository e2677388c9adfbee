/* SPDX-License-Identifier: Apache-2.0 */
/* A producer for the catalogue topic that compares delivered offsets with the daemon's watermark. */
#include "daemon/ctl/writer/ctl_writer.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/catalogue/catalogue_phase.h"
#include "daemon/config/config_shard.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_say.h"
#include "ingest/kafka/topics.h"
#include "ingest/readers/topic_scan.h"
#include "ingest/wire/wire.h"

enum {
  POLL_MS = 50,
  SEND_TIMEOUT_MS = 30000,
  FLUSH_TIMEOUT_MS = 60000,
  STILL_TIMEOUT_MS = 60000,
  OBSTACLE_SAID_MS = 1000,
  ROOM_TIMEOUT_MS = 15000, /* with little room, a full catalogue goes on after ten seconds */
  STATUS_PERIOD_MS = 2,
  COUNT_TIMEOUT_MS = 1000,
};

static void on_report(void *context, const struct sender_report *report)
{
  struct ctl_writer *w = context;

  if (report->fate == SENDER_DELIVERED &&
      ctl_positions_add(&w->positions, report->partition, report->offset) == ERR_OK) {
    w->n_delivered++;
    if (w->resume)
      ctl_resume_mark(w->resume, (uintptr_t)report->opaque);
    w->newest = (struct position){ report->partition, report->offset };
    w->delivered_ns = clock_now_ns();
    return;
  }
  if (w->n_failed++ == 0)
    snprintf(w->reason, sizeof w->reason, "%s", report->reason ? report->reason : err_message());
}

static struct ctl_counts counts_of(const json_t *status)
{
  const json_t *counters = json_object_get(status, "counters");

  return (struct ctl_counts){
    .applied = json_integer_value(json_object_get(counters, "applied")),
    .deleted = json_integer_value(json_object_get(counters, "deleted")),
    .skipped = json_integer_value(json_object_get(counters, "replayed")),
    .refused = json_integer_value(json_object_get(counters, "dead_letters")),
  };
}

/* Verify that the daemon reads the topic of this configuration, or the wait for its watermark would never end. */
static err_t verify_daemon(struct ctl_writer *w)
{
  AUTO(ctl_json_close) json_t *status = NULL;

  TRY(ctl_context_verify_catalogue(w->ctx->config));
  TRY(http_get_status(w->ctx->http, &status));
  const char *topic = json_string_value(json_object_get(json_object_get(status, "kafka"), "catalogue_topic"));
  if (topic && strcmp(topic, w->ctx->config->catalogue.topic) != 0)
    FAIL(ERR_CONFIG, "the daemon reads topic %s, but this configuration says %s", topic,
         w->ctx->config->catalogue.topic);
  w->before = counts_of(status);
  return ERR_OK;
}

err_t ctl_writer_verify_format(const struct config *config)
{
  static const char *const formats[] = { "catalogue.framing: confluent", "catalogue.format: json",
                                         "catalogue.format: avro", "catalogue.format: protobuf" };

  if (config->catalogue.format != CONFIG_FORMAT_SLUICE || config->catalogue.is_framed)
    FAIL(ERR_CONFIG,
         "sluicectl writes items in Sluice's own form, and topic %s has another one (%s): write to it as "
         "its other producers do",
         config->catalogue.topic, formats[config->catalogue.format]);
  return ERR_OK;
}

static err_t open_sender(struct ctl_writer *w, const char *linger_ms)
{
  const struct kafka_property defaults[] = {
    { "enable.idempotence", "true" }, /* keeps the order of a key's changes if a request is repeated */
    { "linger.ms", linger_ms },
    { "message.timeout.ms", "30000" },
    { "queue.buffering.max.messages", "20000" },
    { "queue.buffering.max.kbytes", "131072" },
  };
  const struct config *config = w->ctx->config;
  struct kafka_layers layers;
  int n_partitions;

  TRY(ctl_context_layers(w->ctx, defaults, sizeof defaults / sizeof defaults[0], &config->catalogue.kafka, &layers));
  TRY(topics_count_partitions(&layers, config->catalogue.topic, CTL_KAFKA_TIMEOUT_MS, &n_partitions));
  TRY(sender_open(&layers, on_report, w, &w->sender));
  sender_prepare(w->sender, config->catalogue.topic, CTL_KAFKA_TIMEOUT_MS);
  return ERR_OK;
}

err_t ctl_writer_open(struct ctl_context *ctx, const char *linger_ms, struct ctl_writer **out)
{
  AUTO(ctl_writer_close) struct ctl_writer *w = NULL;

  TRY(mem_array(1, sizeof *w, &w));
  w->ctx = ctx;
  TRY(verify_daemon(w));
  TRY(open_sender(w, linger_ms));
  *out = w;
  w = NULL;
  return ERR_OK;
}

void ctl_writer_close(struct ctl_writer **w)
{
  if (!*w)
    return;
  sender_close(&(*w)->sender);
  ctl_positions_fini(&(*w)->positions);
  mem_free(w);
}

err_t ctl_writer_send(struct ctl_writer *w, uint64_t row, const struct ctl_record *record)
{
  const struct sender_header header = { "content-type", span_of_str(wire_content_type(WIRE_PROTOBUF)) };
  struct sender_message message = {
    .topic = w->ctx->config->catalogue.topic,
    .has_key = true,
    .key = record->key,
    .has_value = !record->is_delete,
    .value = record->value,
    .headers = &header,
    .n_headers = record->is_delete ? 0 : 1,
    .opaque = (void *)(uintptr_t)row,
  };

  return ctl_writer_send_message(w, &message);
}

err_t ctl_writer_send_message(struct ctl_writer *w, const struct sender_message *message)
{
  int64_t deadline_ns = clock_now_ns() + SEND_TIMEOUT_MS * CLOCK_NS_PER_MS;

  for (;;) {
    err_code_t result = sender_send(w->sender, message);
    sender_poll(w->sender, result == ERR_KAFKA_RETRY ? POLL_MS : 0);
    if (result != ERR_KAFKA_RETRY || clock_now_ns() > deadline_ns)
      return result;
  }
}

void ctl_writer_idle(struct ctl_writer *w, int64_t until_ns)
{
  int64_t left_ns = until_ns - clock_now_ns();

  if (left_ns >= CLOCK_NS_PER_MS)
    sender_poll(w->sender, left_ns >= POLL_MS * CLOCK_NS_PER_MS ? POLL_MS : (int)(left_ns / CLOCK_NS_PER_MS));
  else if (left_ns > 0)
    clock_sleep_ns(left_ns);
}

err_t ctl_writer_flush(struct ctl_writer *w)
{
  TRY(sender_flush(w->sender, FLUSH_TIMEOUT_MS));
  if (w->n_failed)
    FAIL(ERR_KAFKA, "Kafka did not take %llu of %llu records: %s", (unsigned long long)w->n_failed,
         (unsigned long long)(w->n_failed + w->n_delivered), w->reason);
  return ERR_OK;
}

/* Records in a transaction that is still open count too. */
err_t ctl_writer_expect_all(struct ctl_writer *w)
{
  static const struct kafka_property defaults[] = { { "isolation.level", "read_uncommitted" } };
  static const struct topic_scan_range nothing = { .newest = 0 };
  AUTO(topic_scan_close) struct topic_scan *scan = NULL;
  const struct config *config = w->ctx->config;
  struct kafka_layers layers;

  TRY(ctl_context_layers(w->ctx, defaults, 1, &config->catalogue.kafka, &layers));
  TRY(topic_scan_open(&layers, config->catalogue.topic, &nothing, CTL_KAFKA_TIMEOUT_MS, &scan));
  for (int32_t i = 0; i < topic_scan_n_partitions(scan); i++) {
    if (topic_scan_end(scan, i) > 0)
      TRY(ctl_positions_add(&w->positions, i, topic_scan_end(scan, i) - 1));
  }
  return ERR_OK;
}

/* A shard never reads the partitions of others: records there are not waited for. */
static err_t keep_own_partitions(struct ctl_writer *w)
{
  size_t n = w->positions.n;

  config_shard_keep(w->ctx->config, w->positions.items, &w->positions.n);
  if (w->positions.n == n)
    return ERR_OK;
  if (w->positions.n == 0)
    FAIL(ERR_SYSTEM, "Kafka has the records, but another shard reads them: this one cannot say when they are visible");
  fprintf(stderr, "Records in %zu partitions are read by other shards, and not waited for.\n", n - w->positions.n);
  return ERR_OK;
}

/* A wait for the daemon. */
struct wait {
  struct ctl_progress *progress; /* NULL: none is shown */
  uint64_t behind;               /* records of ours that the daemon has not reached */
  int64_t moved_ns;              /* when that changed */
  int64_t full_ns;               /* since when there has been no room; 0: there is */
  bool has_said_obstacle;
};

/* Does the daemon wait until somebody makes room? */
static bool lacks_room(const json_t *status)
{
  const char *phase = json_string_value(json_object_get(status, "phase"));

  return phase && (strcmp(phase, catalogue_phase_name(CATALOGUE_FULL)) == 0 ||
                   strcmp(phase, catalogue_phase_name(CATALOGUE_DISK_FULL)) == 0);
}

static bool has_partition(const struct ctl_positions *ours, json_int_t partition)
{
  for (size_t i = 0; i < ours->n; i++) {
    if (ours->items[i].partition == partition)
      return true;
  }
  return false;
}

/* Does an open transaction, of any producer, hold records back in a partition that has ours? */
static bool is_held_back(const struct ctl_positions *ours, const json_t *status)
{
  const json_t *row;
  size_t i;

  json_array_foreach(json_object_get(status, "catalogue_log"), i, row)
  {
    if (json_integer_value(json_object_get(row, "held_back")) > 0 &&
        has_partition(ours, json_integer_value(json_object_get(row, "partition"))))
      return true;
  }
  return false;
}

/* Return why the daemon may stand still. One that starts behind an open transaction is not ready, and does not know
 * that it waits for that. */
static const char *reason_of(const json_t *status, bool is_held)
{
  const char *problem = json_string_value(json_object_get(status, "problem"));
  const char *not_ready = json_string_value(json_object_get(status, "not_ready"));

  if (problem)
    return problem;
  if (is_held)
    return "a transaction is open in the topic, and nothing behind it is read until its producer ends it, or it times "
           "out (transaction.timeout.ms); kafka-transactions.sh lists it and can abort it";
  return not_ready ? not_ready : "look at its log";
}

/* Say early what is in the way, and give up on a daemon that stands still. */
static err_t judge(struct wait *wait, const struct ctl_positions *ours, const json_t *status)
{
  bool is_held = is_held_back(ours, status);
  const char *reason = reason_of(status, is_held);
  int64_t now = clock_now_ns(), still_ms = (now - wait->moved_ns) / CLOCK_NS_PER_MS;
  bool is_full = lacks_room(status);

  wait->full_ns = !is_full ? 0 : wait->full_ns ? wait->full_ns : now;
  if ((is_full || is_held) && still_ms > OBSTACLE_SAID_MS && !wait->has_said_obstacle) {
    if (wait->progress)
      ctl_progress_hide(wait->progress);
    ctl_say("the daemon waits%s: %s", is_full ? " for room" : "", reason);
    wait->has_said_obstacle = true;
  }
  bool is_full_long = is_full && (now - wait->full_ns) / CLOCK_NS_PER_MS > ROOM_TIMEOUT_MS;
  if (still_ms > STILL_TIMEOUT_MS || (still_ms > ROOM_TIMEOUT_MS && is_full_long))
    FAIL(ERR_SYSTEM, "the daemon has made no progress for %d s, with %llu %s still to read: %s", (int)(still_ms / 1000),
         (unsigned long long)wait->behind, ctl_format_plural(wait->behind, "record", "records"), reason);
  return ERR_OK;
}

/* Ask the daemon how many of our records it has not reached. */
static err_t look(struct ctl_writer *w, struct wait *wait)
{
  AUTO(ctl_json_close) json_t *status = NULL;

  TRY(http_get_status(w->ctx->http, &status));
  uint64_t behind = ctl_positions_behind(&w->positions, json_object_get(status, "watermark"));
  if (behind != wait->behind)
    wait->moved_ns = clock_now_ns();
  wait->behind = behind;
  return behind > 0 ? judge(wait, &w->positions, status) : ERR_OK;
}

err_t ctl_writer_await_visible(struct ctl_writer *w, struct ctl_progress *progress, int64_t *visible_ns)
{
  struct wait wait = { .progress = progress, .moved_ns = clock_now_ns() };

  TRY(keep_own_partitions(w));
  TRY(look(w, &wait));
  uint64_t total = wait.behind;
  if (progress)
    ctl_progress_begin(progress, "indexing", total);
  while (wait.behind > 0) {
    clock_sleep_ns(STATUS_PERIOD_MS * CLOCK_NS_PER_MS);
    TRY(look(w, &wait));
    uint64_t done = total - (wait.behind < total ? wait.behind : total);
    if (progress)
      ctl_progress_tick(progress, done, done);
  }
  *visible_ns = clock_now_ns();
  return ERR_OK;
}

err_t ctl_writer_counts(struct ctl_writer *w, struct ctl_counts *out)
{
  const struct ctl_counts *before = &w->before;
  int64_t until_ns = clock_now_ns() + COUNT_TIMEOUT_MS * CLOCK_NS_PER_MS;

  for (;;) {
    AUTO(ctl_json_close) json_t *status = NULL;
    TRY(http_get_status(w->ctx->http, &status));
    struct ctl_counts now = counts_of(status);
    *out = (struct ctl_counts){ now.applied - before->applied, now.deleted - before->deleted,
                                now.skipped - before->skipped, now.refused - before->refused };
    int64_t n = out->applied + out->deleted + out->skipped + out->refused;
    if (n >= (int64_t)w->n_delivered || clock_now_ns() > until_ns)
      return ERR_OK;
    clock_sleep_ns(STATUS_PERIOD_MS * CLOCK_NS_PER_MS);
  }
}
