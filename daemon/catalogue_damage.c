/* A place in the broker's log that cannot be read: said once, gone around, looked at again. */
#include "daemon/catalogue_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

enum { DAMAGE_RETRY_MAX_MS = 30000 };

/* The broker's disk holds something that is no batch of records. It is said once, and read again later and later. */
err_t catalogue_note_damage(struct catalogue *c, const struct damage_sighting *sighting)
{
  struct damage *d = &c->damage;
  bool is_known = d->is_there && d->partition == sighting->partition;
  int backoff_ms = is_known ? 2 * d->backoff_ms : CATALOGUE_RETRY_MS;
  char problem[REPORT_TEXT_BYTES];

  snprintf(problem, sizeof problem,
           "partition %" PRId32 " of topic %s cannot be read at offset %" PRId64
           ": the broker's log is damaged there; restore the replica, or delete the records up to the damage",
           sighting->partition, c->with.config->catalogue.topic, sighting->offset);
  if (!is_known) {
    log_error("catalogue_damaged", "reason=%s", log_quote(span_of_str(problem)));
    counters_add(&c->with.counters->damages, 1);
  }
  *d = (struct damage){
    .is_there = true,
    .partition = sighting->partition,
    .backoff_ms = backoff_ms < DAMAGE_RETRY_MAX_MS ? backoff_ms : DAMAGE_RETRY_MAX_MS,
  };
  if ((size_t)d->partition < c->log.at.n)
    d->next = c->log.at.items[d->partition].position.next;
  d->retry_ns = clock_now_ns() + d->backoff_ms * CLOCK_NS_PER_MS;
  if (c->with.config->catalogue.stops_on_damage)
    FAIL(ERR_KAFKA, "%s; catalogue.on_damage is `stop`", problem);
  FAIL(ERR_KAFKA_DAMAGED, "%s", problem);
}

/* The damaged place is not asked for again before its time. */
void catalogue_leave_damage(struct catalogue *c)
{
  if (c->damage.is_there && (size_t)c->damage.partition < c->log.at.n)
    catalogue_reader_leave(c->log.reader, c->damage.partition);
}

/* All partitions are taken up anew, where the store stands, but the damaged one. */
err_t catalogue_go_around_damage(struct catalogue *c)
{
  char problem[REPORT_TEXT_BYTES];

  snprintf(problem, sizeof problem, "%s", err_message());
  TRY(catalogue_connect(c));
  catalogue_set_phase(c, CATALOGUE_DAMAGED, problem);
  return ERR_OK;
}

/* A damaged place is read again when its time has come; once the partition has moved on, the damage is over. */
err_t catalogue_retry_damage(struct catalogue *c)
{
  struct damage *d = &c->damage;

  if (!d->is_there || (size_t)d->partition >= c->log.at.n)
    return ERR_OK;
  const struct log_position *at = &c->log.at.items[d->partition];
  if (at->position.next > d->next || at->is_at_end) {
    log_info("catalogue_damage_over", "partition=%" PRId32, d->partition);
    d->is_there = false;
    catalogue_set_phase(c, store_is_rebuilding(c->with.store) ? CATALOGUE_REBUILDING : CATALOGUE_CATCHING_UP, NULL);
  } else if (clock_now_ns() >= d->retry_ns) {
    d->retry_ns = INT64_MAX; /* until it fails again */
    return catalogue_log_retry(&c->log, d->partition);
  }
  return ERR_OK;
}
