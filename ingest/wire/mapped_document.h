/* SPDX-License-Identifier: Apache-2.0 */
/* The value or the key of a mapped record as JSON, whichever form it has. Thread: the one that owns the region. */
#ifndef INGEST_MAPPED_DOCUMENT_H
#define INGEST_MAPPED_DOCUMENT_H

#include <jansson.h>

#include "base/region.h"
#include "ingest/wire/mapping.h"

/* Find the schema that framed bytes need, if they need one, before they are read. See item_format_find_schema(). */
err_t mapped_document_find_schema(const struct mapping *m, struct span bytes, bool may_ask, uint32_t *id);

/* Read bytes as JSON or, if the mapping has schemas or messages, as Avro or Protobuf. Blocks: see avro_schemas.h.
 *
 * is_framed  a zero byte and a schema's id are in front; in Protobuf, a list of message indexes, too
 * has_large  see json_parse()
 * out        the caller releases it with json_decref()
 *
 * Returns ERR_WIRE with what is wrong; ERR_REGISTRY if a schema is not known, and was not looked for before;
 * ERR_TOO_LARGE; ERR_MEMORY. */
err_t mapped_document_read(const struct mapping *m, bool is_framed, struct span bytes, struct region *r,
                           bool *has_large, json_t **out);

#endif
