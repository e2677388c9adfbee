/* SPDX-License-Identifier: Apache-2.0 */
/* A schema registry: schemas of Avro by their ids, over HTTP. Confluent's interface, which others have too:
 * GET URL/schemas/ids/ID and, for what a schema refers to, GET URL/subjects/SUBJECT/versions/VERSION.
 *
 * Thread: one. Blocks: SCHEMA_REGISTRY_MS at most.
 */
#ifndef INGEST_SCHEMA_REGISTRY_H
#define INGEST_SCHEMA_REGISTRY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { SCHEMA_REGISTRY_MS = 2000 };

struct schema_registry;

/* The functions below copy what they need. */
struct schema_registry_access {
  const char *url;  /* with or without a slash at the end */
  const char *user; /* "": it is asked without a password */
  const char *password;
  const char *ca_file; /* certificates of authorities; "": those of the system */
};

/* Nothing is asked yet. Returns ERR_CONFIG if ca_file cannot be read; ERR_SYSTEM; ERR_MEMORY. */
err_t schema_registry_open(const struct schema_registry_access *to, struct schema_registry **out);
void schema_registry_close(struct schema_registry **r);

/* Ask with another user name, password and ca_file from now on; url is not looked at. Registries that are open, or
 * opened later, do so from their next question on. Thread: any. Returns ERR_CONFIG if ca_file cannot be read, and
 * ERR_MEMORY: nothing has changed. */
err_t schema_registry_renew(const struct schema_registry_access *to);

/* Ask for a schema, and for those that it refers to.
 *
 * others  out: a list of these, for avro_schema_make(). The caller releases it and the schema with json_decref()
 *
 * Returns ERR_WIRE if the registry says that it has no schema of Avro with this id; ERR_REGISTRY if it does not answer,
 * or answers anything else: another attempt may succeed; ERR_MEMORY. The first two with the reason. */
err_t schema_registry_get(struct schema_registry *r, uint32_t id, json_t **others, json_t **out);

/* Has there been an answer to the newest question, whatever it was? */
bool schema_registry_has_answered(const struct schema_registry *r);

#endif
