/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/catalogue/topic_position.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"

void topic_positions_fini(struct topic_positions *l)
{
  mem_free(&l->items);
}

void topic_positions_clear(struct topic_positions *l)
{
  l->n = 0;
  l->has_holes = true;
}

static err_t verify_bounds(const struct store_position *stored, int64_t first, int64_t end)
{
  if (stored->at.next < first)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the store has read up to offset %" PRId64 ", but the log begins at %" PRId64
         ": what lies between is gone",
         stored->at.partition, stored->at.next, first);
  if (stored->at.next > end)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the store has read up to offset %" PRId64 ", but the log ends at %" PRId64
         ": it is another topic, or was cut",
         stored->at.partition, stored->at.next, end);
  return ERR_OK;
}

err_t topic_positions_add(struct topic_positions *l, const struct store_position *stored, int64_t first, int64_t end,
                        int64_t *from)
{
  struct topic_position p = {
    .position = { .at = { (int32_t)l->n, first }, .last_offset = -1 },
    .end_at_start = end,
  };

  if (stored) {
    TRY(verify_bounds(stored, first, end));
    p.position = *stored;
    p.must_verify = stored->last_offset >= first && stored->last_offset < end;
  }
  TRY(mem_grow(l->n + 1, sizeof *l->items, &l->capacity, &l->items));
  l->items[l->n++] = p;
  *from = p.must_verify ? p.position.last_offset : p.position.at.next;
  return ERR_OK;
}

bool topic_position_matches(const struct store_position *last, const struct catalogue_record *record)
{
  return catalogue_record_digest(record) == last->last_digest && record->timestamp_ms == last->last_timestamp_ms;
}

/* The first record that comes: the one that was applied last, or, where compaction has removed that, a later one. Of a
 * later one even the timestamp says nothing: producers' clocks differ, and a backfill writes old times. */
static err_t verify_record(const struct topic_positions *l, const struct topic_position *p,
                           const struct catalogue_record *record)
{
  bool is_missing = record->offset > p->position.last_offset;

  if (is_missing && l->has_holes) {
    log_info("last_record_compacted", "partition=%" PRId32 " offset=%" PRId64 " note=\"it cannot be compared\"",
             record->partition, p->position.last_offset);
    return ERR_OK;
  }
  if (is_missing)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64
         ", which the store has applied, is not there, and the topic is not compacted: it is another topic",
         record->partition, p->position.last_offset);
  if (!topic_position_matches(&p->position, record))
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 ": the record at offset %" PRId64
         " is not the one that the store has applied: it is another topic",
         record->partition, record->offset);
  return ERR_OK;
}

err_t topic_positions_advance(struct topic_positions *l, const struct catalogue_record *record, bool *is_new)
{
  if (record->partition < 0 || (size_t)record->partition >= l->n)
    FAIL(ERR_KAFKA, "a record came from partition %" PRId32 ", which was not asked for", record->partition);
  struct topic_position *p = &l->items[record->partition];
  if (p->must_verify)
    TRY(verify_record(l, p, record));
  p->must_verify = false;
  p->is_at_end = false;
  *is_new = record->offset >= p->position.at.next;
  if (*is_new) {
    bool is_first = p->position.last_offset < 0;
    p->position.at.next = record->offset + 1;
    p->position.last_offset = record->offset;
    p->position.last_digest = catalogue_record_digest(record);
    p->position.last_timestamp_ms = record->timestamp_ms;
    p->is_changed = true;
    if (is_first) {
      p->first = topic_positions_before(l, record);
      p->has_new_first = true;
    }
  }
  return ERR_OK;
}

struct store_position topic_positions_before(const struct topic_positions *l, const struct catalogue_record *record)
{
  struct store_position position = l->items[record->partition].position;

  position.at.next = record->offset;
  return position;
}

size_t topic_positions_list_first(const struct topic_positions *l, struct store_position *positions)
{
  size_t n = 0;

  for (size_t i = 0; i < l->n; i++) {
    if (l->items[i].has_new_first)
      positions[n++] = l->items[i].first;
  }
  return n;
}

void topic_positions_mark_first_stored(struct topic_positions *l)
{
  for (size_t i = 0; i < l->n; i++)
    l->items[i].has_new_first = false;
}

void topic_positions_note_end(struct topic_positions *l, int32_t partition, int64_t next)
{
  if (partition < 0 || (size_t)partition >= l->n)
    return;
  l->items[partition].has_read_end = true;
  l->items[partition].is_at_end = true;
  if (next <= l->items[partition].position.at.next)
    return;
  l->items[partition].position.at.next = next;
  l->items[partition].is_changed = true;
}

bool topic_positions_have_caught_up(const struct topic_positions *l)
{
  for (size_t i = 0; i < l->n; i++) {
    const struct topic_position *p = &l->items[i];
    if (!p->is_paused && (p->position.at.next < p->end_at_start || (p->must_verify && !p->has_read_end)))
      return false;
  }
  return l->n > 0;
}

bool topic_positions_any_changed(const struct topic_positions *l)
{
  for (size_t i = 0; i < l->n; i++) {
    if (l->items[i].is_changed)
      return true;
  }
  return false;
}

size_t topic_positions_list_changed(struct topic_positions *l, struct store_position *positions)
{
  size_t n = 0;

  for (size_t i = 0; i < l->n; i++) {
    if (l->items[i].is_changed && !l->items[i].is_waiting_for_room)
      positions[n++] = l->items[i].position;
    l->items[i].is_changed = false;
  }
  return n;
}

void topic_positions_touch(struct topic_positions *l)
{
  for (size_t i = 0; i < l->n; i++)
    l->items[i].is_changed |= !l->items[i].is_paused; /* of one that is not read, the time stands still */
}
