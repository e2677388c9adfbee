/* SPDX-License-Identifier: Apache-2.0 */
/* Bring the report up to date: positions and lag of each partition, the rebuild, open dead letters. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

enum { REPORT_EVERY_MS = 200, HELD_BACK_EVENT_S = 10 };

/* Log when an open transaction holds records back for long. It is no error, but somebody may miss these records. */
static void note_held_back(int32_t partition, struct report_partition *row, int64_t now)
{
  int64_t n_held = row->committed_end >= 0 ? row->end - row->committed_end : 0;
  bool is_long = n_held > 0 && now - row->behind_since_ns > HELD_BACK_EVENT_S * CLOCK_NS_PER_S;

  if (is_long && !row->is_logged)
    log_warn("catalogue_held_back",
             "partition=%" PRId32 " records=%" PRId64 " from=%" PRId64
             " note=\"a transaction is open: the records are read when its producer commits it or it times out\"",
             partition, n_held, row->committed_end);
  else if (!row->behind_since_ns && row->is_logged)
    log_info("catalogue_held_back_over", "partition=%" PRId32, partition);
  row->is_logged = row->behind_since_ns && (row->is_logged || is_long);
}

/* Return the later of two times; 0 stands for none. Times before the machine's start are negative. */
static int64_t later_of(int64_t a, int64_t b)
{
  if (a == 0 || b == 0)
    return a ? a : b;
  return a > b ? a : b;
}

/* Return since when the oldest record that is not applied has been in the topic, at the earliest: it came after the
 * record that was applied last, and after the time when nothing was left. */
static int64_t behind_since(const struct catalogue *c, const struct store_position *position,
                            const struct report_partition *row, int64_t now)
{
  int64_t since = position->last_offset >= 0 ? age_watch_written_ns(&c->ages, position->last_timestamp_ms, now) : 0;

  since = later_of(since, row->at_end_ns);
  if (since)
    return since;
  return row->behind_since_ns ? row->behind_since_ns : now;
}

/* Return the position up to which all is applied. While records wait for room, reading is ahead of that. */
static const struct store_position *applied_to(const struct catalogue *c, const struct topic_position *at)
{
  bool is_behind = at->is_waiting_for_room || catalogue_phase(c) == CATALOGUE_DISK_FULL;

  if (!is_behind || store_is_rebuilding(c->with.store))
    return &at->position;
  const struct store_position *stored = store_find_position(c->with.store, at->position.at.partition);
  if (stored)
    return stored;
  return at->has_new_first ? &at->first : &at->position;
}

static void report_partition(struct catalogue *c, int32_t partition, struct report_partition *row, int64_t now)
{
  const struct topic_position *at = &c->topic.positions.items[partition];

  row->is_foreign = at->is_foreign;
  if (at->is_foreign)
    return;
  const struct store_position *applied = applied_to(c, at);
  row->next = applied->at.next;
  row->read = at->position.at.next;
  int64_t fetched_end = topic_reader_log_end(c->topic.reader, partition);
  row->end = fetched_end > at->end_at_start ? fetched_end : at->end_at_start;
  row->committed_end = at->is_at_end ? at->position.at.next : -1;
  if (row->end <= row->next && fetched_end >= 0) /* end_at_start does not count records of open transactions */
    row->at_end_ns = now;
  row->behind_since_ns = row->end <= row->next ? 0 : behind_since(c, applied, row, now);
  note_held_back(partition, row, now);
}

/* Show a partition as the store knows it. */
static void report_stored(const struct catalogue *c, const struct store_position *position, int64_t now)
{
  struct report_partition *row = &c->report.partitions[position->at.partition];

  row->next = row->read = position->at.next;
  row->end = row->committed_end = -1;
  row->complete_ns = age_watch_written_ns(&c->ages, position->complete_unix_ms, now);
}

err_t catalogue_report_away(struct catalogue *c)
{
  struct catalogue_report *r = &c->report;
  size_t n;
  const struct store_position *stored = store_positions(c->with.store, &n);
  err_code_t err = ERR_OK;

  catalogue_report_lock(r);
  r->is_away = true;
  if (r->n == 0 && n > 0) {
    err = catalogue_report_resize(r, (size_t)stored[n - 1].at.partition + 1);
    for (size_t i = 0; i < n && err == ERR_OK; i++)
      report_stored(c, &stored[i], clock_now_ns());
  }
  catalogue_report_unlock(r);
  return err;
}

err_t catalogue_report_update(struct catalogue *c)
{
  struct catalogue_report *r = &c->report;
  int64_t now = clock_now_ns();
  err_code_t err;

  if (now < c->report_due_ns)
    return ERR_OK;
  c->report_due_ns = now + REPORT_EVERY_MS * CLOCK_NS_PER_MS;
  catalogue_report_lock(r);
  err = catalogue_report_resize(r, c->topic.positions.n);
  for (size_t i = 0; i < r->n; i++)
    report_partition(c, (int32_t)i, &r->partitions[i], now);
  catalogue_rebuild_report(&c->rebuild, &r->rebuild);
  r->unknown_spaces = c->batch.unknown_spaces;
  r->unknown_attributes = c->batch.unknown_attributes;
  r->n_open_letters = c->letters.n;
  r->is_away = false;
  catalogue_report_unlock(r);
  return err;
}
