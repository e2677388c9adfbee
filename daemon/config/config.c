/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the tree of the file by the table of settings. */
#include "daemon/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/config/config_settings.h"
#include "daemon/config/yaml_tree.h"

/* One configuration being read. */
struct reader {
  const char *path;
  char *directory;
  struct yaml_tree *tree;
  struct config *config;
  struct config_space *space; /* while below spaces.NAME */
  bool names_spaces;          /* rightly or wrongly */
  struct problems *problems;
};

/* Where a key leads: as the table has it, and as the file does. They differ below `spaces`. */
struct place {
  char path[SETTING_PATH_BYTES];
  char shown[SETTING_PATH_BYTES];
};

static void place_below(const struct place *section, const char *word, struct span key, struct place *out)
{
  const char *dot = *section->path ? "." : "";

  /* What is cut is longer than any path of the table, and so unknown. */
  if (word)
    snprintf(out->path, sizeof out->path, "%.100s%s%s", section->path, dot, word);
  else
    snprintf(out->path, sizeof out->path, "%.80s%s%.*s", section->path, dot, (int)(key.n < 40 ? key.n : 40),
             (const char *)key.p);
  snprintf(out->shown, sizeof out->shown, "%.80s%s%.*s", section->shown, dot, (int)(key.n < 40 ? key.n : 40),
           (const char *)key.p);
}

/* Put file, line and setting before the newest message. */
static err_t fail_at(struct reader *rd, err_code_t code, const yaml_node_t *node, const char *shown)
{
  FAIL(code, "%s:%d: %s %s", rd->path, yaml_tree_line(node), shown, err_message());
}

/* What is wrong with one setting does not keep the others from being looked at. */
static err_t note(struct reader *rd, err_code_t err)
{
  return err == ERR_CONFIG ? problems_add(rd->problems) : err;
}

