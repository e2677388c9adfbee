/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas by their ids. They are few, and are never forgotten. */
#include "ingest/avro/avro_schemas.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/regular_file.h"

#define SUFFIX ".avsc"

struct schema {
  uint32_t id;
  struct region region;
  const struct avro_type *type;
  struct schema *next;
};

/* Ids that the registry has refused and are not asked for again so soon: as many as records that no schema fits may
 * take turns with. */
enum { REFUSALS = 16, REFUSED_MS = 10000 };

/* How long a registry that does not answer is left alone: many partitions may wait for it. */
enum { AWAY_MS = 400 };

/* What the registry has said. */
struct refusal {
  uint32_t id;
  int64_t until_ns; /* as long as it counts */
  struct err_kept why;
};

struct avro_schemas {
  char *path;
  bool has_ids;
  struct schema_registry *registry; /* NULL: there is none */
  pthread_mutex_t mutex;            /* guards what follows */
  struct schema *first;
  struct refusal refusals[REFUSALS];
  size_t n_refusals; /* since the start: each replaces the oldest */
  struct refusal away;
};

/* Files -------------------- */

/* What a registry answers has the schema as text in a member. */
static err_t unwrap(const char *path, json_t **json)
{
  const char *text = json_object_get(*json, "type") ? NULL : json_string_value(json_object_get(*json, "schema"));
  json_error_t error;

  if (!text)
    return ERR_OK;
  json_t *inner = json_loads(text, JSON_DECODE_ANY, &error);
  if (!inner)
    FAIL(ERR_CONFIG, "%s: the text of its member \"schema\" is not JSON: %s", path, error.text);
  json_decref(*json);
  *json = inner;
  return ERR_OK;
}

/* is_there: false if there is no such file. */
static err_t read_json(const char *path, bool *is_there, json_t **out)
{
  AUTO(auto_close_fd) int fd = -1;
  struct stat status;
  json_error_t error;

  *is_there = access(path, F_OK) == 0;
  TRY(regular_file_open(path, &status, &fd));
  *out = json_loadfd(fd, JSON_DECODE_ANY, &error);
  if (!*out)
    FAIL(ERR_CONFIG, "%s: not JSON: %s (line %d, column %d)", path, error.text, error.line, error.column);
  return unwrap(path, out);
}

static void free_schema(struct schema **s)
{
  if (!*s)
    return;
  region_fini(&(*s)->region);
  mem_free(s);
}

static err_t make_schema(const char *path, const json_t *others, const json_t *json, struct schema *s)
{
  err_code_t err = avro_schema_make(others, json, &s->region, &s->type);

  if (err == ERR_CONFIG)
    FAIL(err, "%s: %s", path, err_message());
  return err;
}

/* Add a schema. The caller holds the mutex, or is alone. */
static err_t add_json(struct avro_schemas *s, const char *from, uint32_t id, const json_t *others, const json_t *json)
{
  AUTO(free_schema) struct schema *schema = NULL;

  TRY(mem_array(1, sizeof *schema, &schema));
  TRY(make_schema(from, others, json, schema));
  schema->id = id;
  schema->next = s->first;
  s->first = schema;
  schema = NULL;
  return ERR_OK;
}

static err_t add_file(struct avro_schemas *s, const char *path, uint32_t id, bool *is_there)
{
  AUTO(json_decrefp) json_t *json = NULL;

  TRY(read_json(path, is_there, &json));
  return add_json(s, path, id, NULL, json);
}

/* Is it the name of a schema's file, such as 17.avsc? */
static bool parse_name(const char *name, uint32_t *id)
{
  char *end;

  if (*name < '0' || *name > '9')
    return false;
  errno = 0;
  unsigned long long number = strtoull(name, &end, 10);
  *id = (uint32_t)number;
  return errno == 0 && number <= UINT32_MAX && strcmp(end, SUFFIX) == 0;
}

static err_t path_of(const struct avro_schemas *s, const char *name, char **out)
{
  size_t n = strlen(s->path) + strlen(name) + 2;

  TRY(mem_bytes(n, out));
  snprintf(*out, n, "%s/%s", s->path, name);
  return ERR_OK;
}

static err_t add_named(struct avro_schemas *s, const char *name, uint32_t id, bool *is_there)
{
  AUTO(mem_free) char *path = NULL;

  TRY(path_of(s, name, &path));
  return add_file(s, path, id, is_there);
}

static err_t add_all(struct avro_schemas *s, DIR *folder)
{
  const struct dirent *entry;
  bool is_there;
  uint32_t id;

  while ((entry = readdir(folder))) {
    if (parse_name(entry->d_name, &id))
      TRY(add_named(s, entry->d_name, id, &is_there));
  }
  if (!s->first)
    FAIL(ERR_CONFIG, "%s: it has no schema: save each as its id in the registry, such as 17" SUFFIX, s->path);
  return ERR_OK;
}

static err_t add_folder(struct avro_schemas *s)
{
  DIR *folder = opendir(s->path);

  if (!folder)
    FAIL(ERR_CONFIG, "%s: %s: with catalogue.framing: confluent, it is a folder of schemas", s->path, strerror(errno));
  err_code_t err = add_all(s, folder);
  closedir(folder);
  return err;
}

