/* SPDX-License-Identifier: Apache-2.0 */
/* What a registry's answers mean.
 *
 * Source: Confluent's "Schema Registry API Reference", GET /schemas/ids/{int: id}
 */
#include "ingest/avro/schema_registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/http/http_client.h"

enum { ANSWER_BYTES_MAX = 4 << 20, URL_BYTES = 2100, SHOWN_BYTES = 200 };
enum { STATUS_OK = 200, STATUS_NOT_FOUND = 404 };

struct schema_registry {
  struct http_client *client;
  char *url;
};

/* An error's answer has a message. */
static const char *reason_of(const struct http_answer *answer, json_t *json)
{
  const char *message = json_string_value(json_object_get(json, "message"));
  const char *text = message ? message : answer->body;

  return log_quote(span_of(text, strnlen(text, SHOWN_BYTES)));
}

/* Take what a registry answers apart from schemas. Only a registry that knows its schemas can say that there is no such
 * one: another server that answers 404 has no error_code. */
static err_t fail_with(const struct http_answer *answer, json_t *json, const char *url)
{
  bool is_registry = json_is_integer(json_object_get(json, "error_code"));

  if (answer->status == STATUS_NOT_FOUND && is_registry)
    FAIL(ERR_WIRE, "the registry does not have it: %s answers %s", url, reason_of(answer, json));
  FAIL(ERR_REGISTRY, "%s answers with HTTP status %ld: %s", url, answer->status, reason_of(answer, json));
}

/* A registry may have schemas of other kinds, and Avro's may refer to others. */
static err_t verify_schema(const json_t *json, const char *url)
{
  const char *type = json_string_value(json_object_get(json, "schemaType"));

  if (!json_is_string(json_object_get(json, "schema")))
    FAIL(ERR_REGISTRY, "%s answers without a schema: is it the URL of a schema registry?", url);
  if (type && strcmp(type, "AVRO") != 0)
    FAIL(ERR_WIRE, "%s is not a schema of Avro, but of %s", url, log_quote(span_of_str(type)));
  if (json_array_size(json_object_get(json, "references")) > 0)
    FAIL(ERR_WIRE, "%s refers to other schemas, which is not supported: register it as one schema", url);
  return ERR_OK;
}

static err_t read_answer(const struct http_answer *answer, const char *url, json_t **out)
{
  if (answer->status == 0)
    FAIL(ERR_REGISTRY, "%s does not answer: %s", url, answer->trouble);
  if (answer->is_cut)
    FAIL(ERR_WIRE, "%s answers with more than %d bytes", url, ANSWER_BYTES_MAX);
  *out = json_loadb(answer->body, answer->n_body, 0, NULL);
  return answer->status == STATUS_OK ? verify_schema(*out, url) : fail_with(answer, *out, url);
}

err_t schema_registry_get(struct schema_registry *r, uint32_t id, json_t **out)
{
  const _Atomic int64_t never = INT64_MAX;
  AUTO(json_decrefp) json_t *json = NULL;
  struct http_answer answer;
  char url[URL_BYTES];

  snprintf(url, sizeof url, "%s/schemas/ids/%" PRIu32, r->url, id);
  http_client_ask(r->client, url, NULL, &never, &answer);
  TRY(read_answer(&answer, url, &json));
  *out = json;
  json = NULL;
  return ERR_OK;
}

err_t schema_registry_open(const struct schema_registry_access *access, struct schema_registry **out)
{
  AUTO(schema_registry_close) struct schema_registry *r = NULL;
  const struct http_options options = {
    .timeout_ms = SCHEMA_REGISTRY_MS,
    .body_bytes = ANSWER_BYTES_MAX,
    .header = "Accept: application/vnd.schemaregistry.v1+json",
    .user = *access->user ? access->user : NULL,
    .password = *access->user ? access->password : NULL,
    .ca_file = *access->ca_file ? access->ca_file : NULL,
  };

  TRY(mem_array(1, sizeof *r, &r));
  TRY(mem_copy_str(access->url, &r->url));
  for (size_t n = strlen(r->url); n > 0 && r->url[n - 1] == '/'; n--)
    r->url[n - 1] = '\0';
  TRY(http_client_open(&options, &r->client));
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
