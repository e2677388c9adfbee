/* SPDX-License-Identifier: Apache-2.0 */
/* Read the settings of a YAML tree into a configuration. The table of settings says what each key takes. Reading goes
 * on after a mistake, so that one run shows all of them. */
#include "daemon/config/config_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/secrets.h"
#include "daemon/config/config_attributes.h"
#include "daemon/config/config_fields.h"
#include "daemon/config/config_secret.h"
#include "daemon/config/config_settings.h"

/* The state of reading one file. */
struct reader {
  const char *path;
  char *directory;
  struct yaml_tree *tree;
  struct config *config;
  struct config_space *space; /* the one being read, while below spaces.NAME */
  bool names_spaces;          /* the file names a space, even if with a mistake */
  struct problems *problems;
  enum config_secrets secrets; /* that are read */
};

/* Where a key is, in dotted form. The two paths differ below `spaces` only. */
struct place {
  char path[SETTING_PATH_BYTES];  /* as in the table: "spaces.NAME.model" */
  char shown[SETTING_PATH_BYTES]; /* as in the file: "spaces.books.model" */
};

/* Append a key to the path of its section.
 *
 * word  the table's word for the key: "NAME" for a space's name; NULL if it is the key itself
 */

static void place_below(const struct place *section, const char *word, struct span key, struct place *out)
{
  const char *dot = *section->path ? "." : "";

  /* A path that does not fit is longer than any in the table, so it is reported as unknown. */
  if (word)
    snprintf(out->path, sizeof out->path, "%.100s%s%s", section->path, dot, word);
  else
    snprintf(out->path, sizeof out->path, "%.80s%s%.*s", section->path, dot, (int)(key.n < 40 ? key.n : 40),
             (const char *)key.p);
  snprintf(out->shown, sizeof out->shown, "%.80s%s%.*s", section->shown, dot, (int)(key.n < 40 ? key.n : 40),
           (const char *)key.p);
}

/* Prefix the newest message with file, line and setting. */
static err_t fail_at(struct reader *rd, err_code_t code, const yaml_node_t *node, const char *shown)
{
  FAIL(code, "%s:%d: %s %s", rd->path, yaml_tree_line(node), shown, err_message());
}

/* Record a mistake in the file, so that reading goes on with the next setting. Other errors end the reading. */
static err_t note(struct reader *rd, err_code_t err)
{
  return problems_note(rd->problems, err);
}

