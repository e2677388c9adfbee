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

static void report_partition(struct catalogue *c, int32_t partition, struct report_partition *row, int64_t now)
{
  const struct topic_position *at = &c->topic.positions.items[partition];

  row->next = at->position.at.next;
  row->end = catalogue_reader_log_end(c->topic.reader, partition);
  row->committed_end = at->is_at_end ? row->next : -1;
  if (row->end <= row->next)
    row->behind_since_ns = 0;
  else if (!row->behind_since_ns)
    row->behind_since_ns = now;
  note_held_back(partition, row, now);
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
  r->unknown = c->batch.unknown;
  r->n_open_letters = c->letters.n;
  catalogue_report_unlock(r);
  return err;
}
