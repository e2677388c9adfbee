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
  *out = (struct models_topic){ 0 };
  topic_audit_init(layers, name, audit_ns, &out->audit);
  return followed_topic_init(layers, name, &out->followed);
}

void models_topic_fini(struct models_topic *t)
{
  followed_topic_fini(&t->followed);
  topic_audit_fini(&t->audit);
}

const struct store_position *models_topic_position(const struct models_topic *t)
{
  return t->followed.positions.n ? &t->followed.positions.items[0].position : NULL;
}

/* ---- Connecting ---- */

static err_t verify_partitions(const struct models_topic *t)
{
  int n;

  TRY(topic_reader_n_partitions(t->followed.reader, BROKER_TIMEOUT_MS, &n));
  if (n != 1)
    FAIL(ERR_KAFKA_TOPIC, "topic %s has %d partitions: models.topic needs one, so that its records have an order",
         t->followed.name, n);
  return ERR_OK;
}

static err_t assign(struct models_topic *t, const struct store_position *stored)
{
  struct followed_topic *f = &t->followed;
  struct topic_policy policy = topic_reader_policy(f->reader, BROKER_TIMEOUT_MS);
  int64_t first, end, from;

  TRY(topic_reader_bounds(f->reader, 0, BROKER_TIMEOUT_MS, &first, &end));
  followed_topic_clear(f);
  followed_topic_note_policy(f, &policy);
  /* Compaction may remove the first records: that is no gap. */
  struct store_position from_first = stored ? *stored : (struct store_position){ 0 };
  if (stored && stored->at.next < first)
    from_first.at.next = first;
  TRY(topic_positions_add(&f->positions, stored ? &from_first : NULL, first, end, &from));
  log_info("models_topic", "topic=%s from=%" PRId64 " end=%" PRId64, f->name, from, end);
  return topic_reader_assign(f->reader, 0, from);
}

static err_t connect(struct models_topic *t, const struct store_position *stored)
{
  TRY(verify_partitions(t));
  TRY(assign(t, t->is_another_one ? NULL : stored));
  TRY(topic_audit_begin(&t->audit, &t->followed.positions));
  t->is_connected = true;
  return ERR_OK;
}

/* Open another consumer: this one may have cached metadata of a former topic. On error it stays. */
static err_t reopen(struct models_topic *t)
{
  TRY(followed_topic_reopen(&t->followed));
  t->is_connected = false;
  return ERR_OK;
}

/* If the certificates have changed, let another consumer take over. While they do not fit, this one goes on. */
static err_t renew(struct models_topic *t)
{
  struct topic_reader *next;

  TRY(followed_topic_renew(&t->followed, &next));
  if (!next)
    return ERR_OK;
  followed_topic_take_over(&t->followed, &next);
  t->is_connected = false;
  return ERR_OK;
}

/* ---- What goes wrong ---- */

static void say(struct models_topic *t, err_code_t err)
{
  snprintf(t->problem, sizeof t->problem, "%s", err_message());
  if (err != t->last_err)
    log_warn("models_topic_waiting", "topic=%s reason=%s", t->followed.name, log_failure());
  t->last_err = err;
}

/* Wait out what can be waited out. A topic that is another one is read from its first record: what the former one said
 * holds until this one says otherwise. */
static err_t recover(struct models_topic *t, err_code_t err)
{
  if (err == ERR_DISCONTINUITY) {
    log_error("models_discontinuity", "topic=%s reason=%s note=\"it is read again; its generations are kept\"",
              t->followed.name, log_failure());
    t->is_another_one = true;
  } else if (err_class(err) == ERR_CLASS_RETRY) {
    say(t, err);
    t->retry_due_ns = clock_now_ns() + RETRY_MS * CLOCK_NS_PER_MS;
  } else {
    return err;
  }
  followed_topic_leave(&t->followed);
  t->is_connected = false;
  t->has_caught_up = false; /* what was polled last may not have been taken */
  return ERR_OK;
}

/* ---- Polling ---- */

/* Move the position past a record. Keeps it if it is new. */
static err_t take(struct models_topic *t, const struct topic_record *record, struct topic_record *records, size_t *n)
{
  struct topic_record copy = *record; /* it may lie where it is kept */
  bool is_new;

  TRY(followed_topic_take(&t->followed, &copy, &is_new));
  if (is_new)
    records[(*n)++] = copy;
  return ERR_OK;
}

static void note_reading(struct models_topic *t)
{
  if (!t->followed.positions.items[0].is_at_end && !topic_positions_any_changed(&t->followed.positions))
    return;
  t->last_err = ERR_OK;
  *t->problem = '\0';
  t->has_caught_up |= topic_positions_have_caught_up(&t->followed.positions);
}

static err_t poll_connected(struct models_topic *t, int timeout_ms, size_t max, struct topic_record *records, size_t *n)
{
  struct topic_events events;
  size_t n_polled;

  topic_reader_poll(t->followed.reader, max, timeout_ms, records, &n_polled, &events);
  for (size_t i = 0; i < n_polled; i++)
    TRY(take(t, &records[i], records, n));
  note_reading(t);
  TRY(topic_events_verify(&events, t->followed.name));
  return topic_audit_step(&t->audit, &t->followed.positions);
}

static err_t poll_or_connect(struct models_topic *t, const struct store_position *stored, int timeout_ms, size_t max,
                             struct topic_record *records, size_t *n)
{
  TRY(t->followed.is_left ? reopen(t) : renew(t));
  if (!t->is_connected)
    TRY(connect(t, stored));
  return poll_connected(t, timeout_ms, max, records, n);
}

err_t models_topic_poll(struct models_topic *t, const struct store_position *stored, int timeout_ms, size_t max,
                        struct topic_record *records, size_t *n)
{
  *n = 0;
  topic_reader_release_all(t->followed.reader);
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
