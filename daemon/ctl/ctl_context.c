/* SPDX-License-Identifier: Apache-2.0 */
/* Read the configuration, ask the daemon for its status, and work out how to reach its Kafka cluster. */
#include "daemon/ctl/ctl_context.h"

#include "base/mem.h"

static err_t open_context(const struct ctl_options *options, err_code_t (*open_config)(const char *, struct config **),
                          struct ctl_context **out)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;

  TRY(mem_array(1, sizeof *ctx, &ctx));
  TRY(open_config(options->config_path, &ctx->config));
  TRY(http_get_open(ctx->config->http.listen, &ctx->http));
  *out = ctx;
  ctx = NULL;
  return ERR_OK;
}

err_t ctl_context_open(const struct ctl_options *options, struct ctl_context **out)
{
  return open_context(options, config_open_for_kafka, out);
}

err_t ctl_context_open_for_http(const struct ctl_options *options, struct ctl_context **out)
{
  return open_context(options, config_open_without_secrets, out);
}

err_t ctl_context_open_for_mapping(const struct ctl_options *options, struct ctl_context **out)
{
  return open_context(options, config_open_for_mapping, out);
}

void ctl_context_close(struct ctl_context **ctx)
{
  if (!*ctx)
    return;
  mem_free(&(*ctx)->bootstrap);
  region_fini(&(*ctx)->region);
  http_get_close(&(*ctx)->http);
  config_close(&(*ctx)->config);
  mem_free(ctx);
}

err_t ctl_context_verify_catalogue(const struct config *config)
{
  if (config->role == CONFIG_ROLE_MERGE)
    FAIL(ERR_CONFIG,
         "%s is the configuration of a merge, which has no catalogue: give that of a shard as --config FILE",
         config->path);
  return ERR_OK;
}

static err_t find_bootstrap(struct ctl_context *ctx)
{
  AUTO(ctl_json_close) json_t *status = NULL;

  if (ctx->bootstrap)
    return ERR_OK;
  TRY(http_get_status(ctx->http, &status));
  const char *bootstrap = json_string_value(json_object_get(json_object_get(status, "kafka"), "bootstrap"));
  if (!bootstrap || !*bootstrap)
    FAIL(ERR_SYSTEM,
         "the daemon at %s has no embedded broker, but this configuration enables it: is it the right file?",
         http_get_base(ctx->http));
  return mem_copy_str(bootstrap, &ctx->bootstrap);
}

/* Does the property say where the broker is, or authenticate us there? */
static bool is_connection(const char *name)
{
  static const char *const prefixes[] = { "bootstrap.servers", "metadata.broker.list", "security.", "sasl.", "ssl.",
                                          "broker.address.",   "enable.ssl." };

  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
      return true;
  }
  return false;
}

static size_t append(struct kafka_property *to, size_t n, const struct kafka_property *from, size_t n_from)
{
  if (n_from)
    memcpy(to + n, from, n_from * sizeof *from);
  return n + n_from;
}

err_t ctl_context_layers(struct ctl_context *ctx, const struct kafka_property *defaults, size_t n_defaults,
                         const struct kafka_properties *of, struct kafka_layers *out)
{
  const struct config *config = ctx->config;
  struct kafka_property *items;
  size_t n = 0;

  if (config->embedded_broker.is_enabled)
    TRY(find_bootstrap(ctx));
  /* Put all properties into one layer, lowest priority first. The client's own defaults go below that layer. */
  TRY(region_array(&ctx->region, n_defaults + config->kafka.n + of->n + 2, sizeof *items, &items));
  n = append(items, n, defaults, n_defaults);
  if (ctx->bootstrap) {
    const struct kafka_property embedded[] = {
      { "bootstrap.servers", ctx->bootstrap },
      { "fetch.wait.max.ms", "1" }, /* the embedded broker answers a fetch only after this time */
    };
    n = append(items, n, embedded, 2);
  }
  n = append(items, n, config->kafka.items, config->kafka.n);
  for (size_t i = 0; i < of->n; i++) {
    if (is_connection(of->items[i].name))
      n = append(items, n, &of->items[i], 1);
  }
  *out = (struct kafka_layers){ .layer = { { items, n } }, .n = 1 };
  return ERR_OK;
}
