/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that need more than one setting: there is exactly one kind of broker, each role has its own topic,
 * canaries are written to a topic of ours, and attributes that other settings name are there. */
#include "daemon/config/config_checks.h"

#include <string.h>

#include "base/log.h"
#include "daemon/config/config_fields.h"
#include "daemon/config/config_kafka.h"
#include "daemon/config/config_settings.h"
#include "daemon/config/config_url.h"

static int line_of(const struct config *c, const char *path)
{
  int line = c->lines[settings_find(path)];

  return line ? line : 1;
}

/* Return the line of the setting that comes later in the file. */
static int later_line(const struct config *c, const char *path, const char *other)
{
  int line = line_of(c, path), other_line = line_of(c, other);

  return line > other_line ? line : other_line;
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
  if (!c->embedded_broker.is_enabled && !has_bootstrap(&c->kafka))
    FAIL(ERR_CONFIG, "%s:%d: kafka has no bootstrap.servers: give a broker's address, or set %s", c->path,
         line_of(c, "kafka"), "embedded_broker.enabled to try Sluice without Kafka");
  for (size_t i = 0; c->embedded_broker.is_enabled && i < CONFIG_KAFKA_SECTIONS; i++) {
    const char *path = config_kafka_sections[i].path;
    if (has_bootstrap(config_kafka_properties(c, i)))
      FAIL(ERR_CONFIG, "%s:%d: %s has bootstrap.servers although embedded_broker.enabled is true: choose one", c->path,
           line_of(c, path), path);
  }
  return ERR_OK;
}

/* If two roles shared a topic, the daemon could read its own output as input. */
static err_t verify_pair(const struct config *c, size_t i, size_t j)
{
  const char *path = config_kafka_topics[i].path, *other = config_kafka_topics[j].path;
  const char *topic = config_kafka_topic_name(c, i);

  if (*topic && strcmp(topic, config_kafka_topic_name(c, j)) == 0)
    FAIL(ERR_CONFIG, "%s:%d: %s and %s are the same topic, %s: each needs its own", c->path, later_line(c, path, other),
         path, other, topic);
  return ERR_OK;
}

static err_t verify_topics(const struct config *c)
{
  for (size_t i = 0; i < CONFIG_KAFKA_TOPICS; i++) {
    for (size_t j = i + 1; j < CONFIG_KAFKA_TOPICS; j++)
      TRY(verify_pair(c, i, j));
  }
  return ERR_OK;
}

/* Somebody else's topic may want other keys, and nobody expects us to write there. */
static err_t verify_canary(const struct config *c)
{
  if (c->canary.interval_ms > 0 && c->catalogue.format != CONFIG_FORMAT_SLUICE)
    FAIL(ERR_CONFIG,
         "%s:%d: canary.interval_ms needs catalogue.format: sluice, because canaries are written to the "
         "catalogue topic: set it to 0",
         c->path, line_of(c, "canary.interval_ms"));
  return ERR_OK;
}

/* The members of the query group would keep the catalogue's positions from being committed. */
static err_t verify_groups(const struct config *c)
{
  if (c->catalogue.commit_interval_ms > 0 && strcmp(c->catalogue.group, c->query.group) == 0)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.group and query.group are the same group, %s: each needs its own", c->path,
         later_line(c, "catalogue.group", "query.group"), c->query.group);
  return ERR_OK;
}

static err_t verify_models(const struct config *c)
{
  if (*c->models.files_topic && !*c->models.topic)
    FAIL(ERR_CONFIG, "%s:%d: models.files_topic is set, but models.topic, which says what is fetched, is not", c->path,
         line_of(c, "models.files_topic"));
  if (*c->models.shadow_topic && !*c->models.topic)
    FAIL(ERR_CONFIG, "%s:%d: models.shadow_topic is set, but models.topic, which says what is compared, is not",
         c->path, line_of(c, "models.shadow_topic"));
  return ERR_OK;
}

static err_t verify_shard(const struct config *c)
{
  if (c->catalogue.n_shards == 0 && c->catalogue.shard > 0)
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.shard.index is set, but catalogue.shard.of is not: say how many shards there are", c->path,
         line_of(c, "catalogue.shard.index"));
  if (c->catalogue.n_shards > 0 && c->catalogue.shard >= c->catalogue.n_shards)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.shard.index is %llu, but of %llu shards the last is %llu", c->path,
         line_of(c, "catalogue.shard.index"), (unsigned long long)c->catalogue.shard,
         (unsigned long long)c->catalogue.n_shards, (unsigned long long)c->catalogue.n_shards - 1);
  if (c->catalogue.n_shards > 0 && c->canary.interval_ms > 0)
    FAIL(ERR_CONFIG, "%s:%d: canary.interval_ms: a shard may not read the partition of the canary: set it to 0",
         c->path, line_of(c, "canary.interval_ms"));
  return ERR_OK;
}

