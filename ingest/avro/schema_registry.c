/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry's answers mean.
 *
 * Source: Confluent's "Schema Registry API Reference": GET /schemas/ids/{int: id}, and
 * GET /subjects/{string: subject}/versions/{versionId: version}
 */
#include "ingest/avro/schema_registry.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/http/http_client.h"

enum { ANSWER_BYTES_MAX = 4 << 20, SUBJECT_BYTES_MAX = 512, REFERENCES_MAX = 64, SHOWN_BYTES = 200 };
enum { PATH_BYTES = HTTP_ESCAPED_MAX * SUBJECT_BYTES_MAX + 64, URL_BYTES = 2048 + PATH_BYTES };
enum { STATUS_OK = 200, STATUS_NOT_FOUND = 404 };

/* The members error_code of answers that say that there is no such subject, version or schema. Any other answer of
 * status 404 may come from another server, or from a wrong path. */
enum { NO_SUBJECT = 40401, NO_VERSION = 40402, NO_SCHEMA = 40403 };

struct schema_registry {
  struct http_client *client;
  char *url;
  uint64_t version; /* of the access that the client was opened with */
  bool has_answered;
};

struct login {
  char *user, *password, *ca_file;
};

/* What schema_registry_renew() was told last. A process has one registry. */
static struct {
  pthread_mutex_t mutex;
  uint64_t version; /* 0: nothing */
  struct login login;
} renewed = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* Opening -------------------- */

static err_t verify_ca_file(const char *path)
{
  if (*path && access(path, R_OK) != 0)
    FAIL(ERR_CONFIG, "catalogue.registry.ca_file: %s cannot be read: %s", path, strerror(errno));
  return ERR_OK;
}

static err_t open_client(const char *user, const char *password, const char *ca_file, struct http_client **out)
{
  const struct http_options options = {
    .timeout_ms = SCHEMA_REGISTRY_MS,
    .body_bytes = ANSWER_BYTES_MAX,
    .header = "Accept: application/vnd.schemaregistry.v1+json",
    .user = *user ? user : NULL,
    .password = *user ? password : NULL,
    .ca_file = *ca_file ? ca_file : NULL,
  };

  return http_client_open(&options, out);
}

err_t schema_registry_open(const struct schema_registry_access *to, struct schema_registry **out)
{
  AUTO(schema_registry_close) struct schema_registry *r = NULL;

  TRY(verify_ca_file(to->ca_file));
  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(to->url, &r->url));
  for (size_t n = strlen(r->url); n > 0 && r->url[n - 1] == '/'; n--)
    r->url[n - 1] = '\0';
  TRY(open_client(to->user, to->password, to->ca_file, &r->client));
  *out = r;
  r = NULL;
  return ERR_OK;
}

void schema_registry_close(struct schema_registry **r)
{
  if (!*r)
    return;
  http_client_close(&(*r)->client);
  mem_free(&(*r)->url);
  mem_free(r);
}

static void free_login(struct login *login)
{
  mem_free(&login->user);
  mem_free(&login->password);
  mem_free(&login->ca_file);
}

err_t schema_registry_renew(const struct schema_registry_access *to)
{
  AUTO(free_login) struct login login = { 0 };

  TRY(verify_ca_file(to->ca_file));
  TRY(mem_copy_str(to->user, &login.user));
  TRY(mem_copy_str(to->password, &login.password));
  TRY(mem_copy_str(to->ca_file, &login.ca_file));
  pthread_mutex_lock(&renewed.mutex);
  struct login former = renewed.login;
  renewed.login = login;
  renewed.version++;
  pthread_mutex_unlock(&renewed.mutex);
  login = former;
  return ERR_OK;
}

/* Open another client if the access has changed. */
static err_t renew_client(struct schema_registry *r)
{
  struct http_client *client = NULL;
  err_code_t err = ERR_OK;

  pthread_mutex_lock(&renewed.mutex);
  if (r->version != renewed.version)
    err = open_client(renewed.login.user, renewed.login.password, renewed.login.ca_file, &client);
  if (err == ERR_OK)
    r->version = renewed.version;
  pthread_mutex_unlock(&renewed.mutex);
  if (client) {
    http_client_close(&r->client);
    r->client = client;
  }
  return err;
}

/* Answers -------------------- */

/* An error's answer has a message. */
static const char *reason_of(const struct http_answer *answer, json_t *json)
{
  const char *message = json_string_value(json_object_get(json, "message"));
  const char *text = message ? message : answer->body;

  return log_quote(span_of(text, strnlen(text, SHOWN_BYTES)));
}

/* Take what a registry answers apart from schemas. */
static err_t fail_with(const struct http_answer *answer, json_t *json, const char *url)
{
  json_int_t code = json_integer_value(json_object_get(json, "error_code"));

  if (answer->status == STATUS_NOT_FOUND && (code == NO_SUBJECT || code == NO_VERSION || code == NO_SCHEMA))
    FAIL(ERR_WIRE, "the registry does not have it: %s answers %s", url, reason_of(answer, json));
  FAIL(ERR_REGISTRY, "%s answers with HTTP status %ld: %s", url, answer->status, reason_of(answer, json));
}

static bool is_absent(const json_t *member)
{
  return !member || json_is_null(member);
}

