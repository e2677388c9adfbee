/* SPDX-License-Identifier: Apache-2.0 */
/* One audit at a time: ask for one record of each partition. The consumer stays: opening one takes a moment, in which
 * nothing would be published. */
#include "daemon/catalogue/topic_audit.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/mem.h"

/* How often: each partition costs a fetch. */
enum { RECORDS = 64, MAY_TAKE_S = 20, EVERY_MS = 2000, EVERY_MS_A_PARTITION = 50 };

/* One batch of records from each partition is enough. */
static const struct kafka_property frugal[] = { { "fetch.message.max.bytes", "1" }, { "queued.min.messages", "1" } };

void topic_audit_init(const struct kafka_layers *layers, const char *topic, int64_t longest_ns, struct topic_audit *out)
{
  *out = (struct topic_audit){ .layers = *layers, .topic = topic, .longest_ns = longest_ns };
  out->layers.layer[out->layers.n++] = (struct kafka_properties){ frugal, sizeof frugal / sizeof frugal[0] };
}

void topic_audit_fini(struct topic_audit *a)
{
  catalogue_reader_close(&a->reader);
  mem_free(&a->anchors);
}

static int64_t interval_ns(const struct topic_audit *a)
{
  int64_t usual_ns = (EVERY_MS + (int64_t)a->n * EVERY_MS_A_PARTITION) * CLOCK_NS_PER_MS;

  return usual_ns < a->longest_ns ? usual_ns : a->longest_ns;
}

/* A partition that has no anchor gets its newest record as soon as there is one: a topic that is being read for the
 * first time may be replaced, too. */
static err_t set_first_anchors(struct topic_audit *a, const struct topic_positions *positions)
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
  catalogue_reader_abandon(&a->reader); /* what it remembers of the topic may be wrong */
  a->is_running = false;
  a->request = TOPIC_AUDIT_NOT_REQUESTED;
  a->n_awaited = 0;
  a->n = 0;
  a->due_ns = clock_now_ns() + interval_ns(a);
  return set_first_anchors(a, positions);
}

/* An anchor that was not found in time is looked for again. */
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

static err_t ask(struct topic_audit *a, const struct topic_positions *positions)
{
  if (!a->reader)
    TRY(catalogue_reader_open(&a->layers, a->topic, &a->reader));
  a->is_running = true;
  if (a->request == TOPIC_AUDIT_REQUESTED)
    a->request = TOPIC_AUDIT_RUNNING;
  for (size_t p = 0; p < a->n; p++) {
    a->anchors[p].next = positions->items[p].position;
    a->anchors[p].is_awaited = a->anchors[p].position.last_offset >= 0;
    if (!a->anchors[p].is_awaited)
      continue;
    TRY(catalogue_reader_assign(a->reader, (int32_t)p, a->anchors[p].position.last_offset));
    a->n_awaited++;
  }
  a->due_ns = clock_now_ns() + MAY_TAKE_S * CLOCK_NS_PER_S;
  return ERR_OK;
}

static void settle(struct topic_audit *a, int32_t partition)
{
  a->anchors[partition].is_awaited = false;
  a->n_awaited--;
  catalogue_reader_leave(a->reader, partition);
}

/* The first record at or behind the anchor. Where compaction may have removed it, a later one says nothing. */
static err_t look_at(struct topic_audit *a, const struct catalogue_record *record, bool has_holes)
{
  if (record->partition < 0 || (size_t)record->partition >= a->n || !a->anchors[record->partition].is_awaited)
    return ERR_OK;
  const struct store_position *anchor = &a->anchors[record->partition].position;
  bool is_there = !record->is_end && record->offset == anchor->last_offset;
  bool is_same = is_there ? topic_position_matches(anchor, record) : has_holes;
  if (!is_same)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64
         " was applied, and is another one now: the topic was made anew",
         record->partition, anchor->last_offset);
  settle(a, record->partition);
  return ERR_OK;
}

/* The anchor is outside the log: retention has removed it, or the log is a shorter one. */
static err_t look_outside(struct topic_audit *a, const struct catalogue_events *events)
{
  int32_t p = events->out_of_range_partition;
  int64_t first, end;

  if (p < 0 || (size_t)p >= a->n || !a->anchors[p].is_awaited)
    return ERR_OK;
  TRY(catalogue_reader_bounds(a->reader, p, 1000, &first, &end));
  if (a->anchors[p].position.last_offset >= end)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64 " was applied, and the log ends at %" PRId64
         " now: the topic was made anew",
         p, a->anchors[p].position.last_offset, end);
  settle(a, p);
  return ERR_OK;
}

static err_t look(struct topic_audit *a, bool has_holes)
{
  struct catalogue_record records[RECORDS];
  struct catalogue_events events;
  size_t n;

  catalogue_reader_poll(a->reader, RECORDS, 0, records, &n, &events);
  for (size_t i = 0; i < n; i++)
    TRY(look_at(a, &records[i], has_holes));
  catalogue_reader_release(a->reader);
  return events.is_out_of_range ? look_outside(a, &events) : ERR_OK;
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

err_t topic_audit_step(struct topic_audit *a, const struct topic_positions *positions)
{
  bool is_due = clock_now_ns() >= a->due_ns;

  TRY(set_first_anchors(a, positions));
  if (!a->is_running)
    return is_due ? ask(a, positions) : ERR_OK;
  TRY(look(a, positions->has_holes));
  if (a->n_awaited > 0 && !is_due)
    return ERR_OK;
  catalogue_reader_unassign(a->reader);
  end_audit(a);
  return ERR_OK;
}
