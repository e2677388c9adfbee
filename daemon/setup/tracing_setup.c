/* SPDX-License-Identifier: Apache-2.0 */
/* Which records are traced, and the name of this daemon among others. */
#include "daemon/setup/tracing_setup.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/config/config_shard.h"

static void name_instance(const struct config *config, char out[QUERY_SPANS_NAME_BYTES])
{
  char host[256] = "";

  gethostname(host, sizeof host - 1);
  snprintf(out, QUERY_SPANS_NAME_BYTES, "%s/%s", host, config->http.listen);
}

/* A merge reads the parts that shards have sent. */
static void name_source(const struct config *config, struct query_spans_source *out)
{
  bool is_merge = config->role == CONFIG_ROLE_MERGE;

  out->topic = is_merge ? config->query.partials_topic : config->query.topic;
  if (is_merge)
    snprintf(out->group, sizeof out->group, "%s.merge", config->query.group);
  else
    config_shard_group(config, out->group);
  name_instance(config, out->instance);
}

err_t tracing_setup_open(const struct config *config, struct counters *counters, struct alarm *alarm,
                         struct tracing **out)
{
  struct tracing_config tracing = { .endpoint = config->tracing.endpoint, .counters = counters, .alarm = alarm };

  if (!*config->tracing.endpoint)
    return ERR_OK;
  name_source(config, &tracing.source);
  return tracing_open(&tracing, out);
}
