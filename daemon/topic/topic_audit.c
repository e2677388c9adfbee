/* SPDX-License-Identifier: Apache-2.0 */
/* The audit of a topic, one at a time: it fetches one record of each partition. The consumer stays open,
 * because opening one takes a moment in which nothing would be published. */
#include "daemon/topic/topic_audit.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/mem.h"

enum { RECORDS = 64, TIMEOUT_S = 20, BROKER_TIMEOUT_MS = 1000 };

/* The interval between audits grows with the partitions, because each one costs a fetch. */
enum { INTERVAL_MS = 2000, INTERVAL_PER_PARTITION_MS = 50 };

/* Fetch as little as possible: one record of each partition is enough. */
static const struct kafka_property small_fetches[] = {
  { "fetch.message.max.bytes", "1" },
  { "queued.min.messages", "1" },
};

void topic_audit_init(const struct kafka_layers *layers, const char *topic, int64_t max_interval_ns,
                      struct topic_audit *out)
{
  *out = (struct topic_audit){ .layers = *layers, .topic = topic, .max_interval_ns = max_interval_ns };
  out->layers.client = NULL; /* the name in the statistics is that of the consumer that reads the topic */
  kafka_layers_add(&out->layers, small_fetches, sizeof small_fetches / sizeof small_fetches[0]);
}

void topic_audit_fini(struct topic_audit *a)
{
  topic_reader_close(&a->reader);
  mem_free(&a->anchors);
}

static int64_t interval_ns(const struct topic_audit *a)
{
  int64_t usual_ns = (INTERVAL_MS + (int64_t)a->n * INTERVAL_PER_PARTITION_MS) * CLOCK_NS_PER_MS;

  return usual_ns < a->max_interval_ns ? usual_ns : a->max_interval_ns;
}

/* Give each partition without an anchor its newest applied record, as soon as it has one. Even a topic that is being
 * read for the first time may be replaced. */
static err_t add_anchors(struct topic_audit *a, const struct topic_positions *positions)
{
  TRY(mem_grow(positions->n, sizeof *a->anchors, &a->capacity, &a->anchors));
  for (; a->n < positions->n; a->n++)
    a->anchors[a->n] = (struct audit_anchor){ .position = { .last_offset = -1 }, .next = { .last_offset = -1 } };
  for (size_t p = 0; p < positions->n; p++) {
    if (a->anchors[p].position.last_offset < 0)
      a->anchors[p].position = positions->items[p].position;
  }
  return ERR_OK;
}

err_t topic_audit_begin(struct topic_audit *a, const struct topic_positions *positions)
{
  topic_reader_abandon(&a->reader); /* its cached metadata may be of a former topic */
  a->is_running = false;
  a->request = TOPIC_AUDIT_NOT_REQUESTED;
  a->n_awaited = 0;
  a->n = 0;
  a->due_ns = clock_now_ns() + interval_ns(a);
  return add_anchors(a, positions);
}

/* Move to the next anchors. An anchor that was not read in time stays, for the next audit. */
static void end_audit(struct topic_audit *a)
{
  a->is_running = false;
  a->n_awaited = 0;
  for (size_t p = 0; p < a->n; p++) {
    if (!a->anchors[p].is_awaited)
      a->anchors[p].position = a->anchors[p].next;
    a->anchors[p].is_awaited = false;
  }
  a->due_ns = clock_now_ns() + (a->request == TOPIC_AUDIT_REQUESTED ? 0 : interval_ns(a));
  if (a->request == TOPIC_AUDIT_RUNNING)
    a->request = TOPIC_AUDIT_DONE;
}

static err_t start_audit(struct topic_audit *a, const struct topic_positions *positions)
{
  if (!a->reader)
    TRY(topic_reader_open_again(&a->layers, a->topic, &a->reader));
  a->is_running = true;
  if (a->request == TOPIC_AUDIT_REQUESTED)
    a->request = TOPIC_AUDIT_RUNNING;
  for (size_t p = 0; p < a->n; p++) {
    a->anchors[p].next = positions->items[p].position;
    a->anchors[p].is_awaited = a->anchors[p].position.last_offset >= 0;
    if (!a->anchors[p].is_awaited)
      continue;
    TRY(topic_reader_assign(a->reader, (int32_t)p, a->anchors[p].position.last_offset));
    a->n_awaited++;
  }
  a->due_ns = clock_now_ns() + TIMEOUT_S * CLOCK_NS_PER_S;
  return ERR_OK;
}

