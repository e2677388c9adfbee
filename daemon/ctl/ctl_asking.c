/* SPDX-License-Identifier: Apache-2.0 */
/* Open clients of the topics in the configuration. */
#include "daemon/ctl/ctl_asking.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ingest/kafka/topics.h"

/* The scan is opened before the sender, or early answers would be missed. */
err_t ctl_asking_open(struct ctl_context *ctx, sender_reported reported, void *context, struct topic_scan **answers,
                      struct sender **sender)
{
  static const struct topic_scan_range from_now_on = { .follows = true };
  static const struct kafka_property defaults[] = { { "linger.ms", "0" }, { "message.timeout.ms", "30000" } };
  const struct config *c = ctx->config;
  struct kafka_layers asked, answered;
  int n;

  TRY(ctl_context_layers(ctx, defaults, sizeof defaults / sizeof defaults[0], &c->query.kafka, &asked));
  TRY(ctl_context_layers(ctx, NULL, 0, &c->query.answer_kafka, &answered));
  TRY(topics_count_partitions(&asked, c->query.topic, CTL_KAFKA_TIMEOUT_MS, &n));
  TRY(topic_scan_open(&answered, c->query.answer_topic, &from_now_on, CTL_KAFKA_TIMEOUT_MS, answers));
  TRY(sender_open(&asked, reported, context, sender));
  sender_prepare(*sender, c->query.topic, CTL_KAFKA_TIMEOUT_MS);
  return ERR_OK;
}

uint64_t ctl_asking_series(void)
{
  return (uint64_t)clock_unix_ms() << 16 ^ (uint64_t)getpid();
}

err_t ctl_asking_verify_reply_topic(const json_t *query, const char *answer_topic)
{
  const json_t *topic = json_object_get(query, "reply_topic");

  topic = topic ? topic : json_object_get(query, "replyTopic");
  if (json_string_length(topic) > 0 && strcmp(json_string_value(topic), answer_topic) != 0)
    FAIL(ERR_QUERY, "reply_topic: the answer would go to %s, but sluicectl reads answers from %s",
         json_string_value(topic), answer_topic);
  return ERR_OK;
}

char *ctl_asking_error(const json_t *answer)
{
  const json_t *error = json_object_get(answer, "error");
  const char *code = json_string_value(json_object_get(error, "code"));
  const char *message = json_string_value(json_object_get(error, "message"));
  char *text = NULL;

  if (!json_is_object(error))
    return NULL;
  if (asprintf(&text, "%s: %s", code ? code : "UNKNOWN", message ? message : "") < 0)
    return NULL;
  return text;
}
