#include "daemon/reply.h"

#include <stdio.h>

#include "base/log.h"

/* Kafka's longest legal topic name, which wire_decode_query() has checked. */
enum { TOPIC_MAX = 249 };

/* Encode and send. Returns what went wrong if this answer can never be sent. */
static err_t try_answer(const struct reply_context *with, const struct pending_query *query,
                        const struct answer *answer, struct region *scratch)
{
  char topic[TOPIC_MAX + 1];
  struct delivery_reply reply = {
    .topic = with->answer_topic,
    .has_key = query->has_key,
    .key = query->key,
    .error_topic = with->answer_topic,
    .format = query->format,
    .ticket = query->ticket,
  };
  struct answer undelivered = {
    .id = answer->id,
    .space = answer->space,
    .error = ANSWER_INTERNAL,
    .error_message = "no broker took the answer: is its topic there, and may it be written?",
  };

  region_reset(scratch);
  if (query->query.reply_topic.n) {
    snprintf(topic, sizeof topic, "%.*s", (int)query->query.reply_topic.n, (const char *)query->query.reply_topic.p);
    reply.topic = topic;
  }
  TRY(wire_encode_answer(&undelivered, query->format, scratch, &reply.error_value));
  TRY(wire_encode_answer(answer, query->format, scratch, &reply.value));
  return delivery_reply(with->delivery, &reply);
}

/* Every query gets its reply: where the answer cannot be encoded, or is too large to send, an error says so in its
 * place. */
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

  if (try_answer(with, query, answer, scratch) == ERR_OK) {
    counters_add(answer->error ? &with->counters->errors : &with->counters->answers, 1);
    return;
  }
  snprintf(message, sizeof message, "the answer cannot be sent: %s", err_message());
  log_error("reply_not_sent", "id=%s reason=%s", log_quote(answer->id), log_failure());
  counters_add(&with->counters->errors, 1);
  err_code_t err = try_answer(with, query, &error, scratch);
  if (err != ERR_OK && err != ERR_MEMORY) /* without memory it is answered after a restart */
    delivery_abandon(with->delivery, query->ticket);
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
