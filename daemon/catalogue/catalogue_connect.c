/* SPDX-License-Identifier: Apache-2.0 */
/* Connect: wait for broker and topic, then start reading each partition where the store stands. */
#include "daemon/catalogue/catalogue_state.h"

#include "base/log.h"
#include "ingest/kafka/kafka_trouble.h"

/* Set the epoch's watermark to the positions in this topic. They may be lower than before, if this is another topic. */
static err_t publish_positions(struct catalogue *c)
{
  struct position *positions;
  size_t n;

  if (store_is_rebuilding(c->with.store)) /* the served items came from another topic */
    return engine_set_positions(c->with.engine, NULL, 0);
  region_reset(&c->scratch);
  TRY(catalogue_list_watermark(c, &positions, &n));
  return engine_set_positions(c->with.engine, positions, n);
}

static err_t note_connected(struct catalogue *c)
{
  letter_window_forget(&c->letters);
  c->commit.digest = 0;
  catalogue_pause_damaged(c);
  catalogue_pause_waiting(c);
  store_set_log_partitions(c->with.store, c->topic.positions.n);
  store_retry_refused(c->with.store);
  if (store_is_rebuilding(c->with.store)) {
    struct store_stats stats;
    store_stats(c->with.store, &stats);
    if (stats.n_items > 0)
      TRY(catalogue_serve(c));
    catalogue_set_phase(c, CATALOGUE_REBUILDING, c->rebuild.cause);
  } else {
    catalogue_begin_first_fill(c);
    if (catalogue_phase(c) != CATALOGUE_DENIED) /* only a record proves that it may be read now */
      catalogue_set_phase(c, CATALOGUE_CATCHING_UP, NULL);
  }
  TRY(topic_audit_begin(&c->audit, &c->topic.positions));
  TRY(catalogue_topic_start_reading(c));
  return publish_positions(c);
}

static enum catalogue_phase phase_of(err_code_t err)
{
  switch (err) {
  case ERR_STORE_FULL:
    return CATALOGUE_DISK_FULL;
  case ERR_KAFKA_TOPIC:
    return CATALOGUE_TOPIC_AWAY;
  case ERR_KAFKA_DENIED:
    return CATALOGUE_DENIED;
  default:
    return CATALOGUE_CONNECTING;
  }
}

/* Is it said already why the topic is not being read, or what is being done? That stays until more is known. */
static bool has_telling_phase(const struct catalogue *c)
{
  enum catalogue_phase phase = catalogue_phase(c);

  return phase == CATALOGUE_REBUILDING || phase == CATALOGUE_DENIED || phase == CATALOGUE_DISK_FULL;
}

/* Open another consumer if this one was left, or if certificates have changed: perhaps they are what was wrong. */
static err_t reopen_if_outdated(struct catalogue *c)
{
  if (!c->topic.is_left && !topic_reader_is_outdated(c->topic.reader))
    return ERR_OK;
  return followed_topic_reopen(&c->topic);
}

/* A stop while waiting must not return ERR_OK: the positions may be of another topic then, and must not be stored. */
err_t catalogue_connect(struct catalogue *c)
{
  err_code_t last_err = ERR_OK;

  if (!has_telling_phase(c))
    catalogue_set_phase(c, CATALOGUE_CONNECTING, NULL);
  TRY(catalogue_report_away(c));
  while (!catalogue_is_stopping(c)) {
    pulse_beat();
    err_code_t err = reopen_if_outdated(c);
    if (err == ERR_OK)
      err = catalogue_topic_resume(c);
    if (err == ERR_OK)
      return note_connected(c);
    if (err == ERR_DISCONTINUITY) {
      TRY(catalogue_handle_discontinuity(c));
      continue;
    }
    if (err_class(err) != ERR_CLASS_RETRY)
      return err;
    if (last_err != err)
      log_warn("catalogue_waiting", "reason=%s", log_failure());
    catalogue_set_phase(c, phase_of(err), err_message());
    last_err = err;
    TRY(catalogue_wait_to_reopen(c, kafka_trouble_newest() ? CATALOGUE_REFUSED_MS : CATALOGUE_RETRY_MS));
  }
  FAIL(ERR_STOPPING, "the daemon is stopping: the catalogue topic was not connected");
}