static err_t verify_key(struct reader *rd, const yaml_node_t *map, size_t i, const char *shown)
{
  const yaml_node_t *key;
  const yaml_node_t *other;
  const yaml_node_t *value;

  yaml_tree_pair(rd->tree, map, i, &key, &value);
  if (yaml_tree_kind(key) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: a key in %s is not a text", rd->path, yaml_tree_line(key), shown);
  struct span text = yaml_tree_text(key);
  if (text.n == 0 || memchr(text.p, 0, text.n))
    FAIL(ERR_CONFIG, "%s:%d: a key in %s is empty or holds a zero byte", rd->path, yaml_tree_line(key), shown);
  for (size_t j = 0; j < i; j++) {
    yaml_tree_pair(rd->tree, map, j, &other, &value);
    if (yaml_tree_kind(other) == YAML_KIND_TEXT && span_equal(yaml_tree_text(other), text))
      FAIL(ERR_CONFIG, "%s:%d: %s is there twice, first in line %d", rd->path, yaml_tree_line(key), log_quote(text),
           yaml_tree_line(other));
  }
  return ERR_OK;
}

static void free_property(struct kafka_property *property)
{
  mem_free(&property->name);
  mem_free(&property->value);
}

static err_t add_property(struct reader *rd, const struct setting *s, struct kafka_property *slot, size_t *n,
                          const yaml_node_t *key, const yaml_node_t *value)
{
  char *name;
  char *text;
  struct span name_span = yaml_tree_text(key);

  if (yaml_tree_kind(value) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: the property %s.%s needs a value, and one only: %s", rd->path, yaml_tree_line(value),
         s->path, log_quote(name_span), "properties are written with dots, as in `bootstrap.servers: host:9092`");
  struct span value_span = yaml_tree_text(value);
  if (value_span.n && memchr(value_span.p, 0, value_span.n))
    FAIL(ERR_CONFIG, "%s:%d: the value of %s.%s holds a zero byte", rd->path, yaml_tree_line(value), s->path,
         log_quote(name_span));
  TRY(mem_copy(name_span, &name));
  slot->name = name;
  *n += 1; /* config_close() frees it from here on */
  TRY(mem_copy(value_span, &text));
  slot->value = text;
  err_code_t result = setting_verify_property(s, slot);
  if (result == ERR_OK)
    return ERR_OK;
  *n -= 1;
  free_property(slot);
  FAIL(result, "%s:%d: %s: %s", rd->path, yaml_tree_line(key), s->path, err_message());
}

static err_t read_properties(struct reader *rd, const struct setting *s, const yaml_node_t *map)
{
  struct kafka_properties *properties = (void *)((char *)rd->config + s->offset);
  size_t n_pairs = yaml_tree_n_pairs(map);
  struct kafka_property *items;
  const yaml_node_t *key;
  const yaml_node_t *value;

  TRY(mem_array(n_pairs, sizeof *items, &items));
  properties->items = items;
  for (size_t i = 0; i < n_pairs; i++) {
    err_code_t err = verify_key(rd, map, i, s->path);
    yaml_tree_pair(rd->tree, map, i, &key, &value);
    if (err == ERR_OK)
      err = add_property(rd, s, &items[properties->n], &properties->n, key, value);
    TRY(note(rd, err));
  }
  return ERR_OK;
}

static err_t set_text_of(struct reader *rd, const struct setting *s, const struct place *place, const yaml_node_t *node)
{
  void *base = setting_is_in_space(s) ? (void *)rd->space : (void *)rd->config;
  err_code_t result = setting_set(s, rd->config, base, rd->directory, yaml_tree_text(node));

  return result == ERR_OK ? ERR_OK : fail_at(rd, result, node, place->shown);
}

static err_t read_list(struct reader *rd, const struct setting *s, const struct place *place, const yaml_node_t *list)
{
  for (size_t i = 0; i < yaml_tree_n_items(list); i++) {
    const yaml_node_t *item = yaml_tree_item(rd->tree, list, i);
    if (yaml_tree_kind(item) != YAML_KIND_TEXT)
      FAIL(ERR_CONFIG, "%s:%d: %s expects a list of texts", rd->path, yaml_tree_line(item), place->shown);
    TRY(note(rd, set_text_of(rd, s, place, item)));
  }
  return ERR_OK;
}

/* A map or a list; without anything in it, it is empty. */
static err_t read_collection(struct reader *rd, const struct setting *s, const struct place *place,
                             const yaml_node_t *node)
{
  enum yaml_kind kind = yaml_tree_kind(node);
  bool is_map = s->type == SETTING_PROPERTIES;

  if (kind == YAML_KIND_NOTHING)
    return ERR_OK;
  if (is_map && kind == YAML_KIND_MAP)
    return read_properties(rd, s, node);
  if (is_map)
    FAIL(ERR_CONFIG, "%s:%d: %s expects a map of properties", rd->path, yaml_tree_line(node), place->shown);
  if (kind == YAML_KIND_LIST)
    return read_list(rd, s, place, node);
  if (s->type == SETTING_PATTERNS && kind == YAML_KIND_TEXT)
    return set_text_of(rd, s, place, node);
  FAIL(ERR_CONFIG, "%s:%d: %s expects a list, as in [one, two]", rd->path, yaml_tree_line(node), place->shown);
}

static err_t read_setting(struct reader *rd, size_t index, const struct place *place, const yaml_node_t *node)
{
  const struct setting *s = &settings[index];
  struct config *c = rd->config;
  enum yaml_kind kind = yaml_tree_kind(node);

  c->lines[index] = yaml_tree_line(node);
  if (setting_is_collection(s))
    return read_collection(rd, s, place, node);
  if (kind == YAML_KIND_NOTHING)
    FAIL(ERR_CONFIG, "%s:%d: %s has no value%s", rd->path, yaml_tree_line(node), place->shown,
         s->default_text ? ": leave the line out for the default" : "");
  if (kind != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: %s expects one value, not a %s", rd->path, yaml_tree_line(node), place->shown,
         kind == YAML_KIND_MAP ? "map" : "list");
  if (!setting_is_in_space(s))
    TRY(mem_copy(yaml_tree_text(node), &c->given[index]));
  return set_text_of(rd, s, place, node);
}

static err_t read_section(struct reader *rd, const struct place *section, const yaml_node_t *node);

static err_t verify_section(struct reader *rd, const struct place *place, const yaml_node_t *node)
{
  if (yaml_tree_kind(node) != YAML_KIND_MAP)
    FAIL(ERR_CONFIG, "%s:%d: %s is a section: it expects settings, one a line", rd->path, yaml_tree_line(node),
         place->shown);
  return ERR_OK;
}

static err_t fail_unknown(struct reader *rd, const struct place *place, int line)
{
  char nearest[SETTING_PATH_BYTES];

  settings_nearest(place->path, nearest);
  FAIL(ERR_CONFIG, "%s:%d: there is no setting %s; the nearest is %s", rd->path, line,
       log_quote(span_of_str(place->shown)), nearest);
}

static err_t read_key(struct reader *rd, const struct place *section, const yaml_node_t *key, const yaml_node_t *value)
{
  struct place place;
  struct span text = yaml_tree_text(key);

  place_below(section, NULL, text, &place);
  size_t index = settings_find(place.path);
  if (index < n_settings)
    return read_setting(rd, index, &place, value);
  if (!settings_has_section(place.path))
    return fail_unknown(rd, &place, yaml_tree_line(key));
  if (yaml_tree_kind(value) == YAML_KIND_NOTHING)
    return ERR_OK;
  TRY(verify_section(rd, &place, value));
  return read_section(rd, &place, value);
}

/* What the file says comes over it. */
static err_t set_space_defaults(struct reader *rd)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (setting_is_in_space(&settings[i]) && settings[i].default_text)
      TRY(setting_set(&settings[i], rd->config, rd->space, rd->directory, span_of_str(settings[i].default_text)));
  }
  return ERR_OK;
}

