/* SPDX-License-Identifier: Apache-2.0 */
/* Read lines such as {"id": 17, "attributes": {"price": 9.5}}, and apply them in batches. */
#include "daemon/ctl/eval/ctl_eval_attributes.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/config/config_attributes.h"
#include "daemon/ctl/text/ctl_json.h"
#include "daemon/ctl/eval/ctl_value.h"

enum { APPLY_LINES = 4096 };

/* An item, and where its attributes are. */
struct place {
  int64_t id;
  uint64_t line; /* 0: nowhere yet */
};

struct reader {
  const char *path;
  const struct ctl_eval_items *items;
  struct engine *engine;
  FILE *file;
  char *line;
  size_t line_capacity;
  uint64_t n_lines;
  struct place *places; /* [items->n] in the order of their ids */
  struct region region; /* holds the batch */
  struct item_change changes[APPLY_LINES];
  uint8_t keys[APPLY_LINES][CTL_EVAL_KEY_BYTES];
  size_t n; /* changes in the batch */
};

static void close_reader(struct reader **r)
{
  if (!*r)
    return;
  if ((*r)->file)
    fclose((*r)->file);
  free((*r)->line);
  mem_free(&(*r)->places);
  region_fini(&(*r)->region);
  mem_free(r);
}

err_t ctl_eval_attributes_add(struct attribute *v, size_t *n, const char *text)
{
  const char *colon = strchr(text, ':');
  char reason[384];

  if (!colon)
    FAIL(ERR_USAGE, "--attribute expects NAME:TYPE, such as price:number, not \"%s\"", text);
  struct span name = span_of(text, (size_t)(colon - text));
  if (attributes_find(&(struct attributes){ v, *n }, name, 0) != ATTRIBUTE_NONE)
    FAIL(ERR_USAGE, "--attribute: %s is given twice", log_quote(name));
  if (*n == ATTRIBUTES_MAX)
    FAIL(ERR_USAGE, "--attribute may be given at most %d times", ATTRIBUTES_MAX);
  err_code_t result = config_attributes_add(v, n, name, span_of_str(colon + 1));
  if (result != ERR_CONFIG)
    return result;
  snprintf(reason, sizeof reason, "%s", err_message());
  FAIL(ERR_USAGE, "--attribute %s", reason);
}

static int by_id(const void *a, const void *b)
{
  const struct place *x = a, *y = b;

  return (x->id > y->id) - (x->id < y->id);
}

static err_t open_file(const char *path, FILE **out)
{
  struct stat status;

  *out = fopen(path, "re");
  if (!*out || fstat(fileno(*out), &status) != 0)
    FAIL(ERR_SYSTEM, "--attributes: %s cannot be opened: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) /* a device may have no end */
    FAIL(ERR_SYSTEM, "--attributes: %s is neither a regular file nor a pipe", path);
  return ERR_OK;
}

static err_t open_reader(const char *path, const struct ctl_eval_items *items, struct engine *e, struct reader **out)
{
  AUTO(close_reader) struct reader *r = NULL;

  TRY(mem_array(1, sizeof *r, &r));
  r->path = path;
  r->items = items;
  r->engine = e;
  TRY(open_file(path, &r->file)); /* close_reader() closes it */
  TRY(mem_array(items->n, sizeof *r->places, &r->places));
  for (size_t i = 0; i < items->n; i++)
    r->places[i].id = tensor_i64(&items->ids, i);
  qsort(r->places, items->n, sizeof *r->places, by_id);
  *out = r;
  r = NULL;
  return ERR_OK;
}

/* Find the item of a line, note that the line has its attributes, and make its key. */
static err_t take_id(struct reader *r, const json_t *json)
{
  int64_t id = json_integer_value(json);

  if (!json_is_integer(json))
    FAIL(ERR_ITEM, "id: expected the id of an item, an integer");
  struct place *place = bsearch(&(struct place){ .id = id }, r->places, r->items->n, sizeof *place, by_id);
  if (!place)
    FAIL(ERR_ITEM, "id: item %" PRId64 " is not among the items of %s: remove the line, or add the item", id,
         safetensors_path(r->items->file));
  if (place->line)
    FAIL(ERR_ITEM, "id: item %" PRId64 " is on line %" PRIu64 " too: keep one line for each item", id, place->line);
  place->line = r->n_lines;
  ctl_eval_key_of(id, r->keys[r->n]);
  return ERR_OK;
}

static err_t read_attribute(struct reader *r, const char *name, const json_t *json, struct attribute_value *out)
{
  char reason[256];
  bool is_known;

  out->name = span_of_str(name);
  err_code_t result = ctl_value_read(json, &r->region, &out->value);
  if (result == ERR_ITEM) {
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "attributes[%s]: %s", log_quote(out->name), reason);
  }
  TRY(result);
  TRY(engine_normalize_attribute(r->engine, &r->region, out, &is_known));
  if (!is_known)
    FAIL(ERR_ITEM, "attributes[%s]: there is no such attribute: correct it, or give its type as --attribute %s:TYPE",
         log_quote(out->name), name);
  return region_copy(&r->region, out->name, &out->name);
}