/* Read the schema in an answer: JSON as text. A registry may have schemas of other kinds, too. */
static err_t read_schema(const json_t *json, const char *url, json_t **out)
{
  const json_t *type = json_object_get(json, "schemaType"), *references = json_object_get(json, "references");
  const char *text = json_string_value(json_object_get(json, "schema"));
  json_error_t error;

  if (!text)
    FAIL(ERR_REGISTRY, "%s answers without a schema: is it the URL of a schema registry?", url);
  if (!(is_absent(type) || json_is_string(type)) || !(is_absent(references) || json_is_array(references)))
    FAIL(ERR_REGISTRY, "%s answers with a schemaType that is no text, or references that are no list", url);
  if (json_is_string(type) && strcmp(json_string_value(type), "AVRO") != 0)
    FAIL(ERR_WIRE, "%s is not a schema of Avro, but of %s", url, log_quote(span_of_str(json_string_value(type))));
  *out = json_loads(text, JSON_DECODE_ANY, &error);
  if (!*out)
    FAIL(ERR_WIRE, "%s: the text of its member \"schema\" is not JSON: %s", url, error.text);
  return ERR_OK;
}

/* Asking -------------------- */

/* What is asked for one id. */
struct inquiry {
  struct schema_registry *registry;
  _Atomic int64_t end_ns;
  json_t *others; /* the list */
  json_t *known;  /* an object with the path of each schema that was asked for */
};

/* Ask for the answer at a path, and for the schema in it. */
static err_t ask(struct inquiry *inquiry, const char *path, json_t **answer, json_t **schema)
{
  struct http_answer http;
  char url[URL_BYTES];

  snprintf(url, sizeof url, "%s%s", inquiry->registry->url, path);
  http_client_ask(inquiry->registry->client, url, NULL, &inquiry->end_ns, &http);
  if (http.status == 0)
    FAIL(ERR_REGISTRY, "%s does not answer: %s", url, http.trouble);
  inquiry->registry->has_answered = true;
  if (http.is_cut)
    FAIL(ERR_REGISTRY, "%s answers with HTTP status %ld and more than %d bytes", url, http.status, ANSWER_BYTES_MAX);
  *answer = json_loadb(http.body, http.n_body, 0, NULL);
  return http.status == STATUS_OK ? read_schema(*answer, url, schema) : fail_with(&http, *answer, url);
}

/* Make the path of a schema that another one refers to. */
static err_t make_path(const json_t *reference, char out[PATH_BYTES])
{
  const char *subject = json_string_value(json_object_get(reference, "subject"));
  const json_t *version = json_object_get(reference, "version");
  char escaped[HTTP_ESCAPED_MAX * SUBJECT_BYTES_MAX + 1];

  if (!subject || strlen(subject) > SUBJECT_BYTES_MAX || !json_is_integer(version))
    FAIL(ERR_WIRE, "the registry names no subject of at most %d bytes, or no version, in its references",
         SUBJECT_BYTES_MAX);
  http_client_escape(subject, escaped);
  snprintf(out, PATH_BYTES, "/subjects/%s/versions/%" JSON_INTEGER_FORMAT, escaped, json_integer_value(version));
  return ERR_OK;
}

static err_t add_references(struct inquiry *inquiry, const json_t *answer);

static err_t add_reference(struct inquiry *inquiry, const json_t *reference)
{
  AUTO(json_decrefp) json_t *answer = NULL;
  AUTO(json_decrefp) json_t *schema = NULL;
  char path[PATH_BYTES];

  TRY(make_path(reference, path));
  if (json_object_get(inquiry->known, path))
    return ERR_OK;
  if (json_object_size(inquiry->known) == REFERENCES_MAX)
    FAIL(ERR_WIRE, "it refers to more than %d other schemas", REFERENCES_MAX);
  if (json_object_set_new(inquiry->known, path, json_true()) != 0)
    FAIL(ERR_MEMORY, "no memory for a schema");
  TRY(ask(inquiry, path, &answer, &schema));
  TRY(add_references(inquiry, answer));
  if (json_array_append(inquiry->others, schema) != 0)
    FAIL(ERR_MEMORY, "no memory for a schema");
  return ERR_OK;
}

/* Add the schemas that an answer refers to, each after those that it refers to itself. A registry takes a schema only
 * after those, so there is no circle; `known` would end one. */
static err_t add_references(struct inquiry *inquiry, const json_t *answer)
{
  const json_t *references = json_object_get(answer, "references");

  for (size_t i = 0; i < json_array_size(references); i++)
    TRY(add_reference(inquiry, json_array_get(references, i)));
  return ERR_OK;
}

static err_t get(struct inquiry *inquiry, uint32_t id, json_t **out)
{
  AUTO(json_decrefp) json_t *answer = NULL;
  AUTO(json_decrefp) json_t *schema = NULL;
  char path[PATH_BYTES];

  inquiry->registry->has_answered = false;
  TRY(renew_client(inquiry->registry));
  if (!inquiry->others || !inquiry->known)
    FAIL(ERR_MEMORY, "no memory for a schema");
  snprintf(path, sizeof path, "/schemas/ids/%" PRIu32, id);
  TRY(ask(inquiry, path, &answer, &schema));
  TRY(add_references(inquiry, answer));
  *out = schema;
  schema = NULL;
  return ERR_OK;
}

err_t schema_registry_get(struct schema_registry *r, uint32_t id, json_t **others, json_t **out)
{
  struct inquiry inquiry = {
    .registry = r,
    .end_ns = clock_now_ns() + SCHEMA_REGISTRY_MS * CLOCK_NS_PER_MS,
    .others = json_array(),
    .known = json_object(),
  };
  err_code_t err = get(&inquiry, id, out);

  json_decref(inquiry.known);
  *others = inquiry.others;
  return err;
}

bool schema_registry_has_answered(const struct schema_registry *r)
{
  return r->has_answered;
}
