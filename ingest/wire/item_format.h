/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the records in the catalogue topic: Sluice's own messages, or JSON, Avro or Protobuf with a mapping.
 *
 * Thread: the one that owns the region. Blocks: no, unless said.
 */
#ifndef INGEST_ITEM_FORMAT_H
#define INGEST_ITEM_FORMAT_H

#include "ingest/wire/mapped_item.h"

/* All zeros: Sluice's own messages. */
struct item_format {
  bool is_framed;         /* catalogue.framing: confluent */
  bool is_mapped;         /* catalogue.format: json, avro or protobuf */
  struct mapping mapping; /* if it is */
};

/* Find what a record needs to be decoded: the schemas of its value and, where that does not have the item's key, of its
 * key.
 *
 * may_ask  false: the schema registry is not asked, but what it has said counts
 * id       out: on ERR_REGISTRY, the schema's id
 *
 * Returns ERR_REGISTRY, with the reason, if a schema is not known because the registry does not tell it for now;
 * ERR_MEMORY. What else is wrong, decoding says. Blocks: on the registry. */
err_t item_format_find_schema(const struct item_format *f, const struct topic_record *record, bool may_ask,
                              uint32_t *id);

/* Ask again for a schema that item_format_find_schema() has named. Returns the errors of avro_schemas_find(). */
err_t item_format_ask(const struct item_format *f, uint32_t id, bool may_ask);

/* Decode a record as a change of an item. Names of spaces and attributes, and the types of attributes, are not verified
 * against the configuration.
 *
 * out  its key may be a part of the record; everything else lives in the region
 *
 * Returns an error of class REJECT, with the reason, when the record cannot be used; ERR_MEMORY. On error the region
 * may have grown.
 */
err_t item_format_decode(const struct item_format *f, const struct topic_record *record, struct region *r,
                         struct item_change *out);

#endif