static err_t verify_key(struct reader *rd, const yaml_node_t *map, size_t i, const char *shown)
{
  const yaml_node_t *key;
  const yaml_node_t *other;
  const yaml_node_t *value;

  yaml_tree_pair(rd->tree, map, i, &key, &value);
  if (yaml_tree_kind(key) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: a key in %s is not a string", rd->path, yaml_tree_line(key), shown);
  struct span text = yaml_tree_text(key);
  if (text.n == 0 || memchr(text.p, 0, text.n))
    FAIL(ERR_CONFIG, "%s:%d: a key in %s is empty or contains a zero byte", rd->path, yaml_tree_line(key), shown);
  for (size_t j = 0; j < i; j++) {
    yaml_tree_pair(rd->tree, map, j, &other, &value);
    if (yaml_tree_kind(other) == YAML_KIND_TEXT && span_equal(yaml_tree_text(other), text))
      FAIL(ERR_CONFIG, "%s:%d: %s is given twice, first in line %d", rd->path, yaml_tree_line(key), log_quote(text),
           yaml_tree_line(other));
  }
  return ERR_OK;
}

/* Is the value to be left where it is, because the caller does not need it? */
static bool is_unread(const struct reader *rd, enum config_secrets kind, struct span value)
{
  return rd->secrets < kind && config_secret_is_reference(value);
}

/* Get the value of a property. If the file only says where it is, read it there. */
static err_t read_value(struct reader *rd, const struct setting *s, const char *name, const yaml_node_t *node,
                        char **out)
{
  struct span text = yaml_tree_text(node);

  if (is_unread(rd, CONFIG_SECRETS_KAFKA, text))
    return mem_copy(text, out);
  err_code_t result = config_secret_read(rd->directory, text, out);
  if (result != ERR_OK)
    FAIL(result, "%s:%d: %s.%s: %s", rd->path, yaml_tree_line(node), s->path, name, err_message());
  if (config_secret_is_secret(name, config_secret_is_reference(text)))
    secrets_add(*out);
  return ERR_OK;
}

static err_t add_property(struct reader *rd, const struct setting *s, struct kafka_property *items, size_t *n,
                          const yaml_node_t *key, const yaml_node_t *value)
{
  AUTO(mem_free) char *name = NULL;
  AUTO(mem_free) char *text = NULL;
  struct span name_span = yaml_tree_text(key);

  if (yaml_tree_kind(value) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: the property %s.%s needs exactly one value: %s", rd->path, yaml_tree_line(value), s->path,
         log_quote(name_span), "properties are written with dots, as in `bootstrap.servers: host:9092`");
  struct span value_span = yaml_tree_text(value);
  if (value_span.n && memchr(value_span.p, 0, value_span.n))
    FAIL(ERR_CONFIG, "%s:%d: the value of %s.%s contains a zero byte", rd->path, yaml_tree_line(value), s->path,
         log_quote(name_span));
  TRY(mem_copy(name_span, &name));
  TRY(read_value(rd, s, name, value, &text));
  const struct kafka_property property = { .name = name, .value = text };
  err_code_t result = is_unread(rd, CONFIG_SECRETS_KAFKA, value_span) ? ERR_OK : setting_verify_property(s, &property);
  if (result != ERR_OK)
    FAIL(result, "%s:%d: %s: %s", rd->path, yaml_tree_line(key), s->path, err_message());
  items[(*n)++] = property;
  name = text = NULL;
  return ERR_OK;
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
      err = add_property(rd, s, items, &properties->n, key, value);
    TRY(note(rd, err));
  }
  return ERR_OK;
}

static err_t add_attribute(struct reader *rd, struct attribute *v, const yaml_node_t *key, const yaml_node_t *value)
{
  struct span name = yaml_tree_text(key);

  if (yaml_tree_kind(value) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: attributes.%s expects a type, as in `price: number`", rd->path, yaml_tree_line(key),
         log_quote(name));
  err_code_t result = config_attributes_add(v, &rd->config->attributes.n, name, yaml_tree_text(value));
  if (result != ERR_OK)
    FAIL(result, "%s:%d: attributes.%s", rd->path, yaml_tree_line(key), err_message());
  return ERR_OK;
}

static err_t read_attributes(struct reader *rd, const yaml_node_t *map)
{
  size_t n_pairs = yaml_tree_n_pairs(map);
  struct attribute *v;
  const yaml_node_t *key;
  const yaml_node_t *value;

  if (n_pairs > ATTRIBUTES_MAX)
    FAIL(ERR_CONFIG, "%s:%d: there are %zu attributes; at most %d are allowed", rd->path, yaml_tree_line(map), n_pairs,
         ATTRIBUTES_MAX);
  TRY(mem_array(n_pairs, sizeof *v, &v));
  rd->config->attributes.v = v;
  for (size_t i = 0; i < n_pairs; i++) {
    err_code_t err = verify_key(rd, map, i, "attributes");
    yaml_tree_pair(rd->tree, map, i, &key, &value);
    if (err == ERR_OK)
      err = add_attribute(rd, v, key, value);
    TRY(note(rd, err));
  }
  return ERR_OK;
}

static err_t add_field(struct reader *rd, struct config_fields *fields, const struct place *place,
                       const yaml_node_t *key, const yaml_node_t *value)
{
  struct span name = yaml_tree_text(key);

  if (yaml_tree_kind(value) != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: %s.%s expects a path, as in `price: price.amount`", rd->path, yaml_tree_line(key),
         place->shown, log_quote(name));
  err_code_t result = config_fields_add(fields, name, yaml_tree_text(value), yaml_tree_line(key));
  if (result == ERR_CONFIG)
    FAIL(result, "%s:%d: %s.%.*s %s", rd->path, yaml_tree_line(value), place->shown, (int)name.n, (const char *)name.p,
         err_message());
  return result;
}