static err_t read_attributes(struct reader *r, json_t *json, struct item_change *out)
{
  struct attribute_value *v;
  const char *name;
  json_t *value;

  if (!json_is_object(json))
    FAIL(ERR_ITEM, "attributes: expected an object, such as {\"price\": 9.5}");
  TRY(region_array(&r->region, json_object_size(json), sizeof *v, &v));
  out->attributes = v;
  json_object_foreach(json, name, value) TRY(read_attribute(r, name, value, &v[out->n_attributes++]));
  return ERR_OK;
}

static err_t read_members(struct reader *r, json_t *line)
{
  struct item_change *change = &r->changes[r->n];
  const char *name;
  json_t *value;

  if (!json_is_object(line))
    FAIL(ERR_ITEM, "expected an object: {\"id\": 17, \"attributes\": {...}}");
  json_object_foreach(line, name, value)
  {
    if (strcmp(name, "id") != 0 && strcmp(name, "attributes") != 0)
      FAIL(ERR_ITEM, "unknown member %s: a line has \"id\" and \"attributes\"", log_quote(span_of_str(name)));
  }
  TRY(take_id(r, json_object_get(line, "id")));
  *change = (struct item_change){ .key = span_of(r->keys[r->n], CTL_EVAL_KEY_BYTES) };
  TRY(read_attributes(r, json_object_get(line, "attributes"), change));
  r->n += change->n_attributes > 0;
  return ERR_OK;
}

static err_t read_line(struct reader *r, struct span line)
{
  json_error_t error;
  const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES;
  AUTO(ctl_json_close) json_t *json = json_loadb((const char *)line.p, line.n, flags, &error);

  if (!json)
    FAIL(ERR_ITEM, "cannot be read as JSON: %s", ctl_json_reason(&error));
  return read_members(r, json);
}

static err_t apply(struct reader *r)
{
  TRY(engine_apply(r->engine, r->changes, r->n, NULL, 0));
  region_reset(&r->region);
  r->n = 0;
  return ERR_OK;
}

static err_t take_line(struct reader *r, struct span line)
{
  char reason[640];

  r->n_lines++;
  if (ctl_json_is_blank(line))
    return ERR_OK;
  err_code_t result = read_line(r, line);
  if (result == ERR_ITEM) {
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "%s, line %" PRIu64 ": %s", r->path, r->n_lines, reason);
  }
  TRY(result);
  return r->n == APPLY_LINES ? apply(r) : ERR_OK;
}

err_t ctl_eval_attributes_apply(const char *path, const struct ctl_eval_items *items, struct engine *e,
                                const struct ctl_eval_watch *watch)
{
  AUTO(close_reader) struct reader *r = NULL;
  ssize_t n;

  TRY(open_reader(path, items, e, &r));
  while ((n = getline(&r->line, &r->line_capacity, r->file)) >= 0) {
    TRY(take_line(r, span_of(r->line, (size_t)n)));
    if (r->n == 0)
      watch->tick(watch->context, r->n_lines);
  }
  if (ferror(r->file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", path, strerror(errno));
  return apply(r);
}

err_t ctl_eval_queries_set_filter(struct ctl_eval_queries *queries, const struct engine *e, const char *filter,
                                  const char *parameters, struct region *region)
{
  struct query *common = &queries->common;
  char reason[256];

  common->filter = span_of_str(filter);
  err_code_t result =
      parameters ? ctl_values_read(parameters, region, &common->parameters, &common->n_parameters) : ERR_OK;
  if (err_class(result) == ERR_CLASS_REJECT) {
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(ERR_USAGE, "--parameters: %s", reason);
  }
  TRY(result);
  return engine_check_filter(e, common, region);
}
