/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close a configuration: its file is parsed (yaml_tree.c), read by the table of settings (config_reader.c) and
 * checked as a whole (config_checks.c). */
#include "daemon/config/config.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/space_name.h"
#include "daemon/config/config_checks.h"
#include "daemon/config/config_reader.h"
#include "daemon/config/config_settings.h"
#include "daemon/config/yaml_tree.h"

/* How a file is read. */
struct reading {
  bool may_wait; /* as in yaml_tree_open() */
  bool may_lack_mapping;
  enum config_secrets secrets;
};

static err_t read_config(const char *path, struct reading how, struct problems *problems, struct config **out)
{
  AUTO(yaml_tree_close) struct yaml_tree *tree = NULL;
  AUTO(config_close) struct config *config = NULL;

  TRY(yaml_tree_open(path, how.may_wait, &tree));
  TRY(mem_array(1, sizeof *config, &config));
  TRY(mem_copy_str(path, &config->path));
  config->may_lack_mapping = how.may_lack_mapping;
  TRY(mem_array(n_settings, sizeof *config->lines, &config->lines));
  TRY(config_reader_read(tree, how.secrets, config, problems));
  TRY(config_checks_run(config, problems));
  *out = config;
  config = NULL;
  return ERR_OK;
}

err_t config_read(const char *path, struct problems *problems, struct config **out)
{
  return read_config(path, (struct reading){ .may_wait = true, .secrets = CONFIG_SECRETS_ALL }, problems, out);
}

err_t config_read_again(const char *path, struct problems *problems, struct config **out)
{
  return read_config(path, (struct reading){ .secrets = CONFIG_SECRETS_ALL }, problems, out);
}

static err_t open_config(const char *path, struct reading how, struct config **out)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  AUTO(config_close) struct config *config = NULL;

  TRY(read_config(path, how, &problems, &config));
  TRY(problems_verify(&problems));
  *out = config;
  config = NULL;
  return ERR_OK;
}

err_t config_open(const char *path, struct config **out)
{
  return open_config(path, (struct reading){ .may_wait = true, .secrets = CONFIG_SECRETS_ALL }, out);
}

err_t config_open_for_kafka(const char *path, struct config **out)
{
  return open_config(path, (struct reading){ .may_wait = true, .secrets = CONFIG_SECRETS_KAFKA }, out);
}

err_t config_open_without_secrets(const char *path, struct config **out)
{
  return open_config(path, (struct reading){ .may_wait = true, .secrets = CONFIG_SECRETS_NONE }, out);
}

err_t config_open_for_mapping(const char *path, struct config **out)
{
  const struct reading how = { .may_wait = true, .secrets = CONFIG_SECRETS_ALL, .may_lack_mapping = true };

  return open_config(path, how, out);
}

err_t config_blame(const struct config *c, const char *setting, err_code_t err)
{
  size_t index = settings_find(setting);

  if (index < n_settings && c->lines[index])
    FAIL(err, "%s:%d: %s", c->path, c->lines[index], err_message());
  FAIL(err, "%s: %s", c->path, err_message());
}

err_t config_blame_space(const struct config *c, size_t space, err_code_t err)
{
  FAIL(err, "%s:%d: spaces.%s: %s", c->path, c->spaces[space].line, c->spaces[space].name, err_message());
}

static void free_space(struct config_space *space)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (setting_is_in_space(&settings[i]))
      setting_free(&settings[i], space);
  }
  mem_free(&space->name);
}

static void free_settings(struct config *c)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (!setting_is_in_space(&settings[i]))
      setting_free(&settings[i], c);
  }
}

size_t config_find_space(const struct config *c, struct span name)
{
  struct space_name of;
  size_t i = 0;

  if (!space_name_parse(name, &of))
    return 0;
  while (i < c->n_spaces && !span_equal(span_of_str(c->spaces[i].name), of.space))
    i++;
  return i < c->n_spaces ? i : 0;
}

void config_close(struct config **config)
{
  struct config *c = *config;

  if (!c)
    return;
  for (size_t i = 0; i < c->n_spaces; i++)
    free_space(&c->spaces[i]);
  mem_free(&c->spaces);
  free_settings(c);
  mem_free(&c->lines);
  mem_free(&c->path);
  mem_free(config);
}