static err_t read_fields(struct reader *rd, const struct setting *s, const struct place *place, const yaml_node_t *map)
{
  struct config_fields *fields = (void *)((char *)rd->config + s->offset);
  size_t n_pairs = yaml_tree_n_pairs(map);
  const yaml_node_t *key;
  const yaml_node_t *value;

  if (n_pairs > FIELDS_MAX)
    FAIL(ERR_CONFIG, "%s:%d: %s has %zu entries; at most %d are allowed", rd->path, yaml_tree_line(map), place->shown,
         n_pairs, FIELDS_MAX);
  TRY(mem_array(n_pairs, sizeof *fields->v, &fields->v));
  for (size_t i = 0; i < n_pairs; i++) {
    err_code_t err = verify_key(rd, map, i, place->shown);
    yaml_tree_pair(rd->tree, map, i, &key, &value);
    if (err == ERR_OK)
      err = add_field(rd, fields, place, key, value);
    TRY(note(rd, err));
  }
  return ERR_OK;
}

/* Set a secret. If the file only says where it is, read it there. */
static err_t set_secret(const struct reader *rd, const struct setting *s, void *base, struct span text)
{
  AUTO(mem_free) char *secret = NULL;

  if (is_unread(rd, CONFIG_SECRETS_ALL, text))
    return setting_set(s, base, rd->directory, text);
  TRY(config_secret_read(rd->directory, text, &secret));
  if (*secret)
    secrets_add(secret);
  return setting_set(s, base, rd->directory, span_of_str(secret));
}

static err_t set_text_of(struct reader *rd, const struct setting *s, const struct place *place, const yaml_node_t *node)
{
  void *base = setting_is_in_space(s) ? (void *)rd->space : (void *)rd->config;
  struct span text = yaml_tree_text(node);
  err_code_t result =
      s->type == SETTING_SECRET ? set_secret(rd, s, base, text) : setting_set(s, base, rd->directory, text);

  return result == ERR_OK ? ERR_OK : fail_at(rd, result, node, place->shown);
}

static err_t read_list(struct reader *rd, const struct setting *s, const struct place *place, const yaml_node_t *list)
{
  for (size_t i = 0; i < yaml_tree_n_items(list); i++) {
    const yaml_node_t *item = yaml_tree_item(rd->tree, list, i);
    if (yaml_tree_kind(item) != YAML_KIND_TEXT)
      FAIL(ERR_CONFIG, "%s:%d: %s expects a list of strings", rd->path, yaml_tree_line(item), place->shown);
    TRY(note(rd, set_text_of(rd, s, place, item)));
  }
  return ERR_OK;
}

/* Read a map or a list. A key without a value stands for an empty one. */
static err_t read_collection(struct reader *rd, const struct setting *s, const struct place *place,
                             const yaml_node_t *node)
{
  enum yaml_kind kind = yaml_tree_kind(node);
  bool is_map = s->type == SETTING_PROPERTIES;

  if (kind == YAML_KIND_NOTHING)
    return ERR_OK;
  if (s->type == SETTING_ATTRIBUTES && kind == YAML_KIND_MAP)
    return read_attributes(rd, node);
  if (s->type == SETTING_ATTRIBUTES)
    FAIL(ERR_CONFIG, "%s:%d: %s expects a map of names and types, as in {price: number}", rd->path,
         yaml_tree_line(node), place->shown);
  if (s->type == SETTING_FIELDS && kind == YAML_KIND_MAP)
    return read_fields(rd, s, place, node);
  if (s->type == SETTING_FIELDS)
    FAIL(ERR_CONFIG, "%s:%d: %s expects a map of names to paths, as in {price: price.amount}", rd->path,
         yaml_tree_line(node), place->shown);
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
  enum yaml_kind kind = yaml_tree_kind(node);

  rd->config->lines[index] = yaml_tree_line(node);
  if (setting_is_collection(s))
    return read_collection(rd, s, place, node);
  if (kind == YAML_KIND_NOTHING)
    FAIL(ERR_CONFIG, "%s:%d: %s has no value%s", rd->path, yaml_tree_line(node), place->shown,
         s->default_text ? ": leave the line out for the default" : "");
  if (kind != YAML_KIND_TEXT)
    FAIL(ERR_CONFIG, "%s:%d: %s expects one value, not a %s", rd->path, yaml_tree_line(node), place->shown,
         kind == YAML_KIND_MAP ? "map" : "list");
  return set_text_of(rd, s, place, node);
}

