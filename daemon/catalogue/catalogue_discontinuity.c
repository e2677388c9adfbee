/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when the topic does not continue the store: rebuild, stop or go on, by policy. */
#include "daemon/catalogue/catalogue_state.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* The embedded broker drops its oldest records when a partition is full, and keeps nothing over a restart. Neither says
 * anything about the items: they stay, and the log is read from where it begins. */
static err_t go_on_behind_gap(struct catalogue *c, const char *reason)
{
  if (c->topic.has_resumed)
    log_error("embedded_broker_gap",
              "reason=%s limit=\"the embedded broker keeps about 5 MB of a partition\" "
              "remedy=\"write slower, set embedded_broker.partitions higher, or use a real broker: ops/kafka start\"",
              log_quote(span_of_str(reason)));
  else
    log_info("embedded_broker_begins_anew", "note=\"the stored items are kept\"");
  counters_add(&c->with.counters->gaps, c->topic.has_resumed);
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
err_t catalogue_handle_discontinuity(struct catalogue *c)
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
  c->must_stop = stops;
  if (stops)
    FAIL(ERR_DISCONTINUITY,
         "%s; catalogue.on_discontinuity is `stop`: set it to `rebuild` to read the topic from its first record",
         reason);
  catalogue_set_phase(c, CATALOGUE_REBUILDING, reason);
  return ERR_OK;
}