/* A collector that is asked at its root answers 404 to each request. */
static err_t verify_tracing(const struct config *c)
{
  const char *endpoint = c->tracing.endpoint;

  if (endpoint && *endpoint && !config_url_has_path(endpoint))
    FAIL(ERR_CONFIG,
         "%s:%d: tracing.endpoint expects a URL such as http://127.0.0.1:4318/v1/traces, not %s: it has no path",
         c->path, line_of(c, "tracing.endpoint"), log_quote(span_of_str(endpoint)));
  return ERR_OK;
}

/* The parts of an aborted transaction come again, and its answers were never sent. */
static err_t verify_isolation(const struct config *c)
{
  for (size_t i = 0; i < c->query.kafka.n; i++) {
    if (strcmp(c->query.kafka.items[i].name, "isolation.level") == 0)
      FAIL(ERR_CONFIG, "%s:%d: query.kafka: isolation.level must not be set: the role merge reads committed parts only",
           c->path, line_of(c, "query.kafka"));
  }
  return ERR_OK;
}

static err_t verify_role(const struct config *c)
{
  if (c->role != CONFIG_ROLE_MERGE)
    return ERR_OK;
  if (c->catalogue.n_shards > 0)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.shard is for daemons that search: the role merge has no catalogue", c->path,
         line_of(c, "catalogue.shard.of"));
  if (c->embedded_broker.is_enabled)
    FAIL(ERR_CONFIG,
         "%s:%d: the role merge has no embedded broker: give the address of the shards' broker in "
         "kafka.bootstrap.servers",
         c->path, line_of(c, "embedded_broker.enabled"));
  return verify_isolation(c);
}

/* Verify that a setting names an attribute of type `time`, or none. */
static err_t verify_time(const struct config *c, const char *setting, const char *name)
{
  if (!name || !*name)
    return ERR_OK;
  size_t i = attributes_find(&c->attributes, span_of_str(name), 0);
  if (i == ATTRIBUTE_NONE)
    FAIL(ERR_CONFIG, "%s:%d: %s: there is no attribute %s: add it to `attributes`, with the type time", c->path,
         line_of(c, setting), setting, log_quote(span_of_str(name)));
  if (c->attributes.v[i].type != ATTRIBUTE_TIME)
    FAIL(ERR_CONFIG, "%s:%d: %s: the attribute %s has the type %s: name one of the type time", c->path,
         line_of(c, setting), setting, name, attribute_type_name(c->attributes.v[i].type));
  return ERR_OK;
}

/* An item that begins when it ends is never there. */
static err_t verify_lifetime(const struct config *c)
{
  const char *begin = c->catalogue.not_before, *end = c->catalogue.expires;

  if (begin && end && *end && strcmp(begin, end) == 0)
    FAIL(ERR_CONFIG, "%s:%d: catalogue.not_before and catalogue.expires are the same attribute, %s: each needs its own",
         c->path, later_line(c, "catalogue.not_before", "catalogue.expires"), end);
  return ERR_OK;
}

/* Without an attribute that says when items expire, none would ever be deleted. */
static err_t verify_sweep(const struct config *c)
{
  if (c->catalogue.delete_expired_after_s > 0 && (!c->catalogue.expires || !*c->catalogue.expires))
    FAIL(ERR_CONFIG,
         "%s:%d: catalogue.delete_expired_after_s is set, but catalogue.expires, which names the attribute that says "
         "when an item expires, is not",
         c->path, line_of(c, "catalogue.delete_expired_after_s"));
  return ERR_OK;
}

err_t config_checks_run(const struct config *c, struct problems *problems)
{
  TRY(problems_note(problems, verify_broker(c)));
  TRY(problems_note(problems, verify_topics(c)));
  TRY(problems_note(problems, verify_groups(c)));
  TRY(problems_note(problems, verify_canary(c)));
  TRY(problems_note(problems, verify_models(c)));
  TRY(problems_note(problems, verify_shard(c)));
  TRY(problems_note(problems, verify_role(c)));
  TRY(problems_note(problems, verify_tracing(c)));
  TRY(config_fields_check(c, problems));
  TRY(problems_note(problems, verify_time(c, "catalogue.not_before", c->catalogue.not_before)));
  TRY(problems_note(problems, verify_time(c, "catalogue.expires", c->catalogue.expires)));
  TRY(problems_note(problems, verify_lifetime(c)));
  return problems_note(problems, verify_sweep(c));
}
