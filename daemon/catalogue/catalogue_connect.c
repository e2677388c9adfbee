/* SPDX-License-Identifier: Apache-2.0 */
/* Taking up the log, and what happens when it is not the one that the store came from. */
#include "daemon/catalogue/catalogue_state.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* The watermark becomes what is known of this log: it may be another one than the store's, and then go back. */
static err_t publish_log(struct catalogue *c)
{
  struct position *positions;
  size_t n;

  if (store_is_rebuilding(c->with.store)) /* the items that are served came from another log */
    return engine_set_positions(c->with.engine, NULL, 0);
  region_reset(&c->scratch);
  TRY(catalogue_list_seen(c, &positions, &n));
  return engine_set_positions(c->with.engine, positions, n);
}

/* The embedded broker drops its oldest records when a partition is full, and keeps nothing over a restart. Neither says
 * anything about the items: they stay, and the log is read from where it begins. */
static err_t go_on_behind_gap(struct catalogue *c, const char *reason)
{
  if (c->log.was_taken_up)
    log_error("embedded_broker_gap",
              "reason=%s limit=\"the embedded broker keeps about 5 MB of a partition\" "
              "remedy=\"write slower, set embedded_broker.partitions higher, or use a real broker: ops/kafka start\"",
              log_quote(span_of_str(reason)));
  else
    log_info("embedded_broker_begins_anew", "note=\"the stored items are kept\"");
  counters_add(&c->with.counters->gaps, c->log.was_taken_up);
  return store_forget_log(c->with.store);
}

/* A full disk is waited out here: the log must not be taken up again before, because only a look back may have shown
 * that it is another one. */
static err_t begin_rebuild(struct catalogue *c, const char *cause)
{
  err_code_t err;

  c->damages.n = 0; /* they were of the former log */
  TRY(engine_set_positions(c->with.engine, NULL, 0)); /* at_least speaks of the new log from now on */
  while ((err = catalogue_rebuild_begin(&c->rebuild, cause)) == ERR_STORE_FULL && !catalogue_is_stopping(c)) {
    if (catalogue_phase(c) != CATALOGUE_DISK_FULL)
      log_error("store_disk_full", "reason=%s", log_failure());
    catalogue_set_phase(c, CATALOGUE_DISK_FULL, err_message());
    pulse_beat();
    clock_sleep_ns(CATALOGUE_RETRY_MS * CLOCK_NS_PER_MS);
  }
  return err;
}

/* The topic does not continue the store: read it from its first record, if that is the policy. */
static err_t handle_discontinuity(struct catalogue *c)
{
  bool stops = c->with.config->catalogue.stops_on_discontinuity;
  char reason[REPORT_TEXT_BYTES];

  snprintf(reason, sizeof reason, "%s", err_message());
  if (c->with.config->embedded_broker.is_enabled)
    return go_on_behind_gap(c, reason);
  if (!stops)
    TRY(begin_rebuild(c, reason));
  counters_add(&c->with.counters->discontinuities, 1);
  log_event(stops ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "catalogue_discontinuity", "topic=%s policy=%s reason=%s",
            c->with.config->catalogue.topic, stops ? "stop" : "rebuild", log_quote(span_of_str(reason)));
  c->stops_here = stops;
  if (stops)
    FAIL(ERR_DISCONTINUITY,
         "%s; catalogue.on_discontinuity is `stop`: set it to `rebuild` to read the topic from its first record",
         reason);
  catalogue_set_phase(c, CATALOGUE_REBUILDING, reason);
  return ERR_OK;
}

static err_t note_connected(struct catalogue *c)
{
  letter_window_forget(&c->letters);
  catalogue_leave_damage(c);
  store_set_log_partitions(c->with.store, c->log.at.n);
  store_retry_refused(c->with.store);
  if (store_is_rebuilding(c->with.store)) {
    struct store_stats stats;
    store_stats(c->with.store, &stats);
    if (stats.n_items > 0)
      atomic_store(&c->is_serving, true);
    catalogue_set_phase(c, CATALOGUE_REBUILDING, c->rebuild.cause);
  } else {
    catalogue_set_phase(c, CATALOGUE_CATCHING_UP, NULL);
  }
  TRY(log_audit_begin(&c->audit, &c->log.at));
  TRY(catalogue_log_read(&c->log));
  return publish_log(c);
}

/* Take up the log, waiting for broker and topic as long as it takes. A stop in between is no success: what `log.at` has
 * then may be of another log than the store's, and must not be stored. */
err_t catalogue_connect(struct catalogue *c)
{
  err_code_t last_err = ERR_OK;

  if (catalogue_phase(c) != CATALOGUE_REBUILDING)
    catalogue_set_phase(c, CATALOGUE_CONNECTING, NULL);
  while (!catalogue_is_stopping(c)) {
    pulse_beat();
    err_code_t err = catalogue_log_take_up(&c->log);
    if (err == ERR_OK)
      return note_connected(c);
    if (err == ERR_DISCONTINUITY) {
      TRY(handle_discontinuity(c));
      continue;
    }
    if (err_class(err) != ERR_CLASS_RETRY)
      return err;
    if (last_err != err)
      log_warn("catalogue_waiting", "reason=%s", log_failure());
    catalogue_set_phase(c, err == ERR_STORE_FULL ? CATALOGUE_DISK_FULL : CATALOGUE_CONNECTING, err_message());
    last_err = err;
    clock_sleep_ns(CATALOGUE_RETRY_MS * CLOCK_NS_PER_MS);
  }
  FAIL(ERR_STOPPING, "the daemon stops before the log was taken up");
}

err_t catalogue_begin_again(struct catalogue *c)
{
  TRY(handle_discontinuity(c));
  return catalogue_connect(c);
}

/* The disk filled up while something was begun or ended: it is tried again from the start. */
err_t catalogue_wait_for_disk(struct catalogue *c)
{
  log_error("store_disk_full", "reason=%s", log_failure());
  catalogue_set_phase(c, CATALOGUE_DISK_FULL, err_message());
  clock_sleep_ns(2 * CATALOGUE_RETRY_MS * CLOCK_NS_PER_MS);
  return catalogue_connect(c);
}

err_t catalogue_reconnect(struct catalogue *c)
{
  log_warn("catalogue_waiting", "reason=%s", log_failure());
  catalogue_set_phase(c, CATALOGUE_CONNECTING, err_message());
  TRY(catalogue_log_reopen(&c->log));
  return catalogue_connect(c);
}

