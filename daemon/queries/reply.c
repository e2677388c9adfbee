/* SPDX-License-Identifier: Apache-2.0 */
/* Which topic a reply goes to, and its encoding. */
#include "daemon/queries/reply.h"

#include <stdio.h>

#include "base/glob.h"
#include "base/log.h"
#include "daemon/config/config_kafka.h"
#include "daemon/config/config_shard.h"
#include "daemon/queries/trial.h"

/* Memory of encoding that is kept for the next answer. */
enum { KEPT_BYTES = 16 << 20 };

/* ---- Topics that queries may name ---- */

static bool is_configured(const struct config *config, struct span topic)
{
  return topic.n == 0 || span_equal(topic, span_of_str(config->query.answer_topic));
}

/* Does the daemon use this topic itself? A reply in it would pass for a query, an item or a dead letter. */
static bool is_reserved(const struct config *config, struct span topic)
{
  for (size_t i = 0; i < CONFIG_KAFKA_TOPICS; i++) {
    if (span_equal(topic, span_of_str(config_kafka_topic_name(config, i))))
      return true;
  }
  return false;
}

static bool is_allowed(const struct config *config, struct span topic)
{
  const struct config_list *patterns = &config->query.reply_topics;

  for (size_t i = 0; i < patterns->n; i++) {
    if (glob_matches(patterns->items[i], topic))
      return true;
  }
  return false;
}

err_t reply_verify_topic(const struct config *config, struct span topic)
{
  if (is_configured(config, topic))
    return ERR_OK;
  if (is_reserved(config, topic))
    FAIL(ERR_QUERY, "reply_topic is %s, which this daemon uses itself", log_quote(topic));
  if (!is_allowed(config, topic))
    FAIL(ERR_QUERY, "reply_topic is %s, which the daemon's setting query.reply_topics does not allow",
         log_quote(topic));
  return ERR_OK;
}

/* ---- Replies ---- */

/* Choose the topic that the query names, if that is allowed. */
static void choose_topic(const struct config *config, struct span own, char topic[TOPIC_NAME_MAX + 1],
                         struct delivery_reply *reply)
{
  if (is_configured(config, own) || is_reserved(config, own) || !is_allowed(config, own))
    return;
  snprintf(topic, TOPIC_NAME_MAX + 1, "%.*s", (int)own.n, (const char *)own.p);
  reply->route = REPLY_TO_OWN_TOPIC;
  reply->own_topic = topic;
}

/* Of a shard: make the reply a part, which the role merge joins with the others. */
static err_t make_part(const struct reply_context *with, const struct pending_query *query, const struct answer *answer,
                       struct region *scratch, struct delivery_reply *reply)
{
  struct shard_part part;

  TRY(shard_part_make(with->config, query, answer, scratch, &part));
  reply->has_key = true;
  reply->key = part.key;
  reply->head = part.head;
  reply->value = part.value;
  reply->format = WIRE_PROTOBUF;
  return ERR_OK;
}

/* Encode the answer and send it. Returns the error of the encoder. */
static err_t try_answer(const struct reply_context *with, const struct pending_query *query,
                        const struct answer *answer, struct region *scratch)
{
  char topic[TOPIC_NAME_MAX + 1];
  struct delivery_reply reply = {
    .has_key = query->has_key,
    .key = query->key,
    .id = answer->id,
    .space = answer->space,
    .trace = query->trace,
    .traced = query->traced,
    .format = query->format,
    .ticket = query->ticket,
    .partition = query->partition,
    .offset = query->offset,
    .asked_ns = answer->error ? 0 : query->asked_ns,
    .never_blocks = with->never_blocks,
  };

  query_trace_note_answer(query->traced, &query->query, answer);
  region_trim(scratch, KEPT_BYTES);
  if (config_is_shard(with->config)) {
    TRY(make_part(with, query, answer, scratch, &reply));
  } else {
    choose_topic(with->config, query->query.reply_topic, topic, &reply);
    TRY(wire_encode_answer(answer, query->format, scratch, &reply.value));
  }
  delivery_send_reply(with->delivery, &reply);
  return ERR_OK;
}

/* Send the answer. If it cannot be encoded, send an error that says so: every query gets a reply. */
static void send_answer(const struct reply_context *with, const struct pending_query *query,
                        const struct answer *answer, struct region *scratch)
{
  char message[512];
  struct answer error = {
    .id = answer->id,
    .space = answer->space,
    .error = ANSWER_INTERNAL,
    .error_message = message,
  };

  if (query->trial) {
    trial_answer(query->trial, answer, scratch);
    return;
  }
  if (try_answer(with, query, answer, scratch) == ERR_OK) {
    counters_add(answer->error ? &with->counters->errors[answer->error] : &with->counters->answers, 1);
    return;
  }
  snprintf(message, sizeof message, "the answer cannot be written: %s", err_message());
  log_error("reply_not_written", "id=%s reason=%s", log_quote(answer->id), log_failure());
  counters_add(&with->counters->errors[error.error], 1);
  err_code_t err = try_answer(with, query, &error, scratch);
  if (err != ERR_OK) /* out of memory: the query is answered after a restart */
    delivery_fail(with->delivery, err);
}

void reply_answer(const struct reply_context *with, const struct pending_query *query, struct answer *answer,
                  struct region *scratch)
{
  answer->id = query->query.id;
  answer->error = ANSWER_OK;
  send_answer(with, query, answer, scratch);
}

void reply_error(const struct reply_context *with, const struct pending_query *query, enum answer_error error,
                 const char *message, struct region *scratch)
{
  struct answer answer = {
    .id = query->query.id,
    .space = query->query.space,
    .error = error,
    .error_message = message,
  };

  send_answer(with, query, &answer, scratch);
}

enum answer_error reply_error_of(err_code_t err)
{
  switch (err) {
  case ERR_SPACE:
    return ANSWER_UNKNOWN_SPACE;
  case ERR_METHOD:
    return ANSWER_UNKNOWN_METHOD;
  case ERR_QUERY:
    return ANSWER_BAD_QUERY;
  default:
    return ANSWER_INTERNAL;
  }
}