static err_t read_section(struct reader *rd, const struct place *section, const yaml_node_t *node);

static err_t verify_section(struct reader *rd, const struct place *place, const yaml_node_t *node)
{
  if (yaml_tree_kind(node) != YAML_KIND_MAP)
    FAIL(ERR_CONFIG, "%s:%d: %s is a section: it expects settings, one per line", rd->path, yaml_tree_line(node),
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

/* Set the defaults of a space, before its settings are read from the file. */
static err_t set_space_defaults(struct reader *rd)
{
  for (size_t i = 0; i < n_settings; i++) {
    if (setting_is_in_space(&settings[i]) && settings[i].default_text)
      TRY(setting_set(&settings[i], rd->space, rd->directory, span_of_str(settings[i].default_text)));
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
    FAIL(ERR_CONFIG, "%s:%d: %s.model is missing: every space needs a model", rd->path, yaml_tree_line(key),
         place.shown);
  return ERR_OK;
}

static err_t make_spaces(struct reader *rd, const yaml_node_t *node)
{
  size_t n = yaml_tree_n_pairs(node);

  rd->names_spaces = n > 0;
  if (n > SPACES_MAX)
    FAIL(ERR_CONFIG, "%s:%d: there are %zu spaces; at most %d are allowed", rd->path, yaml_tree_line(node), n,
         SPACES_MAX);
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
    bool is_set_elsewhere = setting_is_collection(s) || setting_is_in_space(s);
    if (s->default_text && !is_set_elsewhere)
      TRY(setting_set(s, rd->config, rd->directory, span_of_str(s->default_text)));
  }
  return ERR_OK;
}

static err_t verify_is_given(struct reader *rd, size_t index)
{
  const struct setting *s = &settings[index];

  if (rd->config->role == CONFIG_ROLE_SEARCH && !s->default_text && !setting_is_in_space(s) &&
      rd->config->lines[index] == 0)
    FAIL(ERR_CONFIG, "%s: %s is missing: write `%.*s: {%s: ...}`. %s", rd->path, s->path, (int)strcspn(s->path, "."),
         s->path, strchr(s->path, '.') + 1, s->meaning);
  return ERR_OK;
}

static err_t verify_has_space(struct reader *rd)
{
  if (rd->config->role == CONFIG_ROLE_SEARCH && !rd->names_spaces)
    FAIL(ERR_CONFIG, "%s: there is no space: configure at least one below spaces, with its model", rd->path);
  return ERR_OK;
}

static err_t read_root(struct reader *rd)
{
  const struct place top = { "", "" };
  const yaml_node_t *root = yaml_tree_root(rd->tree);

  TRY(set_defaults(rd));
  if (yaml_tree_kind(root) != YAML_KIND_NOTHING) {
    if (yaml_tree_kind(root) != YAML_KIND_MAP)
      FAIL(ERR_CONFIG, "%s:%d: a configuration must be a map of sections", rd->path, yaml_tree_line(root));
    TRY(read_section(rd, &top, root));
  }
  for (size_t i = 0; i < n_settings; i++)
    TRY(note(rd, verify_is_given(rd, i)));
  return note(rd, verify_has_space(rd));
}

static err_t copy_directory(const char *path, char **out)
{
  const char *slash = strrchr(path, '/');

  return mem_copy(span_of(path, slash ? (size_t)(slash - path) + 1 : 0), out);
}

err_t config_reader_read(struct yaml_tree *tree, enum config_secrets secrets, struct config *config,
                         struct problems *problems)
{
  AUTO(mem_free) char *directory = NULL;

  TRY(copy_directory(config->path, &directory));
  struct reader rd = {
    .path = config->path,
    .directory = directory,
    .tree = tree,
    .config = config,
    .problems = problems,
    .secrets = secrets,
  };
  return read_root(&rd);
}
