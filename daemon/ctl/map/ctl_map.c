/* SPDX-License-Identifier: Apache-2.0 */
/* sluicectl map: read some records of somebody else's catalogue topic, and suggest a mapping. */
#include <getopt.h>

#include "base/log.h"
#include "daemon/config/config_schemas.h"
#include "daemon/ctl/ctl_scan.h"
#include "daemon/ctl/map/ctl_mapping.h"
#include "daemon/ctl/text/ctl_option.h"
#include "engine/model/safetensors.h"
#include "engine/similarity/similarity.h"
#include "ingest/wire/mapped_document.h"

enum { NEWEST_DEFAULT = 200, NEWEST_MAX = 100000 };

struct sampling {
  struct mapping mapping; /* of which only the schemas are set */
  bool is_framed;
  struct mapping_census census;
  struct region scratch;
};

static void fini(struct sampling *s)
{
  mapping_fini(&s->mapping);
  mapping_census_fini(&s->census);
  region_fini(&s->scratch);
}

/* ---- The topic ---- */

static err_t init(const struct config *config, struct sampling *s)
{
  const struct avro_sources schemas = config_schemas(config);

  s->is_framed = config->catalogue.is_framed;
  if (config->catalogue.format == CONFIG_FORMAT_AVRO)
    return avro_schemas_open(&schemas, &s->mapping.schemas);
  if (config->catalogue.format != CONFIG_FORMAT_PROTOBUF)
    return ERR_OK;
  err_code_t err = protobuf_source_open(config->catalogue.schemas, config->catalogue.message, &s->mapping.messages);
  return err == ERR_CONFIG ? config_blame(config, "catalogue.schemas", err) : err;
}

static err_code_t count(void *context, const struct topic_scan_record *from)
{
  struct sampling *s = context;
  struct region_mark mark = region_mark(&s->scratch);
  const struct topic_record record = {
    .has_key = from->has_key, .key = from->key, .has_value = from->has_value, .value = from->value
  };
  uint32_t id;

  if (record.has_value)
    TRY(mapped_document_find_schema(&s->mapping, record.value, true, &id));
  TRY(mapping_census_add(&s->census, &s->mapping, s->is_framed, &record, &s->scratch));
  region_rewind(&s->scratch, mark);
  return ERR_OK;
}

/* ---- The spaces ---- */

/* A model that takes long to load stays NULL. */
static err_t open_model(const struct similarity *similarity, const struct safetensors *file, struct model **out)
{
  return similarity->model_check ? similarity->model_check(file, out) : similarity->model_open(file, out);
}

static err_t read_space(const struct config_space *space, struct ctl_mapping_space *out)
{
  AUTO(safetensors_close) struct safetensors *file = NULL;
  const struct similarity *similarity;
  struct model *model = NULL;

  *out = (struct ctl_mapping_space){ .name = space->name };
  TRY(safetensors_open(space->model_path, &file));
  TRY(similarity_of(file, &similarity));
  TRY(open_model(similarity, file, &model));
  if (!model)
    return ERR_OK;
  out->is_known = true;
  out->lengths = similarity->lengths(model);
  similarity->model_close(&model);
  return ERR_OK;
}

static err_t read_spaces(const struct config *config, struct region *r, struct ctl_mapping_space **out)
{
  TRY(region_array(r, config->n_spaces, sizeof **out, out));
  for (size_t i = 0; i < config->n_spaces; i++) {
    err_code_t err = read_space(&config->spaces[i], &(*out)[i]);
    if (err != ERR_OK)
      return config_blame_space(config, i, err);
  }
  return ERR_OK;
}

/* ---- The command ---- */

static err_t print(const struct config *config, struct sampling *s)
{
  const struct mapping_census *c = &s->census;
  struct ctl_mapping_space *spaces;

  TRY(read_spaces(config, &s->scratch, &spaces));
  if (c->n_rows == 0 && c->n_unread > 0)
    FAIL(ERR_WIRE, "none of %zu records of topic %s can be read: %s", c->n_records, config->catalogue.topic,
         c->first_unread.message);
  if (c->n_rows == 0)
    FAIL(ERR_SYSTEM, "topic %s has no records with values yet: there is nothing to suggest a mapping from",
         config->catalogue.topic);
  printf("# Suggested from topic %s. Look at each line before you use it.\n"
         "# Records: %zu. Rows: %zu, deletes: %zu, not readable: %zu.\n",
         config->catalogue.topic, c->n_records, c->n_rows, c->n_deletes, c->n_unread);
  if (c->n_unread)
    printf("# The first that is not readable: %s\n", log_quote(span_of_str(c->first_unread.message)));
  return ctl_mapping_write(c, spaces, config->n_spaces, stdout);
}

static err_t verify(const struct config *config)
{
  TRY(ctl_context_verify_catalogue(config));
  if (config->catalogue.format == CONFIG_FORMAT_SLUICE)
    FAIL(ERR_USAGE, "%s: catalogue.format is sluice, whose items need no mapping; set it to the format of the topic",
         config->path);
  return ERR_OK;
}

static err_t run_map(const struct ctl_options *options, int argc, char **argv)
{
  AUTO(ctl_context_close) struct ctl_context *ctx = NULL;
  AUTO(fini) struct sampling s = { 0 };
  uint64_t newest = NEWEST_DEFAULT;
  const struct ctl_option known[] = {
    { "newest", .number = &newest, .min = 1, .max = NEWEST_MAX },
    { 0 },
  };

  TRY(ctl_option_take(known, NULL, argc, argv));
  if (argc > optind)
    FAIL(ERR_USAGE, "%s: map expects options only", argv[optind]);
  TRY(ctl_context_open_for_mapping(options, &ctx));
  TRY(verify(ctx->config));
  TRY(init(ctx->config, &s));
  const struct topic_scan_range range = { .newest = (int64_t)newest };
  TRY(ctl_scan_visit_all(ctx, ctx->config->catalogue.topic, &range, count, &s));
  return print(ctx->config, &s);
}

const struct ctl_command ctl_map_command = {
  .name = "map",
  .arguments = "[--newest N]",
  .summary = "suggest a mapping for a catalogue topic in JSON, Avro or Protobuf of your own",
  .help = "  --newest N   look at the newest N records of each partition (default: 200)\n"
          "\n"
          "The configuration must say where the topic is and how to read it: catalogue.topic, format and framing;\n"
          "for Avro, also schemas or registry; for Protobuf, schemas and message. It may lack catalogue.mapping.\n"
          "The output is YAML: attributes and catalogue.mapping. Comments say what was seen of each field.\n",
  .run = run_map,
};
