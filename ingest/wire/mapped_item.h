/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding records that have their own form, as JSON, Avro or Protobuf, as a mapping says (docs/formats.md).
 *
 * Thread: the one that owns the region. Blocks: no.
 */
#ifndef INGEST_MAPPED_ITEM_H
#define INGEST_MAPPED_ITEM_H

#include "base/item.h"
#include "base/region.h"
#include "ingest/wire/mapping.h"
#include "ingest/kafka/topic_record.h"

/* Decode a record into the key, the parts and the attributes of `out`, or into a delete. A record is the whole row: a
 * mapped field that is missing or null is removed from the item (is_whole), and a row without any of them deletes it.
 * An update of Debezium may lack values that have not changed: the item keeps them.
 *
 * is_framed  value and key are framed
 * out        the key may be a part of the record's key; everything else lives in the region
 *
 * Returns ERR_OK; ERR_WIRE when the value is not in such a form; ERR_TOO_LARGE when it has too many bytes to be read;
 * ERR_ITEM when a field is wrong, which the error names, or when decoding takes too much memory. On error the region
 * may have grown.
 */
err_t mapped_item_decode(const struct mapping *m, bool is_framed, const struct topic_record *record, struct region *r,
                         struct item_change *out);

#endif
