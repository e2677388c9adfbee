/* SPDX-License-Identifier: Apache-2.0 */
/* The schemas that the values of a topic were written with, from files: one for all values, or one for each id that a
 * schema registry has given. Thread: any. Blocks: on files, when an id comes for the first time.
 */
#ifndef INGEST_AVRO_SCHEMAS_H
#define INGEST_AVRO_SCHEMAS_H

#include "ingest/avro/avro_schema.h"

struct avro_schemas;

/* Read the schemas.
 *
 * path     has_ids: a folder with a file ID.avsc for each id; else a file. A file has a schema, or what a registry
 *          answers when it is asked for one: {"schema": "..."}
 *
 * Returns ERR_CONFIG with the path and what is wrong; ERR_MEMORY. */
err_t avro_schemas_open(const char *path, bool has_ids, struct avro_schemas **out);
void avro_schemas_close(struct avro_schemas **s);

/* Find the schema of an id; without ids, that of all values. It is valid until the schemas are closed. An id that is
 * not known is looked for in the folder: a file that was added later is found.
 *
 * Returns ERR_WIRE, with what to do, if there is none; ERR_MEMORY. */
err_t avro_schemas_find(struct avro_schemas *s, uint32_t id, const struct avro_type **out);

#endif