static err_t read_space(struct reader *rd, const struct place *section, const yaml_node_t *key,
                        const yaml_node_t *value)
{
  struct config *c = rd->config;
  struct place place;
  struct span name = yaml_tree_text(key);

  err_code_t result = setting_verify_space(name);
  if (result != ERR_OK)
    return fail_at(rd, result, key, section->shown);
  place_below(section, "NAME", name, &place);
  c->lines[settings_find("spaces.NAME.model")] = 0;
  rd->space = &c->spaces[c->n_spaces];
  rd->space->line = yaml_tree_line(key);
  TRY(mem_copy(name, &rd->space->name));
  c->n_spaces++;
  TRY(set_space_defaults(rd));
  if (yaml_tree_kind(value) != YAML_KIND_NOTHING) {
    TRY(verify_section(rd, &place, value));
    TRY(read_section(rd, &place, value));
  }
  if (c->lines[settings_find("spaces.NAME.model")] == 0)
    FAIL(ERR_CONFIG, "%s:%d: %s.model is missing: every space has a model", rd->path, yaml_tree_line(key), place.shown);
  return ERR_OK;
}

static err_t make_spaces(struct reader *rd, const yaml_node_t *node)
{
  size_t n = yaml_tree_n_pairs(node);

  rd->names_spaces = n > 0;
  if (n > SPACES_MAX)
    FAIL(ERR_CONFIG, "%s:%d: %zu spaces are more than %d", rd->path, yaml_tree_line(node), n, SPACES_MAX);
  return mem_array(n, sizeof *rd->config->spaces, &rd->config->spaces);
}

static err_t read_section(struct reader *rd, const struct place *section, const yaml_node_t *node)
{
  bool is_spaces = strcmp(section->path, "spaces") == 0;
  const char *shown = *section->shown ? section->shown : "the file";
  const yaml_node_t *key;
  const yaml_node_t *value;

  if (is_spaces)
    TRY(make_spaces(rd, node));
  for (size_t i = 0; i < yaml_tree_n_pairs(node); i++) {
    err_code_t err = verify_key(rd, node, i, shown);
    yaml_tree_pair(rd->tree, node, i, &key, &value);
    if (err == ERR_OK)
      err = is_spaces ? read_space(rd, section, key, value) : read_key(rd, section, key, value);
    TRY(note(rd, err));
  }
  return ERR_OK;
}

static err_t set_defaults(struct reader *rd)
{
  for (size_t i = 0; i < n_settings; i++) {
    const struct setting *s = &settings[i];
    bool begins_as_zeros = setting_is_collection(s) || setting_is_in_space(s);
    if (s->default_text && !begins_as_zeros)
      TRY(setting_set(s, rd->config, rd->config, rd->directory, span_of_str(s->default_text)));
  }
  return ERR_OK;
}

static err_t verify_is_given(struct reader *rd, size_t index)
{
  const struct setting *s = &settings[index];

  if (!s->default_text && !setting_is_in_space(s) && rd->config->lines[index] == 0)
    FAIL(ERR_CONFIG, "%s: %s is missing. %s", rd->path, s->path, s->meaning);
  return ERR_OK;
}

static err_t verify_has_space(struct reader *rd)
{
  if (!rd->names_spaces)
    FAIL(ERR_CONFIG, "%s: there is no space: name at least one below spaces, with its model", rd->path);
  return ERR_OK;
}

