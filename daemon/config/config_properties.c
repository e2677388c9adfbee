/* SPDX-License-Identifier: Apache-2.0 */
/* The librdkafka properties that a configuration must not set, each with the reason. */
#include <string.h>

#include "daemon/config/config_settings.h"

/* Sluice sets these itself, because its guarantees depend on them. */
static const struct {
  const char *name;
  bool is_for_readers; /* refused only if it would reach the consumer of the catalogue or of the seen topic */
  const char *reason;
} refused[] = {
  { "enable.auto.commit", false, "an offset is committed only when everything before it is durable or answered" },
  { "auto.commit.enable", false, "an offset is committed only when everything before it is durable or answered" },
  { "enable.auto.offset.store", false, "an offset is committed only when everything before it is durable or answered" },
  { "auto.offset.reset", false, "Sluice must notice every gap in a topic; see catalogue.on_discontinuity" },
  { "group.id", false, "use query.group and catalogue.group" },
  { "group.instance.id", false,
    "a static member does not leave the group: its queries would wait for its restart, or for session.timeout.ms" },
  { "group.protocol", false, "Sluice takes part in rebalances of the classic protocol" },
  { "isolation.level", true, "the catalogue reads committed records only" },
  { "enable.partition.eof", false, "Sluice needs it to know when it has caught up" },
  { "message.timeout.ms", false, "an answer waits for its broker until it is delivered" },
  { "delivery.timeout.ms", false, "an answer waits for its broker until it is delivered" },
  { "delivery.report.only.error", false, "Sluice needs a report of every delivery" },
  { "enabled_events", false, "Sluice needs a report of every delivery" },
  { "acks", false, "an answer counts as delivered when all replicas have it; only then is its query committed" },
  { "request.required.acks", false,
    "an answer counts as delivered when all replicas have it; only then is its query committed" },
  { "retries", false, "an answer is sent again until a broker has it" },
  { "message.send.max.retries", false, "an answer is sent again until a broker has it" },
  { "enable.gapless.guarantee", false, "one answer too large for its topic would stop the producer of all answers" },
  { "partition.assignment.strategy", false,
    "all daemons of a group must agree, and incremental rebalances would have queries answered twice" },
  { "transactional.id", false, "Sluice sets it itself where it needs one" },
  { "test.mock.num.brokers", false, "use embedded_broker.enabled" },
};

err_t setting_verify_property(const struct setting *s, const struct kafka_property *property)
{
  bool reaches_readers =
      strcmp(s->path, "kafka") == 0 || strcmp(s->path, "catalogue.kafka") == 0 || strcmp(s->path, "seen.kafka") == 0;
  struct kafka_properties one = { .items = property, .n = 1 };

  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (strcmp(property->name, refused[i].name) == 0 && (reaches_readers || !refused[i].is_for_readers))
      FAIL(ERR_CONFIG, "%s must not be set: %s", property->name, refused[i].reason);
  }
  return kafka_properties_check(&one);
}
