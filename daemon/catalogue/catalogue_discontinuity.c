/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when the topic does not continue the store: rebuild, stop or go on, as configured. */
#include "daemon/catalogue/catalogue_state.h"

#include <stdio.h>

#include "base/log.h"

/* Keep the items and read on from the first record that the topic has. The embedded broker drops its oldest records
 * when a partition is full, and loses all when it restarts. Neither means that items were deleted. */
static err_t skip_gap(struct catalogue *c, const char *reason)
{
  TRY(store_forget_log(c->with.store)); /* before the event: on a full disk this is tried again and again */
  if (c->reading.has_resumed)
    log_error("embedded_broker_gap",
              "reason=%s limit=\"the embedded broker keeps about 5 MB of each partition\" "
              "remedy=\"write slower, set embedded_broker.partitions higher, or use a real broker: ops/kafka start\"",
              log_quote(span_of_str(reason)));
  else
    log_info("embedded_broker_begins_anew", "note=\"the stored items are kept\"");
  counters_add(&c->with.counters->gaps, c->reading.has_resumed);
  return ERR_OK;
}

/* Begin a rebuild. If the disk is full, wait here: reading must not resume before the rebuild has begun. Perhaps only
 * the audit noticed that this is another topic, and then resuming would not notice it again. */
static err_t begin_rebuild(struct catalogue *c, const char *cause)
{
  err_code_t err;

  c->waits.n = 0;
  c->damages.n = 0;                                   /* they were in the former topic */
  TRY(engine_set_positions(c->with.engine, NULL, 0)); /* from now on, at_least means offsets of the new topic */
  while ((err = catalogue_rebuild_begin(&c->rebuild, cause)) == ERR_STORE_FULL && !catalogue_is_stopping(c)) {
    if (catalogue_phase(c) != CATALOGUE_DISK_FULL)
      log_error("store_disk_full", "reason=%s", log_failure());
    catalogue_set_phase(c, CATALOGUE_DISK_FULL, err_message());
    pulse_beat();
    TRY(catalogue_wait(c, CATALOGUE_RETRY_MS));
  }
  return err;
}

err_t catalogue_handle_discontinuity(struct catalogue *c)
{
  bool stops = c->with.config->catalogue.stops_on_discontinuity;
  char reason[REPORT_TEXT_BYTES];

  snprintf(reason, sizeof reason, "%s", err_message());
  if (c->with.config->embedded_broker.is_enabled)
    return skip_gap(c, reason);
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
