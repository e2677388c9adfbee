/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need more than one setting: there is exactly one kind of broker, and each role has its own topic. */
#include "daemon/config/config_checks.h"

#include <string.h>

#include "daemon/config/config_settings.h"

static int line_of(const struct config *c, const char *path)
{
  int line = c->lines[settings_find(path)];

  return line ? line : 1;
}

static bool has_bootstrap(const struct kafka_properties *properties)
{
  for (size_t i = 0; i < properties->n; i++) {
    const char *name = properties->items[i].name;
    if ((strcmp(name, "bootstrap.servers") == 0 || strcmp(name, "metadata.broker.list") == 0) &&
        *properties->items[i].value)
      return true;
  }
  return false;
}

static err_t verify_broker(const struct config *c)
{
  const struct {
    const char *path;
    const struct kafka_properties *properties;
  } maps[] = {
    { "kafka", &c->kafka },
    { "catalogue.kafka", &c->catalogue.kafka },
    { "query.kafka", &c->query.kafka },
    { "query.answer_kafka", &c->query.answer_kafka },
  };

  if (!c->embedded_broker.is_enabled && !has_bootstrap(&c->kafka))
    FAIL(ERR_CONFIG, "%s:%d: kafka has no bootstrap.servers: give a broker's address, or set %s", c->path,
         line_of(c, "kafka"), "embedded_broker.enabled to try Sluice without Kafka");
  for (size_t i = 0; c->embedded_broker.is_enabled && i < sizeof maps / sizeof maps[0]; i++) {
    if (has_bootstrap(maps[i].properties))
      FAIL(ERR_CONFIG, "%s:%d: %s has bootstrap.servers although embedded_broker.enabled is true: choose one", c->path,
           line_of(c, maps[i].path), maps[i].path);
  }
  return ERR_OK;
}

/* If two roles shared a topic, the daemon could read its own output as input. */
static err_t verify_topics(const struct config *c)
{
  const struct {
    const char *path;
    const char *topic;
  } roles[] = {
    { "catalogue.topic", c->catalogue.topic },
    { "catalogue.dead_letter_topic", c->catalogue.dead_letter_topic },
    { "query.topic", c->query.topic },
    { "query.answer_topic", c->query.answer_topic },
  };
  size_t n_roles = sizeof roles / sizeof roles[0];

  for (size_t i = 0; i < n_roles; i++) {
    for (size_t j = i + 1; j < n_roles; j++) {
      if (strcmp(roles[i].topic, roles[j].topic) != 0)
        continue;
      bool is_later = line_of(c, roles[j].path) >= line_of(c, roles[i].path);
      FAIL(ERR_CONFIG, "%s:%d: %s and %s are the same topic, %s: each needs its own", c->path,
           line_of(c, roles[is_later ? j : i].path), roles[i].path, roles[j].path, roles[i].topic);
    }
  }
  return ERR_OK;
}

err_t config_checks_run(const struct config *c, struct problems *problems)
{
  TRY(problems_note(problems, verify_broker(c)));
  return problems_note(problems, verify_topics(c));
}