static int line_of(const struct reader *rd, const char *path)
{
  int line = rd->config->lines[settings_find(path)];

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

static err_t verify_broker(struct reader *rd)
{
  const struct config *c = rd->config;
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
    FAIL(ERR_CONFIG, "%s:%d: kafka has no bootstrap.servers: give the address of a broker, or turn on %s", rd->path,
         line_of(rd, "kafka"), "embedded_broker.enabled for a first look");
  for (size_t i = 0; c->embedded_broker.is_enabled && i < sizeof maps / sizeof maps[0]; i++) {
    if (has_bootstrap(maps[i].properties))
      FAIL(ERR_CONFIG, "%s:%d: %s has bootstrap.servers although embedded_broker.enabled is true: choose one", rd->path,
           line_of(rd, maps[i].path), maps[i].path);
  }
  return ERR_OK;
}

/* Two roles on one topic would feed on each other. */
static err_t verify_topics(struct reader *rd)
{
  const struct config *c = rd->config;
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
      bool is_later = line_of(rd, roles[j].path) >= line_of(rd, roles[i].path);
      FAIL(ERR_CONFIG, "%s:%d: %s and %s are the same topic, %s: each needs its own", rd->path,
           line_of(rd, roles[is_later ? j : i].path), roles[i].path, roles[j].path, roles[i].topic);
    }
  }
  return ERR_OK;
}

static err_t read_tree(struct reader *rd)
{
  const struct place top = { "", "" };
  const yaml_node_t *root = yaml_tree_root(rd->tree);

  TRY(set_defaults(rd));
  if (yaml_tree_kind(root) != YAML_KIND_NOTHING) {
    if (yaml_tree_kind(root) != YAML_KIND_MAP)
      FAIL(ERR_CONFIG, "%s:%d: a configuration is a map of sections", rd->path, yaml_tree_line(root));
    TRY(read_section(rd, &top, root));
  }
  for (size_t i = 0; i < n_settings; i++)
    TRY(note(rd, verify_is_given(rd, i)));
  TRY(note(rd, verify_has_space(rd)));
  TRY(note(rd, verify_broker(rd)));
  return note(rd, verify_topics(rd));
}

static err_t copy_directory(const char *path, char **out)
{
  const char *slash = strrchr(path, '/');

  return mem_copy(span_of(path, slash ? (size_t)(slash - path) + 1 : 0), out);
}

err_t config_read(const char *path, struct problems *problems, struct config **out)
{
  AUTO(mem_free) char *directory = NULL;
  AUTO(yaml_tree_close) struct yaml_tree *tree = NULL;
  AUTO(config_close) struct config *config = NULL;

  TRY(copy_directory(path, &directory));
  TRY(yaml_tree_open(path, &tree));
  TRY(mem_array(1, sizeof *config, &config));
  TRY(mem_copy_str(path, &config->path));
  TRY(mem_array(n_settings, sizeof *config->given, &config->given));
  TRY(mem_array(n_settings, sizeof *config->lines, &config->lines));
  struct reader rd = { .path = path, .directory = directory, .tree = tree, .config = config, .problems = problems };
  TRY(read_tree(&rd));
  *out = config;
  config = NULL;
  return ERR_OK;
}

err_t config_open(const char *path, struct config **out)
{
  AUTO(problems_fini) struct problems problems = { 0 };
  AUTO(config_close) struct config *config = NULL;

  TRY(config_read(path, &problems, &config));
  TRY(problems_verify(&problems));
  *out = config;
  config = NULL;
  return ERR_OK;
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

static void free_properties(struct kafka_properties *properties)
{
  struct kafka_property *items = (struct kafka_property *)properties->items; /* ours to free */

  for (size_t i = 0; i < properties->n; i++)
    free_property(&items[i]);
  mem_free(&items);
}

static void free_list(struct config_list *list)
{
  for (size_t i = 0; i < list->n; i++)
    mem_free(&list->items[i]);
  mem_free(&list->items);
}

void config_close(struct config **config)
{
  struct config *c = *config;

  if (!c)
    return;
  free_properties(&c->kafka);
  free_properties(&c->catalogue.kafka);
  free_properties(&c->query.kafka);
  free_properties(&c->query.answer_kafka);
  for (size_t i = 0; i < c->n_spaces; i++) {
    mem_free(&c->spaces[i].name);
    mem_free(&c->spaces[i].model_path);
  }
  mem_free(&c->spaces);
  free_list(&c->query.reply_topics);
  free_list(&c->http.hosts);
  for (size_t i = 0; c->given && i < n_settings; i++)
    mem_free(&c->given[i]);
  mem_free(&c->given);
  mem_free(&c->lines);
  char **texts[] = { &c->path,        &c->catalogue.topic, &c->catalogue.dead_letter_topic,
                     &c->query.topic, &c->query.group,     &c->query.answer_topic,
                     &c->store_path,  &c->http.listen };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    mem_free(texts[i]);
  mem_free(config);
}
