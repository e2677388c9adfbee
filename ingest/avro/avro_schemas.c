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

/* How many ids without a schema are remembered, with what the registry has said of them. */
enum { VERDICTS = 64 };

/* Pauses before the registry is asked again. */
enum { REFUSED_MS = 10000, RETRY_MS = 500, RETRY_MAX_MS = 30000 };

/* Why there is no schema. */
struct verdict {
  uint32_t id;
  int pause_ms;
  int64_t until_ns; /* the registry is not asked again before; 0: there is no verdict */
  struct err_kept why;
};

struct avro_schemas {
  char *path;
  bool has_ids;
  struct schema_registry *registry; /* NULL: there is none */
  pthread_mutex_t mutex;            /* guards what follows */
  struct schema *first;
  struct verdict verdicts[VERDICTS];
  size_t n_verdicts;   /* since the start: each takes the place of the oldest */
  struct verdict away; /* of all ids: the registry does not answer */
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
  if (!s->first && !s->registry)
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

static struct verdict *find_verdict(struct avro_schemas *s, uint32_t id)
{
  for (size_t i = 0; i < VERDICTS; i++) {
    if (s->verdicts[i].id == id && s->verdicts[i].until_ns)
      return &s->verdicts[i];
  }
  return NULL;
}

static struct verdict *add_verdict(struct avro_schemas *s, uint32_t id)
{
  struct verdict *verdict = &s->verdicts[s->n_verdicts++ % VERDICTS];

  *verdict = (struct verdict){ .id = id };
  return verdict;
}

/* Keep the newest failure. While the registry cannot tell, the pauses grow. */
static void keep_verdict(struct verdict *verdict, err_code_t err)
{
  int next_ms = verdict->why.code == ERR_REGISTRY ? 2 * verdict->pause_ms : RETRY_MS;

  verdict->pause_ms = err == ERR_WIRE ? REFUSED_MS : next_ms < RETRY_MAX_MS ? next_ms : RETRY_MAX_MS;
  verdict->until_ns = clock_now_ns() + verdict->pause_ms * CLOCK_NS_PER_MS;
  err_keep(err, &verdict->why);
}

/* What the registry has said counts until it is asked again. */
static err_t give_verdict(const struct verdict *verdict)
{
  if (verdict)
    return err_give_back(&verdict->why);
  FAIL(ERR_REGISTRY, "the registry is asked for it in a moment");
}

static err_t ask_registry(struct avro_schemas *s, uint32_t id, bool may_ask)
{
  int64_t now = clock_now_ns();
  struct verdict *verdict = find_verdict(s, id);

  if (now < s->away.until_ns)
    return give_verdict(verdict && verdict->why.code == ERR_WIRE ? verdict : &s->away);
  if (!may_ask || (verdict && now < verdict->until_ns))
    return give_verdict(verdict);
  err_code_t err = fetch(s, id);
  if (err == ERR_CONFIG || err_class(err) == ERR_CLASS_REJECT)
    err = ERR_WIRE;
  if (err == ERR_REGISTRY && !schema_registry_has_answered(s->registry))
    keep_verdict(&s->away, err);
  else if (err == ERR_REGISTRY || err == ERR_WIRE)
    keep_verdict(verdict ? verdict : add_verdict(s, id), err);
  if (schema_registry_has_answered(s->registry))
    s->away = (struct verdict){ 0 };
  return err;
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

static err_t add_late(struct avro_schemas *s, uint32_t id, bool may_ask)
{
  bool is_there;

  err_code_t err = add_late_file(s, id, &is_there);
  if (err == ERR_OK && !is_there && s->registry)
    err = ask_registry(s, id, may_ask);
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

err_t avro_schemas_find(struct avro_schemas *s, uint32_t id, bool may_ask, const struct avro_type **out)
{
  err_code_t err = ERR_OK;

  pthread_mutex_lock(&s->mutex);
  const struct schema *found = find(s, id);
  if (!found) {
    err = add_late(s, id, may_ask);
    found = s->first;
  }
  if (err == ERR_OK)
    *out = found->type;
  pthread_mutex_unlock(&s->mutex);
  return err;
}
