/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of phase: the topic is read to its end, a rebuild is complete, partitions were added, there is room again. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

/* A full catalogue reads the waiting items again when this share of max_items is free. When less is free, it does so
 * once room.retry_due_ns has passed. */
enum { ROOM_PERCENT = 1 };

/* How often the ends of partitions are looked at that the consumer has learned while it read. */
enum { LOG_ENDS_EVERY_MS = 200 };

enum { TIDY_ROWS = 10000, TIDY_RETRY_S = 10 };

/* A batch alone may take a few seconds. */
enum { SLOW_READING_S = 5 };

/* Load the store's new items into the engine. A failure is not retried, because records of the new topic would be
 * applied to the former items in between. It ends the daemon, and the restart loads the store. */
static err_t replace_items(struct catalogue *c)
{
  err_code_t err = catalogue_replace(c);

  if (err_class(err) == ERR_CLASS_RETRY)
    FAIL(ERR_STORE, "the rebuilt catalogue cannot be loaded: %s", err_message());
  return err;
}

/* The other topic has been read to its end: its catalogue replaces the served one. */
static err_t finish_rebuild(struct catalogue *c)
{
  struct store_stats before, after;

  store_stats(c->with.store, &before);
  TRY(store_finish_rebuild(c->with.store));
  TRY(replace_items(c));
  store_stats(c->with.store, &after);
  catalogue_rebuild_end(&c->rebuild);
  counters_add(&c->with.counters->rebuilds, 1);
  log_info("catalogue_rebuilt", "items=%" PRIu64 " former_items=%" PRIu64, after.n_items, before.n_items);
  return ERR_OK;
}

/* Everything that can be read was read. It can be searched, though the daemon is not ready. */
static err_t serve_the_rest(struct catalogue *c)
{
  if (!store_is_rebuilding(c->with.store) && catalogue_n_target_items(c) > 0)
    return catalogue_serve(c);
  return ERR_OK;
}

static bool may_finish_rebuild(struct catalogue *c)
{
  if (!catalogue_rebuild_may_end(&c->rebuild)) {
    catalogue_set_phase(c, CATALOGUE_AWAITING, "see the event rebuild_waits, or run sluicectl rebuild");
    return false;
  }
  return topic_audit_confirms(&c->audit); /* the topic may have been replaced again during the rebuild */
}

static err_t go_live_at_end(struct catalogue *c)
{
  if (catalogue_phase(c) == CATALOGUE_LIVE || topic_positions_any_waits_for_room(&c->topic.positions) ||
      !topic_positions_have_caught_up(&c->topic.positions))
    return ERR_OK;
  if (c->damages.n > 0 || c->waits.n > 0)
    return serve_the_rest(c);
  if (store_is_rebuilding(c->with.store)) {
    if (!may_finish_rebuild(c))
      return ERR_OK;
    TRY(finish_rebuild(c));
    c->report_due_ns = 0; /* /status must not show ready and a rebuild at once */
    TRY(catalogue_report_update(c));
  }
  TRY(catalogue_serve(c));
  catalogue_set_phase(c, CATALOGUE_LIVE, NULL);
  return ERR_OK;
}

/* Start reading partitions that were added to the topic, from their first record. */
static err_t read_added_partitions(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (now < c->upkeep.refresh_due_ns)
    return ERR_OK;
  c->upkeep.refresh_due_ns = now + (int64_t)c->with.config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS;
  TRY(catalogue_topic_add_new_partitions(c)); /* fails if the topic is gone; reading resumes when it is back */
  store_set_log_partitions(c->with.store, c->topic.positions.n);
  return ERR_OK;
}

/* While no records come, free the catalogue that a rebuild has replaced. Batches free it too, but more slowly. If the
 * disk is full, retry later. */
static err_t tidy(struct catalogue *c)
{
  bool is_done;

  if (c->batch.n > 0 || clock_now_ns() < c->upkeep.tidy_due_ns)
    return ERR_OK;
  err_code_t err = store_tidy(c->with.store, TIDY_ROWS, &is_done);
  if (err != ERR_STORE_FULL)
    return err;
  c->upkeep.tidy_due_ns = clock_now_ns() + TIDY_RETRY_S * CLOCK_NS_PER_S;
  return ERR_OK;
}

/* If a full catalogue has room again, read again from the first item that waits for room. */
static err_t read_again_if_room(struct catalogue *c)
{
  uint64_t max = c->with.config->catalogue.max_items, n = catalogue_n_target_items(c);
  bool is_due = clock_now_ns() >= c->room.retry_due_ns;

  if (!topic_positions_any_waits_for_room(&c->topic.positions) || n >= max ||
      (!is_due && (max - n) * 100 < max * ROOM_PERCENT))
    return ERR_OK;
  return catalogue_connect(c);
}

/* Did reading take so long that the broker may have removed tombstones before they were read? Reading all again would
 * take as long, so this is only said. */
static void note_slow_reading(struct catalogue *c)
{
  int64_t read_ns = c->topic.positions.longest_read_ns, kept_ns = c->reading.tombstone_retention_ns;

  c->topic.positions.longest_read_ns = 0;
  if (kept_ns == 0 || read_ns <= kept_ns || read_ns < SLOW_READING_S * CLOCK_NS_PER_S)
    return;
  log_warn("catalogue_read_slowly",
           "read_s=%" PRId64 " kept_s=%" PRId64 " note=\"tombstones may have been removed before they were read\" "
           "remedy=\"let the topic keep them for longer (delete.retention.ms), then fill an empty store\"",
           read_ns / CLOCK_NS_PER_S, kept_ns / CLOCK_NS_PER_S);
}

static void note_log_ends(struct catalogue *c)
{
  struct topic_positions *t = &c->topic.positions;
  int64_t now = clock_now_ns();

  if (now < c->upkeep.log_ends_due_ns)
    return;
  c->upkeep.log_ends_due_ns = now + LOG_ENDS_EVERY_MS * CLOCK_NS_PER_MS;
  for (size_t i = 0; i < t->n; i++) {
    if (!t->items[i].is_foreign)
      topic_positions_note_log_end(t, (int32_t)i, topic_reader_log_end(c->topic.reader, (int32_t)i));
  }
}

err_t catalogue_do_upkeep(struct catalogue *c)
{
  note_log_ends(c);
  note_slow_reading(c);
  TRY(go_live_at_end(c));
  TRY(read_added_partitions(c));
  TRY(tidy(c));
  return read_again_if_room(c);
}