/* Opening -------------------- */

static err_t read_files(struct avro_schemas *s)
{
  bool is_there;

  if (s->has_ids && !*s->path)
    return ERR_OK;
  err_code_t err = s->has_ids ? add_folder(s) : add_file(s, s->path, 0, &is_there);
  if (err == ERR_CONFIG)
    FAIL(err, "catalogue.schemas: %s", err_message());
  return err;
}

err_t avro_schemas_open(const struct avro_sources *from, struct avro_schemas **out)
{
  AUTO(avro_schemas_close) struct avro_schemas *s = NULL;

  TRY(mem_array(1, sizeof *s, &s));
  pthread_mutex_init(&s->mutex, NULL);
  s->has_ids = from->has_ids;
  TRY(mem_copy_str(from->path, &s->path));
  if (*from->registry.url)
    TRY(schema_registry_open(&from->registry, &s->registry));
  TRY(read_files(s));
  *out = s;
  s = NULL;
  return ERR_OK;
}

void avro_schemas_close(struct avro_schemas **s)
{
  if (!*s)
    return;
  for (struct schema *schema = (*s)->first, *next; schema; schema = next) {
    next = schema->next;
    free_schema(&schema);
  }
  schema_registry_close(&(*s)->registry);
  pthread_mutex_destroy(&(*s)->mutex);
  mem_free(&(*s)->path);
  mem_free(s);
}

/* The registry -------------------- */

static err_t fetch(struct avro_schemas *s, uint32_t id)
{
  AUTO(json_decrefp) json_t *json = NULL;
  AUTO(json_decrefp) json_t *others = NULL;

  TRY(schema_registry_get(s->registry, id, &others, &json));
  return add_json(s, "the registry's answer", id, others, json);
}

/* Return what the registry has said a moment ago; NULL: nothing. */
static const struct refusal *find_refusal(const struct avro_schemas *s, uint32_t id)
{
  int64_t now = clock_now_ns();

  for (size_t i = 0; i < REFUSALS; i++) {
    if (s->refusals[i].id == id && now < s->refusals[i].until_ns)
      return &s->refusals[i];
  }
  return now < s->away.until_ns ? &s->away : NULL;
}

static void keep_refusal(uint32_t id, err_code_t err, int64_t ms, struct refusal *out)
{
  *out = (struct refusal){ .id = id, .until_ns = clock_now_ns() + ms * CLOCK_NS_PER_MS };
  err_keep(err, &out->why);
}

static err_t ask_registry(struct avro_schemas *s, uint32_t id)
{
  const struct refusal *refusal = find_refusal(s, id);

  if (refusal)
    return err_give_back(&refusal->why);
  err_code_t err = fetch(s, id);
  if (err == ERR_CONFIG || err_class(err) == ERR_CLASS_REJECT)
    keep_refusal(id, ERR_WIRE, REFUSED_MS, &s->refusals[s->n_refusals++ % REFUSALS]);
  else if (err == ERR_REGISTRY)
    keep_refusal(id, err, AWAY_MS, &s->away);
  return err == ERR_CONFIG ? ERR_WIRE : err;
}

/* Finding -------------------- */

static const struct schema *find(const struct avro_schemas *s, uint32_t id)
{
  for (const struct schema *schema = s->first; schema; schema = schema->next) {
    if (schema->id == id || !s->has_ids)
      return schema;
  }
  return NULL;
}

/* Look for a file that came later. is_there: false if there is none. */
static err_t add_late_file(struct avro_schemas *s, uint32_t id, bool *is_there)
{
  char name[24];

  *is_there = false;
  if (!*s->path)
    return ERR_OK;
  snprintf(name, sizeof name, "%" PRIu32 SUFFIX, id);
  err_code_t err = add_named(s, name, id, is_there);
  return err == ERR_CONFIG && !*is_there ? ERR_OK : err;
}

static err_t add_late(struct avro_schemas *s, uint32_t id)
{
  bool is_there;

  err_code_t err = add_late_file(s, id, &is_there);
  if (err == ERR_OK && !is_there && s->registry)
    err = ask_registry(s, id);
  else if (err == ERR_OK && !is_there)
    FAIL(ERR_WIRE,
         "schema %" PRIu32 " is not known: save it from the registry as %s/%" PRIu32 SUFFIX ", then retry the record",
         id, s->path, id);
  if (err == ERR_CONFIG)
    err = ERR_WIRE;
  if (err == ERR_WIRE || err == ERR_REGISTRY)
    FAIL(err, "schema %" PRIu32 ": %s", id, err_message());
  return err;
}

err_t avro_schemas_find(struct avro_schemas *s, uint32_t id, const struct avro_type **out)
{
  err_code_t err = ERR_OK;

  pthread_mutex_lock(&s->mutex);
  const struct schema *found = find(s, id);
  if (!found) {
    err = add_late(s, id);
    found = s->first;
  }
  if (err == ERR_OK)
    *out = found->type;
  pthread_mutex_unlock(&s->mutex);
  return err;
}