static void note_checked(struct topic_audit *a, int32_t partition)
{
  a->anchors[partition].is_awaited = false;
  a->n_awaited--;
  topic_reader_leave(a->reader, partition);
}

static bool is_awaited(const struct topic_audit *a, int32_t partition)
{
  return partition >= 0 && (size_t)partition < a->n && a->anchors[partition].is_awaited;
}

/* Verify that a partition ends behind its anchor. A new leader may not know for a moment how far the log goes: then it
 * gives readers an early end, and to this question no answer. */
static err_t check_end(struct topic_audit *a, int32_t partition)
{
  const struct store_position *anchor = &a->anchors[partition].position;
  int64_t first, end;

  TRY(topic_reader_bounds(a->reader, partition, BROKER_TIMEOUT_MS, &first, &end));
  if (anchor->last_offset >= end)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64 " was applied, but now the partition ends at %" PRId64
         ": the topic was deleted and created again",
         partition, anchor->last_offset, end);
  note_checked(a, partition);
  return ERR_OK;
}

/* Compare the first record at or after the anchor. If compaction may have removed the anchor, a later record proves
 * nothing. */
static err_t check_record(struct topic_audit *a, const struct topic_record *record, bool has_holes)
{
  if (!is_awaited(a, record->partition))
    return ERR_OK;
  if (record->is_end)
    return check_end(a, record->partition);
  const struct store_position *anchor = &a->anchors[record->partition].position;
  bool is_there = record->offset == anchor->last_offset;
  bool is_same = is_there ? topic_position_matches(anchor, record) : has_holes;
  if (!is_same)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64
         " was applied, and now it is another record: the topic was deleted and created again",
         record->partition, anchor->last_offset);
  note_checked(a, record->partition);
  return ERR_OK;
}

/* The broker says that the anchor is out of range: retention has removed it, or the topic is a new, shorter one. */
static err_t check_out_of_range(struct topic_audit *a, const struct topic_events *events)
{
  int32_t partition = events->out_of_range_partition;

  return is_awaited(a, partition) ? check_end(a, partition) : ERR_OK;
}

static err_t check_new_records(struct topic_audit *a, bool has_holes)
{
  struct topic_record records[RECORDS];
  struct topic_events events;
  size_t n;

  topic_reader_poll(a->reader, RECORDS, 0, records, &n, &events);
  for (size_t i = 0; i < n; i++)
    TRY(check_record(a, &records[i], has_holes));
  topic_reader_release_all(a->reader);
  return events.is_out_of_range ? check_out_of_range(a, &events) : ERR_OK;
}

bool topic_audit_confirms(struct topic_audit *a)
{
  if (a->request == TOPIC_AUDIT_DONE) {
    a->request = TOPIC_AUDIT_NOT_REQUESTED;
    return true;
  }
  if (a->request == TOPIC_AUDIT_NOT_REQUESTED) {
    a->request = TOPIC_AUDIT_REQUESTED;
    if (!a->is_running)
      a->due_ns = clock_now_ns();
  }
  return false;
}

static err_t take_step(struct topic_audit *a, const struct topic_positions *positions)
{
  bool is_due = clock_now_ns() >= a->due_ns;

  TRY(add_anchors(a, positions));
  if (!a->is_running)
    return is_due ? start_audit(a, positions) : ERR_OK;
  TRY(check_new_records(a, positions->has_holes));
  if (a->n_awaited > 0 && !is_due)
    return ERR_OK;
  topic_reader_unassign(a->reader);
  end_audit(a);
  return ERR_OK;
}

err_t topic_audit_step(struct topic_audit *a, const struct topic_positions *positions)
{
  err_code_t err = take_step(a, positions);

  return err_class(err) == ERR_CLASS_RETRY ? topic_audit_begin(a, positions) : err;
}
