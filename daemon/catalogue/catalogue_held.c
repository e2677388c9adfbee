/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that cannot be read on for now: the broker's data is damaged at some offset, or a record's schema cannot
 * be asked for. Each is logged once, paused while the others go on, and read again with increasing delays. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { RETRY_MAX_MS = 30000 };

static struct held_partition *find(struct held_partitions *held, int32_t partition)
{
  for (size_t i = 0; i < held->n; i++) {
    if (held->items[i].partition == partition)
      return &held->items[i];
  }
  return NULL;
}

static err_t find_or_add(struct held_partitions *held, int32_t partition, struct held_partition **out)
{
  *out = find(held, partition);
  if (*out)
    return ERR_OK;
  TRY(mem_grow(held->n + 1, sizeof *held->items, &held->capacity, &held->items));
  *out = &held->items[held->n++];
  **out = (struct held_partition){ .partition = partition };
  return ERR_OK;
}

/* Double the delay, up to RETRY_MAX_MS. */
static void back_off(struct held_partition *p)
{
  p->backoff_ms = p->backoff_ms ? 2 * p->backoff_ms : CATALOGUE_RETRY_MS;
  if (p->backoff_ms > RETRY_MAX_MS)
    p->backoff_ms = RETRY_MAX_MS;
  p->retry_ns = clock_now_ns() + p->backoff_ms * CLOCK_NS_PER_MS;
}

static void describe(const struct catalogue *c, const struct obstacle *obstacle, char text[REPORT_TEXT_BYTES])
{
  const char *topic = c->with.config->catalogue.topic;

  if (obstacle->err == ERR_REGISTRY) {
    snprintf(text, REPORT_TEXT_BYTES, "partition %" PRId32 " of topic %s waits at offset %" PRId64 " for %s",
             obstacle->partition, topic, obstacle->offset, obstacle->reason);
    return;
  }
  snprintf(text, REPORT_TEXT_BYTES,
           "partition %" PRId32 " of topic %s cannot be read at offset %" PRId64
           ": the broker's data is damaged there; restore the replica, or delete the records up to the damage",
           obstacle->partition, topic, obstacle->offset);
}

static void say_held(const struct catalogue *c, err_code_t err, const char *problem)
{
  if (err == ERR_REGISTRY)
    log_warn("catalogue_schema_waiting", "reason=%s", log_quote(span_of_str(problem)));
  else
    log_error("catalogue_damaged", "reason=%s", log_quote(span_of_str(problem)));
  counters_add(err == ERR_REGISTRY ? &c->with.counters->schema_waits : &c->with.counters->damages, 1);
}

err_t catalogue_hold(struct catalogue *c, const struct obstacle *obstacle)
{
  char problem[REPORT_TEXT_BYTES];
  struct held_partition *p;

  if ((size_t)obstacle->partition >= c->topic.positions.n)
    FAIL(ERR_KAFKA_RETRY, "an error came from partition %" PRId32 ", which is not being read", obstacle->partition);
  TRY(find_or_add(&c->held, obstacle->partition, &p));
  describe(c, obstacle, problem);
  if (p->err != obstacle->err)
    say_held(c, obstacle->err, problem);
  p->err = obstacle->err;
  p->next = c->topic.positions.items[p->partition].position.at.next;
  back_off(p);
  c->must_stop = p->err == ERR_KAFKA_DAMAGED && c->with.config->catalogue.stops_on_damage;
  if (c->must_stop)
    FAIL(p->err, "%s; catalogue.on_damage is `stop`", problem);
  FAIL(p->err, "%s", problem);
}

/* A partition that was being retried gets a new retry time. */
void catalogue_pause_held(struct catalogue *c)
{
  for (size_t i = c->held.n; i-- > 0;) {
    struct held_partition *p = &c->held.items[i];
    if ((size_t)p->partition >= c->topic.positions.n) { /* it was in a former topic with more partitions */
      *p = c->held.items[--c->held.n];
      continue;
    }
    c->topic.positions.items[p->partition].is_paused = true;
    if (p->retry_ns == INT64_MAX)
      p->retry_ns = clock_now_ns() + p->backoff_ms * CLOCK_NS_PER_MS;
  }
}

/* Is the obstacle over, because the partition has moved past it? If not, retry the partition when it is due. */
static err_t check_obstacle(struct catalogue *c, struct held_partition *p, bool *is_over)
{
  const struct topic_position *at = &c->topic.positions.items[p->partition];

  *is_over = at->position.at.next > p->next || at->is_at_end;
  if (*is_over || clock_now_ns() < p->retry_ns)
    return ERR_OK;
  p->retry_ns = INT64_MAX; /* no retry is due until this one fails */
  return catalogue_topic_retry(c, p->partition);
}

static void release(struct catalogue *c, struct held_partition *p)
{
  if (p->err == ERR_REGISTRY)
    log_info("catalogue_schema_found", "partition=%" PRId32, p->partition);
  else
    log_info("catalogue_damage_over", "partition=%" PRId32, p->partition);
  *p = c->held.items[--c->held.n];
  if (c->held.n == 0)
    catalogue_set_phase(c, store_is_rebuilding(c->with.store) ? CATALOGUE_REBUILDING : CATALOGUE_CATCHING_UP, NULL);
}

err_t catalogue_retry_held(struct catalogue *c)
{
  for (size_t i = c->held.n; i-- > 0;) {
    struct held_partition *p = &c->held.items[i];
    bool is_over;
    TRY(check_obstacle(c, p, &is_over));
    if (is_over)
      release(c, p);
  }
  return ERR_OK;
}
