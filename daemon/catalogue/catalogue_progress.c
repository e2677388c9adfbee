/* SPDX-License-Identifier: Apache-2.0 */
/* From one phase to the next: caught up, rebuilt, more partitions, room again. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

/* A full catalogue reads its log again when so much of max_items is free, or when anything is after ROOM_WAIT_MS. */
enum { ROOM_PERCENT = 1, TIDY_ROWS = 10000, TIDY_RETRY_S = 10 };

/* The engine gets what the store has now. Trying again later would go on with the former items and the new log: what the
 * store cannot read now, a restart reads. */
static err_t replace_items(struct catalogue *c)
{
  err_code_t err = catalogue_replace(c);

  if (err_class(err) == ERR_CLASS_RETRY)
    FAIL(ERR_STORE, "the rebuilt catalogue cannot be loaded: %s", err_message());
  return err;
}

/* The other log has been read: its catalogue takes the place of the one that is served. */
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

static bool is_waiting_for_room(const struct catalogue *c)
{
  for (size_t i = 0; i < c->topic.positions.n; i++) {
    if (c->topic.positions.items[i].is_waiting_for_room)
      return true;
  }
  return false;
}

static err_t look_for_end(struct catalogue *c)
{
  if (catalogue_phase(c) == CATALOGUE_LIVE || is_waiting_for_room(c) || !topic_positions_have_caught_up(&c->topic.positions))
    return ERR_OK;
  if (c->damages.n > 0) { /* all but what cannot be read has been: that can be searched, though it is not ready */
    if (!store_is_rebuilding(c->with.store) && catalogue_n_target_items(c) > 0)
      atomic_store(&c->is_serving, true);
    return ERR_OK;
  }
  if (store_is_rebuilding(c->with.store)) {
    if (!catalogue_rebuild_may_end(&c->rebuild)) {
      catalogue_set_phase(c, CATALOGUE_AWAITING, "see the event rebuild_waits, or sluicectl rebuild");
      return ERR_OK;
    }
    if (!topic_audit_confirms(&c->audit)) /* the topic may have been replaced again meanwhile */
      return ERR_OK;
    TRY(finish_rebuild(c));
    c->report_due_ns = 0; /* who sees that we are ready shall not see a rebuild */
    TRY(catalogue_report_update(c));
  }
  atomic_store(&c->is_serving, true);
  catalogue_set_phase(c, CATALOGUE_LIVE, NULL);
  return ERR_OK;
}

/* Partitions that were added to the topic are read from their first record. */
static err_t look_for_partitions(struct catalogue *c)
{
  int64_t now = clock_now_ns();

  if (now < c->refresh_due_ns)
    return ERR_OK;
  c->refresh_due_ns = now + (int64_t)c->with.config->catalogue.partitions_refresh_ms * CLOCK_NS_PER_MS;
  TRY(catalogue_topic_add_new_partitions(&c->topic)); /* a topic that is gone is taken up anew when it is back */
  store_set_log_partitions(c->with.store, c->topic.positions.n);
  return ERR_OK;
}

/* In quiet times, what a rebuild has dropped is freed faster than batches do it. On a full disk that can wait. */
static err_t tidy(struct catalogue *c)
{
  bool is_done;

  if (c->batch.n > 0 || clock_now_ns() < c->tidy_due_ns)
    return ERR_OK;
  err_code_t err = store_tidy(c->with.store, TIDY_ROWS, &is_done);
  if (err != ERR_STORE_FULL)
    return err;
  c->tidy_due_ns = clock_now_ns() + TIDY_RETRY_S * CLOCK_NS_PER_S;
  return ERR_OK;
}

/* A full catalogue has room again: the log is read from the first item that had none. */
static err_t look_for_room(struct catalogue *c)
{
  uint64_t max = c->with.config->catalogue.max_items, n = catalogue_n_target_items(c);
  bool is_due = clock_now_ns() >= c->room_due_ns;

  if (!is_waiting_for_room(c) || n >= max || (!is_due && (max - n) * 100 < max * ROOM_PERCENT))
    return ERR_OK;
  return catalogue_connect(c);
}

err_t catalogue_note_progress(struct catalogue *c)
{
  TRY(look_for_end(c));
  TRY(look_for_partitions(c));
  TRY(tidy(c));
  return look_for_room(c);
}
