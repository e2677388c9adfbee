/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas that the values of a topic were written with: one for all values, from a file, or one for each id that a
 * schema registry has given, from files or from the registry.
 *
 * Thread: any. Blocks: on files and on the registry (schema_registry.h), for ids that are not known.
 */
#ifndef INGEST_AVRO_SCHEMAS_H
#define INGEST_AVRO_SCHEMAS_H

#include "ingest/avro/avro_schema.h"
#include "ingest/avro/schema_registry.h"

struct avro_schemas;

/* Where schemas are. */
struct avro_sources {
  bool has_ids;
  const char *path; /* has_ids: a folder with a file ID.avsc for each id, "": none; else a file. A file has a schema, or
                       what a registry answers when it is asked for one: {"schema": "..."} */
  struct schema_registry_access
      registry; /* has_ids: asked for ids that the folder does not have; its url is "": none */
};

/* Read the schemas in files. The registry is not asked yet.
 *
 * Returns ERR_CONFIG with the path and what is wrong; ERR_SYSTEM; ERR_MEMORY. */
err_t avro_schemas_open(const struct avro_sources *from, struct avro_schemas **out);
void avro_schemas_close(struct avro_schemas **s);

/* Find the schema of an id; without ids, that of all values. It is valid until the schemas are closed. An id that is
 * not known is looked for in the folder, where a file that was added later is found, and then in the registry.
 *
 * The registry is asked again for an id after pauses: 10 s if it has no such schema, else 0.5 to 30 s. A registry that
 * does not answer at all is left alone for so long, whatever the id. Meanwhile, what it has said is returned.
 *
 * may_ask  false: the registry is not asked
 *
 * Returns ERR_WIRE, with what to do, if there is none; ERR_REGISTRY if that is not known; ERR_MEMORY. */
err_t avro_schemas_find(struct avro_schemas *s, uint32_t id, bool may_ask, const struct avro_type **out);

#endif
