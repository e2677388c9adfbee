/* SPDX-License-Identifier: Apache-2.0 */
/* The form of the records in the catalogue topic: Sluice's own messages, or JSON or Avro with a mapping.
 *
 * Thread: the one that owns the region. Blocks: no, unless said.
 */
#ifndef INGEST_ITEM_FORMAT_H
#define INGEST_ITEM_FORMAT_H

#include "ingest/wire/mapped_item.h"

/* All zeros: Sluice's own messages. */
struct item_format {
  bool is_framed;         /* catalogue.framing: confluent */
  bool is_mapped;         /* catalogue.format: json or avro */
  struct mapping mapping; /* if it is */
};

/* Find what a record needs to be decoded: the schemas of its key and its value.
 *
 * Returns ERR_REGISTRY, with the reason, if the schema registry cannot tell for now; ERR_MEMORY. Blocks: on the
 * registry. */
err_t item_format_prepare(const struct item_format *f, const struct topic_record *record);

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
