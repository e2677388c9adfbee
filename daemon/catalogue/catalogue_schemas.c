/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that wait for the schema of their next record, because the registry does not tell it for now. Each is
 * logged once and not fetched, while the others go on. When its schema is told, or when the registry says that there is
 * none, it is fetched again from that record. How often the registry is asked is decided in avro_schemas.c. */
#include "daemon/catalogue/catalogue_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* For how long a batch may ask. A question that has begun may take longer (schema_registry.h). */
enum { ASKING_MS = 250 };

void catalogue_begin_asking(struct catalogue *c)
{
  c->waits.ask_until_ns = clock_now_ns() + ASKING_MS * CLOCK_NS_PER_MS;
}

static bool may_ask(const struct catalogue *c)
{
  return clock_now_ns() < c->waits.ask_until_ns && !catalogue_is_stopping(c);
}

static bool is_waiting(const struct catalogue *c, int32_t partition)
{
  for (size_t i = 0; i < c->waits.n; i++) {
    if (c->waits.items[i].partition == partition)
      return true;
  }
  return false;
}

static void keep_reason(struct schema_wait *wait)
{
  snprintf(wait->reason, sizeof wait->reason, "%s", err_message());
}

static void describe(const struct catalogue *c, const struct schema_wait *wait, char text[REPORT_TEXT_BYTES])
{
  snprintf(text, REPORT_TEXT_BYTES, "partition %" PRId32 " of topic %s waits at offset %" PRId64 " for %s",
           wait->partition, c->topic.name, c->topic.positions.items[wait->partition].position.at.next, wait->reason);
}

static err_t begin_wait(struct catalogue *c, int32_t partition, uint32_t id)
{
  char problem[REPORT_TEXT_BYTES];
  struct schema_wait *wait;

  TRY(mem_grow(c->waits.n + 1, sizeof *c->waits.items, &c->waits.capacity, &c->waits.items));
  wait = &c->waits.items[c->waits.n++];
  *wait = (struct schema_wait){ .partition = partition, .id = id, .since_ns = clock_boot_ns() };
  keep_reason(wait);
  c->topic.positions.items[partition].is_paused = true;
  topic_reader_leave(c->topic.reader, partition);
  describe(c, wait, problem);
  log_warn("catalogue_schema_waiting", "reason=%s", log_quote(span_of_str(problem)));
  counters_add(&c->with.counters->schema_waits, 1);
  return ERR_OK;
}

err_t catalogue_find_schema(struct catalogue *c, const struct topic_record *record, bool *may_take)
{
  uint32_t id;

  *may_take = !is_waiting(c, record->partition); /* not the end of the partition either: it is not reached */
  if (!*may_take || !topic_positions_is_new(&c->topic.positions, record))
    return ERR_OK;
  err_code_t err = item_format_find_schema(&c->gather.format, record, may_ask(c), &id);
  if (err != ERR_REGISTRY)
    return err;
  *may_take = false;
  return begin_wait(c, record->partition, id);
}

/* Tombstones that came meanwhile may have been removed from the topic, so that their items would stay for ever. */
static err_t verify_length(const struct catalogue *c, const struct schema_wait *wait)
{
  int64_t kept_ns = c->reading.tombstone_retention_ns, waited_ns = clock_boot_ns() - wait->since_ns;

  if (kept_ns > 0 && waited_ns > kept_ns)
    FAIL(ERR_DISCONTINUITY,
         "partition %" PRId32 " has waited %" PRId64 " s for schema %" PRIu32
         ", but the topic keeps tombstones for only %" PRId64 " s (delete.retention.ms): deletes may be missing",
         wait->partition, waited_ns / CLOCK_NS_PER_S, wait->id, kept_ns / CLOCK_NS_PER_S);
  return ERR_OK;
}

static err_t end_wait(struct catalogue *c, size_t i)
{
  struct schema_wait wait = c->waits.items[i];

  c->waits.items[i] = c->waits.items[--c->waits.n];
  TRY(verify_length(c, &wait));
  log_info("catalogue_schema_over", "partition=%" PRId32 " schema=%" PRIu32, wait.partition, wait.id);
  return catalogue_topic_retry(c, wait.partition);
}

/* Say what is waited for, unless the catalogue has another trouble. */
static void show(struct catalogue *c)
{
  enum catalogue_phase phase = catalogue_phase(c);
  char problem[REPORT_TEXT_BYTES];

  if (c->waits.n == 0 && phase == CATALOGUE_SCHEMA_AWAY)
    catalogue_set_phase(c, store_is_rebuilding(c->with.store) ? CATALOGUE_REBUILDING : CATALOGUE_CATCHING_UP, NULL);
  if (c->waits.n == 0 || (phase != CATALOGUE_SCHEMA_AWAY && phase != CATALOGUE_CATCHING_UP && phase != CATALOGUE_LIVE))
    return;
  describe(c, &c->waits.items[0], problem);
  catalogue_set_phase(c, CATALOGUE_SCHEMA_AWAY, problem);
}

err_t catalogue_retry_schemas(struct catalogue *c)
{
  catalogue_begin_asking(c);
  for (size_t i = c->waits.n; i-- > 0;) {
    struct schema_wait *wait = &c->waits.items[i];
    err_code_t err = item_format_ask(&c->gather.format, wait->id, may_ask(c));
    if (err == ERR_REGISTRY)
      keep_reason(wait);
    else if (err == ERR_OK || err_class(err) == ERR_CLASS_REJECT)
      TRY(end_wait(c, i));
    else
      return err;
  }
  show(c);
  return ERR_OK;
}

void catalogue_pause_waiting(struct catalogue *c)
{
  for (size_t i = c->waits.n; i-- > 0;) {
    struct schema_wait *wait = &c->waits.items[i];
    if ((size_t)wait->partition >= c->topic.positions.n) /* it was in a former topic with more partitions */
      *wait = c->waits.items[--c->waits.n];
    else
      c->topic.positions.items[wait->partition].is_paused = true;
  }
}
