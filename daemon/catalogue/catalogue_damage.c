/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that cannot be read at some offset because the broker's data is damaged. Each is logged once, paused while
 * the others go on, and read again with increasing delays. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { DAMAGE_RETRY_MAX_MS = 30000 };

static struct damage *find(struct damages *d, int32_t partition)
{
  for (size_t i = 0; i < d->n; i++) {
    if (d->items[i].partition == partition)
      return &d->items[i];
  }
  return NULL;
}

static err_t find_or_add(struct damages *d, int32_t partition, struct damage **out)
{
  *out = find(d, partition);
  if (*out)
    return ERR_OK;
  TRY(mem_grow(d->n + 1, sizeof *d->items, &d->capacity, &d->items));
  *out = &d->items[d->n++];
  **out = (struct damage){ .partition = partition };
  return ERR_OK;
}

/* Double the delay, up to DAMAGE_RETRY_MAX_MS. */
static void back_off(struct damage *d)
{
  d->backoff_ms = d->backoff_ms ? 2 * d->backoff_ms : CATALOGUE_RETRY_MS;
  if (d->backoff_ms > DAMAGE_RETRY_MAX_MS)
    d->backoff_ms = DAMAGE_RETRY_MAX_MS;
  d->retry_ns = clock_now_ns() + d->backoff_ms * CLOCK_NS_PER_MS;
}

static void describe(const struct catalogue *c, const struct damage_sighting *sighting, char text[REPORT_TEXT_BYTES])
{
  snprintf(text, REPORT_TEXT_BYTES,
           "partition %" PRId32 " of topic %s cannot be read at offset %" PRId64
           ": the broker's data is damaged there; restore the replica, or delete the records up to the damage",
           sighting->partition, c->with.config->catalogue.topic, sighting->offset);
}

err_t catalogue_note_damage(struct catalogue *c, const struct damage_sighting *sighting)
{
  bool is_known = find(&c->damages, sighting->partition) != NULL;
  char problem[REPORT_TEXT_BYTES];
  struct damage *d;

  if ((size_t)sighting->partition >= c->topic.positions.n)
    FAIL(ERR_KAFKA_RETRY, "an error came from partition %" PRId32 ", which is not being read", sighting->partition);
  TRY(find_or_add(&c->damages, sighting->partition, &d));
  describe(c, sighting, problem);
  if (!is_known) {
    log_error("catalogue_damaged", "reason=%s", log_quote(span_of_str(problem)));
    counters_add(&c->with.counters->damages, 1);
  }
  d->next = c->topic.positions.items[d->partition].position.at.next;
  back_off(d);
  c->must_stop = c->with.config->catalogue.stops_on_damage;
  if (c->must_stop)
    FAIL(ERR_KAFKA_DAMAGED, "%s; catalogue.on_damage is `stop`", problem);
  FAIL(ERR_KAFKA_DAMAGED, "%s", problem);
}

/* A partition that was being retried gets a new retry time. */
void catalogue_pause_damaged(struct catalogue *c)
{
  for (size_t i = c->damages.n; i-- > 0;) {
    struct damage *d = &c->damages.items[i];
    if ((size_t)d->partition >= c->topic.positions.n) { /* it was in a former topic with more partitions */
      *d = c->damages.items[--c->damages.n];
      continue;
    }
    c->topic.positions.items[d->partition].is_paused = true;
    if (d->retry_ns == INT64_MAX)
      d->retry_ns = clock_now_ns() + d->backoff_ms * CLOCK_NS_PER_MS;
  }
}

/* Is the damage over, because the partition has moved past it? If not, retry the partition when it is due. */
static err_t check_damage(struct catalogue *c, struct damage *d, bool *is_over)
{
  const struct topic_position *at = &c->topic.positions.items[d->partition];

  *is_over = at->position.at.next > d->next || at->is_at_end;
  if (*is_over || clock_now_ns() < d->retry_ns)
    return ERR_OK;
  d->retry_ns = INT64_MAX; /* no retry is due until this one fails */
  return catalogue_topic_retry(c, d->partition);
}

static void end_damage(struct catalogue *c, struct damage *d)
{
  log_info("catalogue_damage_over", "partition=%" PRId32, d->partition);
  *d = c->damages.items[--c->damages.n];
  if (c->damages.n == 0)
    catalogue_set_phase(c, store_is_rebuilding(c->with.store) ? CATALOGUE_REBUILDING : CATALOGUE_CATCHING_UP, NULL);
}

err_t catalogue_retry_damage(struct catalogue *c)
{
  for (size_t i = c->damages.n; i-- > 0;) {
    struct damage *d = &c->damages.items[i];
    bool is_over;
    TRY(check_damage(c, d, &is_over));
    if (is_over)
      end_damage(c, d);
  }
  return ERR_OK;
}
