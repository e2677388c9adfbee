/* SPDX-License-Identifier: Apache-2.0 */
/* The position in each partition, and the comparison of the last applied record with the one that the topic has now. */
#include "daemon/topic/topic_position.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

void topic_positions_fini(struct topic_positions *t)
{
  mem_free(&t->items);
}

void topic_positions_clear(struct topic_positions *t)
{
  t->n = 0;
  t->has_holes = true;
}

static err_t verify_bounds(const struct store_position *stored, int64_t first, int64_t end)
{
  if (stored->at.next < first)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the store has read up to offset %" PRId64 ", but the partition begins at %" PRId64
         ": the records between are gone",
         stored->at.partition, stored->at.next, first);
  if (stored->at.next > end)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the store has read up to offset %" PRId64 ", but the partition ends at %" PRId64
         ": this is another topic, or it was truncated",
         stored->at.partition, stored->at.next, end);
  return ERR_OK;
}

err_t topic_positions_add(struct topic_positions *t, const struct store_position *stored, int64_t first, int64_t end,
                          int64_t *from)
{
  struct topic_position p = {
    .position = { .at = { (int32_t)t->n, first }, .last_offset = -1 },
    .known_end = end,
    .known_end_ns = clock_boot_ns(),
    .asked_end = INT64_MAX,
    .end_at_start = end,
  };

  if (stored) {
    TRY(verify_bounds(stored, first, end));
    p.position = *stored;
    p.must_verify = stored->last_offset >= first && stored->last_offset < end;
  }
  if (p.position.at.next >= end)
    p.known_end = -1; /* it is reached */
  if (p.position.at.next >= end || p.position.complete_unix_ms <= 0)
    p.position.complete_unix_ms = clock_unix_ms();
  TRY(mem_grow(t->n + 1, sizeof *t->items, &t->capacity, &t->items));
  t->items[t->n++] = p;
  *from = p.must_verify ? p.position.last_offset : p.position.at.next;
  return ERR_OK;
}

err_t topic_positions_add_foreign(struct topic_positions *t)
{
  TRY(mem_grow(t->n + 1, sizeof *t->items, &t->capacity, &t->items));
  t->items[t->n] = (struct topic_position){
    .position = { .at = { (int32_t)t->n, 0 }, .last_offset = -1 },
    .known_end = -1,
    .is_foreign = true,
  };
  t->n++;
  return ERR_OK;
}

bool topic_position_matches(const struct store_position *last, const struct topic_record *record)
{
  return topic_record_digest(record) == last->last_digest && record->timestamp_ms == last->last_timestamp_ms;
}

/* Compare the first record that is read with the last one that was applied. If compaction has removed that one, a later
 * record comes first. A later record proves nothing, not even by its timestamp: producers' clocks differ, and a
 * backfill writes old timestamps. */
static err_t verify_record(const struct topic_positions *t, const struct topic_position *p,
                           const struct topic_record *record)
{
  bool is_missing = record->offset > p->position.last_offset;

  if (is_missing && t->has_holes) {
    log_info("last_record_compacted",
             "partition=%" PRId32 " offset=%" PRId64 " note=\"the partition cannot be verified by this record\"",
             record->partition, p->position.last_offset);
    return ERR_OK;
  }
  if (is_missing)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the store has applied a record at offset %" PRId64
         ", but the topic has none there and is not compacted: this is another topic",
         record->partition, p->position.last_offset);
  if (!topic_position_matches(&p->position, record))
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64
         " differs from the one that the store has applied: this is another topic",
         record->partition, record->offset);
  return ERR_OK;
}

struct store_position topic_position_before(const struct topic_record *record)
{
  return (struct store_position){
    .at = { record->partition, record->offset },
    .last_offset = record->offset,
    .last_digest = topic_record_digest(record),
    .last_timestamp_ms = record->timestamp_ms,
  };
}

/* If the end that was known has been reached, what the partition had at that time has been read. */
static void note_known_end(struct topic_positions *t, struct topic_position *p)
{
  int64_t read_ns = clock_boot_ns() - p->known_end_ns;

  if (p->known_end < 0 || p->position.at.next < p->known_end)
    return;
  if (read_ns > t->longest_read_ns)
    t->longest_read_ns = read_ns;
  p->position.complete_unix_ms = clock_unix_ms() - read_ns / CLOCK_NS_PER_MS;
  p->known_end = -1;
}

