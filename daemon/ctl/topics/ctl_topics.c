/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl topics: create the topics that the configuration names. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/config_shard.h"
#include "daemon/ctl/ctl_context.h"
#include "daemon/ctl/text/ctl_format.h"
#include "daemon/ctl/text/ctl_option.h"
#include "ingest/kafka/topics.h"

enum { PARTITIONS_DEFAULT = 4, PARTITIONS_MAX = 10000 };

struct role {
  const char *name;
  const char *topic;
  const struct kafka_properties *kafka; /* of the daemon's client for this topic */
  struct kafka_properties settings;
};

static err_t create(struct ctl_context *ctx, const struct role *role, int n_wanted)
{
  struct kafka_layers layers;
  bool is_created;
  int n = 0;

  TRY(ctl_context_layers(ctx, NULL, 0, role->kafka, &layers));
  TRY(topics_create(&layers, role->topic, n_wanted, &role->settings, CTL_KAFKA_TIMEOUT_MS, &is_created));
  TRY(topics_count_partitions(&layers, role->topic, CTL_KAFKA_TIMEOUT_MS, &n));
  printf("%-12s %s: %s, %d %s\n", role->name, role->topic, is_created ? "created" : "exists already", n,
         ctl_format_plural((uint64_t)n, "partition", "partitions"));
  return ERR_OK;
}

static err_t create_all(struct ctl_context *ctx, int n_partitions)
{
  /* Compaction keeps the newest record of each item for ever, so a lost store can be filled again from the topic. */
  static const struct kafka_property compacted[] = { { "cleanup.policy", "compact" } };
  const struct config *c = ctx->config;
  /* What users have seen comes from this topic alone, if a store is lost. */
  char seen_ms[sizeof "-9223372036854775808"];
  const struct kafka_property seen_kept[] = { { "retention.ms", seen_ms } };
  const struct role roles[] = {
    { "catalogue", c->catalogue.topic, &c->catalogue.kafka, { compacted, 1 } },
    { "queries", c->query.topic, &c->query.kafka, { NULL, 0 } },
    { "answers", c->query.answer_topic, &c->query.answer_kafka, { NULL, 0 } },
    { "dead letters", c->catalogue.dead_letter_topic, &c->catalogue.kafka, { NULL, 0 } },
    { "seen", c->seen.topic, &c->seen.kafka, { seen_kept, 1 } },
    { "comparisons", c->models.shadow_topic, &c->query.answer_kafka, { NULL, 0 } },
    { "model files", c->models.files_topic, &c->catalogue.kafka, { compacted, 1 } },
    { "partials", config_is_shard(c) ? c->query.partials_topic : "", &c->query.answer_kafka, { NULL, 0 } },
  };

  snprintf(seen_ms, sizeof seen_ms, "%" PRId64, c->seen.ttl_s > 0 ? (int64_t)c->seen.ttl_s * 1000 : -1);
  for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
    if (*roles[i].topic)
      TRY(create(ctx, &roles[i], n_partitions));
  }
  /* One partition: its records have an order. */
  const struct role models = { "models", c->models.topic, &c->catalogue.kafka, { compacted, 1 } };
  return *models.topic ? create(ctx, &models, 1) : ERR_OK;
}

static err_t run_topics(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  uint64_t n_partitions = PARTITIONS_DEFAULT;
  const struct ctl_option known[] = {
    { "partitions", .number = &n_partitions, .min = 1, .max = PARTITIONS_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (argc - optind != 1 || strcmp(argv[optind], "create") != 0)
    FAIL(ERR_USAGE, "topics expects one word: create");
  TRY(ctl_context_open(options, &ctx));
  TRY(ctl_context_verify_catalogue(ctx->config));
  return create_all(ctx, (int)n_partitions);
}

const struct ctl_command ctl_topics_command = {
  .name = "topics",
  .arguments = "create [--partitions N]",
  .summary =
      "create the topics for items, queries, answers and dead letters, the seen topic, and those of models and shards",
  .help = "  --partitions N   partitions of each topic (default: 4). Choose with care: if partitions are added later,\n"
          "                   keys move to other partitions\n"
          "\n"
          "The names come from the configuration. Existing topics stay unchanged. The catalogue's topic is created\n"
          "with compaction, and that of seen items with a retention of seen.ttl_s. The replication factor is the\n"
          "broker's default.\n",
  .run = run_topics,
};
