/* SPDX-License-Identifier: Apache-2.0 */
/* Check a configuration and what it names, and collect all problems. */
#include "daemon/setup/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "daemon/config/config_kafka.h"
#include "daemon/config/config_message.h"
#include "daemon/config/config_schemas.h"
#include "daemon/config/config_settings.h"
#include "daemon/setup/engine_setup.h"

struct check {
  const struct config *config;
  struct problems *problems;
};

static err_t note(struct check *c, err_code_t err)
{
  return err == ERR_OK ? ERR_OK : problems_add(c->problems);
}

static err_code_t note_engine(void *context, err_code_t err, enum engine_fault fault, size_t space)
{
  struct check *c = context;

  if (err == ERR_MEMORY)
    return err;
  if (fault == ENGINE_FAULT_LIFETIMES) /* config_read() has reported it, with the line of the setting */
    return ERR_OK;
  return note(c, engine_setup_blame(c->config, err, fault, space));
}

static err_t check_engine(struct check *c)
{
  AUTO(mem_free) struct engine_space *spaces = NULL;
  struct engine_config engine_config;

  TRY(mem_array(c->config->n_spaces, sizeof *spaces, &spaces));
  engine_setup_make(c->config, spaces, &engine_config);
  return engine_check(&engine_config, note_engine, c);
}

static err_t check_schemas(struct check *c)
{
  AUTO(avro_schemas_close) struct avro_schemas *schemas = NULL;
  const struct config *config = c->config;
  const struct avro_sources from = config_schemas(config);

  if (config->catalogue.format != CONFIG_FORMAT_AVRO)
    return ERR_OK;
  err_code_t err = avro_schemas_open(&from, &schemas);
  return err == ERR_CONFIG ? note(c, err) : err;
}

static err_t check_message(struct check *c)
{
  AUTO(protobuf_source_close) struct protobuf_source *source = NULL;
  const struct config *config = c->config;

  /* what is missing is reported already */
  if (config->catalogue.format != CONFIG_FORMAT_PROTOBUF || !*config->catalogue.schemas || !*config->catalogue.message)
    return ERR_OK;
  err_code_t err = config_message_open(config, &source);
  return err == ERR_CONFIG ? note(c, err) : err;
}

/* The store creates its directory, but not the parent of it. */
static err_t verify_store_path(const char *path)
{
  char parent[4096];
  struct stat status;

  if (stat(path, &status) == 0) {
    if (!S_ISDIR(status.st_mode))
      FAIL(ERR_CONFIG, "store.path %s is a file, but must be a directory", path);
    return ERR_OK;
  }
  snprintf(parent, sizeof parent, "%s", path);
  for (size_t n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
    parent[n - 1] = '\0';
  char *slash = strrchr(parent, '/');
  if (errno != ENOENT || !slash || slash == parent)
    return ERR_OK; /* not checked: the answer may differ for the daemon's own user */
  *slash = '\0';
  if (stat(parent, &status) != 0 && errno == ENOENT)
    FAIL(ERR_CONFIG, "store.path %s cannot be created: there is no directory %s", path, parent);
  return ERR_OK;
}

static err_t check_store(struct check *c)
{
  if (!c->config->store_path)
    return ERR_OK; /* missing: that problem is reported already */
  err_code_t err = verify_store_path(c->config->store_path);
  return err == ERR_OK ? ERR_OK : note(c, config_blame(c->config, "store.path", err));
}

/* Those that are wrong by themselves were reported and dropped when the file was read. */
err_t check_clients(const struct config *config, struct problems *problems)
{
  struct check c = { config, problems };

  for (size_t i = CONFIG_KAFKA_CLIENTS; i < CONFIG_KAFKA_SECTIONS; i++) {
    const struct config_kafka_section *section = &config_kafka_sections[i];
    const struct kafka_properties *own = config_kafka_properties(config, i);
    struct kafka_layers layers = { .layer = { config->kafka, *own }, .n = 2 };
    err_code_t err = kafka_client_check(section->is_consumer, &layers);
    if (err != ERR_OK)
      TRY(note(&c, config_blame(config, own->n ? section->path : "kafka", err)));
  }
  return ERR_OK;
}

/* A merge sends no reply to the topics that it knows by name, also to those of shards. */
static bool is_topic(const char *path)
{
  for (size_t i = 0; i < CONFIG_KAFKA_TOPICS; i++) {
    if (strcmp(path, config_kafka_topics[i].path) == 0)
      return true;
  }
  return false;
}

/* Return the line of the first setting of a section in the file, but for names of topics; 0: it has none. */
static int first_line(const struct config *c, const char *section)
{
  size_t n = strlen(section);
  int line = 0;

  for (size_t i = 0; i < n_settings; i++) {
    const char *path = settings[i].path;
    bool is_below = strncmp(path, section, n) == 0 && (path[n] == '.' || path[n] == '\0') && !is_topic(path);
    if (is_below && c->lines[i] && (!line || c->lines[i] < line))
      line = c->lines[i];
  }
  return line;
}

/* Say which sections of a merge's configuration do nothing: they may have been meant for a shard. */
static void print_unused(const struct config *c)
{
  static const char *const unused[] = { "catalogue",  "seen",   "models", "store",  "spaces",
                                        "attributes", "engine", "canary", "kernels" };

  for (size_t i = 0; i < sizeof unused / sizeof unused[0]; i++) {
    int line = first_line(c, unused[i]);
    if (line)
      fprintf(stderr, "sluiced: %s:%d: note: %s has no effect with role: merge\n", c->path, line, unused[i]);
  }
}

err_t check_file(const char *path, struct problems *problems)
{
  AUTO(config_close) struct config *config = NULL;
  err_code_t err = config_read(path, problems, &config);

  if (err == ERR_CONFIG)
    return problems_add(problems);
  TRY(err);
  struct check c = { config, problems };
  if (config->role == CONFIG_ROLE_MERGE) { /* it has neither store nor engine */
    print_unused(config);
    return check_clients(config, problems);
  }
  TRY(check_schemas(&c));
  TRY(check_message(&c));
  TRY(check_store(&c));
  TRY(check_clients(config, problems));
  return check_engine(&c);
}