static void move_past(struct topic_positions *t, struct topic_position *p, const struct topic_record *record)
{
  bool is_first = p->position.last_offset < 0;
  int64_t complete_unix_ms = p->position.complete_unix_ms;

  p->position = topic_position_before(record);
  p->position.complete_unix_ms = complete_unix_ms;
  if (is_first) {
    p->first = p->position;
    p->has_new_first = true;
  }
  p->position.at.next++;
  p->is_changed = true;
  note_known_end(t, p);
}

bool topic_positions_is_new(const struct topic_positions *t, const struct topic_record *record)
{
  bool is_read = record->partition >= 0 && (size_t)record->partition < t->n;

  return is_read && !record->is_end && record->offset >= t->items[record->partition].position.at.next;
}

err_t topic_positions_advance(struct topic_positions *t, const struct topic_record *record, bool *is_new)
{
  if (record->partition < 0 || (size_t)record->partition >= t->n)
    FAIL(ERR_KAFKA, "a record came from partition %" PRId32 ", which is not being read", record->partition);
  struct topic_position *p = &t->items[record->partition];
  if (p->must_verify)
    TRY(verify_record(t, p, record));
  p->must_verify = false;
  p->is_at_end = false;
  *is_new = record->offset >= p->position.at.next;
  if (*is_new)
    move_past(t, p, record);
  return ERR_OK;
}

size_t topic_positions_list_first(const struct topic_positions *t, struct store_position *positions)
{
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    if (t->items[i].has_new_first)
      positions[n++] = t->items[i].first;
  }
  return n;
}

void topic_positions_mark_first_stored(struct topic_positions *t)
{
  for (size_t i = 0; i < t->n; i++)
    t->items[i].has_new_first = false;
}

void topic_positions_note_end(struct topic_positions *t, int32_t partition, int64_t next)
{
  if (partition < 0 || (size_t)partition >= t->n)
    return;
  struct topic_position *p = &t->items[partition];
  p->has_read_end = true;
  p->is_at_end = true;
  if (next > p->position.at.next) {
    p->position.at.next = next;
    p->is_changed = true;
  }
  note_known_end(t, p);
  p->position.complete_unix_ms = clock_unix_ms();
}

void topic_positions_note_log_end(struct topic_positions *t, int32_t partition, int64_t log_end)
{
  if (partition < 0 || (size_t)partition >= t->n)
    return;
  struct topic_position *p = &t->items[partition];
  if (p->known_end >= 0 || log_end <= p->position.at.next) /* an old end says nothing of what came since */
    return;
  p->known_end = log_end;
  p->known_end_ns = clock_boot_ns();
}

bool topic_positions_have_caught_up(const struct topic_positions *t)
{
  for (size_t i = 0; i < t->n; i++) {
    const struct topic_position *p = &t->items[i];
    if (!p->is_paused && (p->position.at.next < p->end_at_start || (p->must_verify && !p->has_read_end)))
      return false;
  }
  return t->n > 0;
}

bool topic_positions_any_waits_for_room(const struct topic_positions *t)
{
  for (size_t i = 0; i < t->n; i++) {
    if (t->items[i].is_waiting_for_room)
      return true;
  }
  return false;
}

bool topic_positions_any_changed(const struct topic_positions *t)
{
  for (size_t i = 0; i < t->n; i++) {
    if (t->items[i].is_changed)
      return true;
  }
  return false;
}

size_t topic_positions_list_changed(struct topic_positions *t, struct store_position *positions)
{
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) {
    if (t->items[i].is_changed)
      positions[n++] = t->items[i].position;
    t->items[i].is_changed = false;
  }
  return n;
}

void topic_positions_touch(struct topic_positions *t)
{
  for (size_t i = 0; i < t->n; i++) {
    struct topic_position *p = &t->items[i];
    if (p->is_paused || p->is_foreign)
      continue;
    if (p->is_at_end)
      p->position.complete_unix_ms = clock_unix_ms();
    p->is_changed = true;
  }
}
