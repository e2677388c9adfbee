/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting to the control topic, polling it, and waiting between attempts. */
#include "daemon/models/models_topic.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* The catalogue thread waits for none of this, so the attempts are rare and short. */
enum { BROKER_TIMEOUT_MS = 2000, RETRY_MS = 1000 };

err_t models_topic_init(const struct kafka_layers *layers, const char *name, int64_t audit_ns, struct models_topic *out)
{
  struct kafka_layers unwatched = *layers; /* the name of the client in the statistics is that of the reader */

  *out = (struct models_topic){ .layers = *layers, .name = name };
  unwatched.client = NULL;
  topic_audit_init(&unwatched, name, audit_ns, &out->audit);
  return topic_reader_open(layers, name, &out->reader);
}

void models_topic_fini(struct models_topic *t)
{
  if (t->reader)
    topic_reader_close(&t->reader);
  topic_audit_fini(&t->audit);
  topic_positions_fini(&t->positions);
}

const struct store_position *models_topic_position(const struct models_topic *t)
{
  return t->positions.n ? &t->positions.items[0].position : NULL;
}

/* ---- Connecting ---- */

static err_t verify_partitions(const struct models_topic *t)
{
  int n;

  TRY(topic_reader_n_partitions(t->reader, BROKER_TIMEOUT_MS, &n));
  if (n != 1)
    FAIL(ERR_KAFKA_TOPIC, "topic %s has %d partitions: models.topic needs one, so that its records have an order",
         t->name, n);
  return ERR_OK;
}

static err_t assign(struct models_topic *t, const struct store_position *stored)
{
  struct topic_policy policy = topic_reader_policy(t->reader, BROKER_TIMEOUT_MS);
  int64_t first, end, from;

  TRY(topic_reader_bounds(t->reader, 0, BROKER_TIMEOUT_MS, &first, &end));
  topic_positions_clear(&t->positions);
  t->positions.has_holes = !policy.is_known || policy.is_compacted;
  /* Compaction may remove the first records: that is no gap. */
  struct store_position from_first = stored ? *stored : (struct store_position){ 0 };
  if (stored && stored->at.next < first)
    from_first.at.next = first;
  TRY(topic_positions_add(&t->positions, stored ? &from_first : NULL, first, end, &from));
  log_info("models_topic", "topic=%s from=%" PRId64 " end=%" PRId64, t->name, from, end);
  return topic_reader_assign(t->reader, 0, from);
}

static err_t connect(struct models_topic *t, const struct store_position *stored)
{
  topic_reader_unassign(t->reader);
  TRY(verify_partitions(t));
  TRY(assign(t, t->is_another_one ? NULL : stored));
  TRY(topic_audit_begin(&t->audit, &t->positions));
  t->is_connected = true;
  return ERR_OK;
}

/* Open another consumer: this one may have cached metadata of a former topic. On error it stays. */
static err_t reopen(struct models_topic *t)
{
  struct topic_reader *next;

  TRY(topic_reader_open_again(&t->layers, t->name, &next));
  if (topic_reader_is_outdated(t->reader))
    log_info("kafka_client_renewed", "client=models");
  topic_reader_abandon(&t->reader);
  t->reader = next;
  t->must_reopen = false;
  t->is_connected = false;
  return ERR_OK;
}

/* If the certificates have changed, let another consumer take over. While they do not fit, this one goes on. */
static err_t renew(struct models_topic *t)
{
  if (!topic_reader_is_outdated(t->reader) || !renewal_wait_is_over(&t->renewal))
    return ERR_OK;
  err_code_t err = reopen(t);
  if (err == ERR_KAFKA_RETRY) {
    renewal_wait_begin(&t->renewal, "models");
    return ERR_OK;
  }
  TRY(err);
  renewal_wait_end(&t->renewal);
  return ERR_OK;
}

/* ---- What goes wrong ---- */

static void say(struct models_topic *t, err_code_t err)
{
  snprintf(t->problem, sizeof t->problem, "%s", err_message());
  if (err != t->last_err)
    log_warn("models_topic_waiting", "topic=%s reason=%s", t->name, log_failure());
  t->last_err = err;
}

/* Wait out what can be waited out. A topic that is another one is read from its first record: what the former one said
 * holds until this one says otherwise. */
static err_t recover(struct models_topic *t, err_code_t err)
{
  if (err == ERR_DISCONTINUITY) {
    log_error("models_discontinuity", "topic=%s reason=%s note=\"it is read again; its generations are kept\"", t->name,
              log_failure());
    t->is_another_one = true;
  } else if (err_class(err) == ERR_CLASS_RETRY) {
    say(t, err);
    t->retry_due_ns = clock_now_ns() + RETRY_MS * CLOCK_NS_PER_MS;
  } else {
    return err;
  }
  t->must_reopen = true;
  t->is_connected = false;
  return ERR_OK;
}

/* ---- Polling ---- */

/* Move the position past a record. Keeps it if it is new. */
static err_t take(struct models_topic *t, const struct topic_record *record, struct topic_record *records, size_t *n)
{
  bool is_new;

  if (record->is_end) {
    topic_positions_note_end(&t->positions, record->partition, record->offset);
    return ERR_OK;
  }
  struct topic_record copy = *record;
  TRY(topic_positions_advance(&t->positions, &copy, &is_new));
  if (is_new)
    records[(*n)++] = copy;
  return ERR_OK;
}

static void note_reading(struct models_topic *t)
{
  if (!t->positions.items[0].is_at_end && !topic_positions_any_changed(&t->positions))
    return;
  t->last_err = ERR_OK;
  *t->problem = '\0';
  t->has_caught_up |= topic_positions_have_caught_up(&t->positions);
}

static err_t poll_connected(struct models_topic *t, int timeout_ms, size_t max, struct topic_record *records, size_t *n)
{
  struct topic_events events;
  size_t n_polled;

  topic_reader_poll(t->reader, max, timeout_ms, records, &n_polled, &events);
  for (size_t i = 0; i < n_polled; i++)
    TRY(take(t, &records[i], records, n));
  note_reading(t);
  TRY(topic_events_verify(&events, t->name));
  return topic_audit_step(&t->audit, &t->positions);
}

static err_t poll_or_connect(struct models_topic *t, const struct store_position *stored, int timeout_ms, size_t max,
                             struct topic_record *records, size_t *n)
{
  TRY(t->must_reopen ? reopen(t) : renew(t));
  if (!t->is_connected)
    TRY(connect(t, stored));
  return poll_connected(t, timeout_ms, max, records, n);
}

err_t models_topic_poll(struct models_topic *t, const struct store_position *stored, int timeout_ms, size_t max,
                        struct topic_record *records, size_t *n)
{
  *n = 0;
  topic_reader_release_all(t->reader);
  if (!t->is_connected && clock_now_ns() < t->retry_due_ns)
    return ERR_OK;
  err_code_t err = poll_or_connect(t, stored, timeout_ms, max, records, n);
  if (err == ERR_OK)
    return ERR_OK;
  *n = 0; /* they are read again */
  return recover(t, err);
}

err_t models_topic_wait(struct models_topic *t, err_code_t err)
{
  return recover(t, err);
}
