/* SPDX-License-Identifier: Apache-2.0 */
/* The record is put together from the texts of two answers, in the form that clients know. */
#include "daemon/shadow/shadow_topic.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/utf8.h"
#include "ingest/wire/wire.h"

enum { CLOSE_TIMEOUT_MS = 500, DIGITS = 9 };

/* Records that wait for their broker, at most: they take memory. */
enum { WAITING_MAX = 256 };

static void note_lost(const struct shadow_topic *t, const char *reason)
{
  counters_add(&t->counters->shadow_records_lost, 1);
  log_warn("shadow_not_written", "topic=%s reason=%s", t->name, log_quote(span_of_str(reason)));
}

static void on_report(void *context, const struct sender_report *report)
{
  struct shadow_topic *t = context;

  if (report->fate == SENDER_CLOSED) /* a stop, which says how many there are */
    counters_add(&t->counters->shadow_records_lost, 1);
  else if (report->fate != SENDER_DELIVERED)
    note_lost(t, report->reason);
}

err_t shadow_topic_open(const struct config *config, const struct kafka_setup *kafka, struct counters *counters,
                        struct shadow_topic *out)
{
  *out = (struct shadow_topic){ .name = config->models.shadow_topic, .counters = counters };
  if (!*out->name)
    return ERR_OK;
  out->layers = kafka_setup_layers(kafka, &config->query.answer_kafka, false);
  err_code_t err = sender_open(&out->layers, on_report, out, &out->sender);
  if (err != ERR_CONFIG)
    return err;
  renewal_wait_begin_first(&out->renewal, "shadow"); /* it was good when the daemon was started */
  return ERR_OK;
}

void shadow_topic_close(struct shadow_topic *t)
{
  if (t->sender && sender_flush(t->sender, CLOSE_TIMEOUT_MS) != ERR_OK)
    log_info("shadow_topic", "topic=%s left=%zu", t->name, sender_n_waiting(t->sender));
  sender_close(&t->sender);
}

/* Open the producer if it is not open yet, or if there are new certificates. */
static void renew(struct shadow_topic *t)
{
  struct sender *next;

  if ((t->sender && !sender_is_outdated(t->sender)) || !renewal_wait_is_over(&t->renewal))
    return;
  if (sender_open(&t->layers, on_report, t, &next) != ERR_OK) {
    renewal_wait_begin(&t->renewal, "shadow");
    return;
  }
  renewal_wait_end(&t->renewal);
  sender_close(&t->sender);
  t->sender = next;
  log_info("kafka_client_renewed", "client=shadow");
}

/* ---- Records ---- */

/* The members before the answers. */
static json_t *head_json(const struct shadow_record *r, const char *id)
{
  json_t *correlation = r->measures.is_ranked ? json_real(r->measures.correlation) : json_null();

  return json_pack("{s:s, s:s%, s:I, s:I, s:I, s:I, s:f, s:o}", "id", id, "space", r->current->space.p,
                   r->current->space.n, "current_generation", (json_int_t)r->current->generation, "shadow_generation",
                   (json_int_t)r->shadow->generation, "k", (json_int_t)r->k, "common", (json_int_t)r->measures.n_common,
                   "overlap", r->measures.overlap, "correlation", correlation);
}

static err_t print_head(const struct shadow_record *r, struct region *region, struct span *out)
{
  char *id;

  TRY(utf8_mend(region, r->id, &id));
  json_t *json = head_json(r, id);
  char *text = json ? json_dumps(json, JSON_REAL_PRECISION(DIGITS) | JSON_COMPACT) : NULL;
  json_decref(json);
  if (!text)
    FAIL(ERR_WIRE, "the record of a comparison cannot be written");
  err_code_t err = region_copy(region, span_of_str(text), out);
  free(text);
  return err;
}

/* Append the answers as the last members of the object. */
static err_t join(struct span head, struct span current, struct span shadow, struct region *region, struct span *out)
{
  size_t n = head.n + current.n + shadow.n + 64;
  char *text;

  TRY(region_array(region, n, 1, &text));
  int used = snprintf(text, n, "%.*s,\"current\":%.*s,\"shadow\":%.*s}", (int)head.n - 1, (const char *)head.p,
                      (int)current.n, (const char *)current.p, (int)shadow.n, (const char *)shadow.p);
  *out = span_of(text, (size_t)used);
  return ERR_OK;
}

err_t shadow_topic_encode(const struct shadow_record *record, struct region *region, struct span *out)
{
  struct span head, current, shadow;

  TRY(print_head(record, region, &head));
  TRY(wire_encode_answer(record->current, WIRE_JSON, region, &current));
  TRY(wire_encode_answer(record->shadow, WIRE_JSON, region, &shadow));
  return join(head, current, shadow, region, out);
}

void shadow_topic_send(struct shadow_topic *t, const struct shadow_record *record, struct region *region)
{
  struct sender_message message = {
    .topic = t->name, .has_key = record->has_key, .key = record->key, .has_value = true
  };
  const char *reason;

  if (!*t->name)
    return;
  renew(t);
  if (!t->sender)
    note_lost(t, "the producer cannot be opened yet");
  else if (sender_n_waiting(t->sender) >= WAITING_MAX)
    note_lost(t, "too many records wait for their broker");
  else if (shadow_topic_encode(record, region, &message.value) != ERR_OK)
    note_lost(t, err_message());
  else if (sender_try(t->sender, &message, &reason) != SENDER_QUEUED)
    note_lost(t, reason);
}

bool shadow_topic_poll(struct shadow_topic *t, int timeout_ms)
{
  if (!t->sender || sender_n_waiting(t->sender) == 0)
    return false;
  sender_poll(t->sender, timeout_ms);
  return sender_n_waiting(t->sender) > 0;
}
