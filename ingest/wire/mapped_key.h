/* SPDX-License-Identifier: Apache-2.0 */
/* The key of an item, from the key of a mapped record. Thread: the one that owns the region. Blocks: no. */
#ifndef INGEST_MAPPED_KEY_H
#define INGEST_MAPPED_KEY_H

#include "base/region.h"
#include "ingest/wire/mapping.h"

/* Read a record's key. It is text, taken as it is; JSON text in quotes; or a JSON object: then the member at the
 * mapping's path is the key, or its only member. A schema beside the payload and, if the topic is framed, framing are
 * taken off. If the mapping has schemas, a framed key is Avro, and any other is text.
 * With Protobuf, a key must be plain text: nothing says which message a framed key is.
 *
 * out  lives in the region, or is a part of `key`
 *
 * Returns ERR_ITEM with what is wrong.
 */
err_t mapped_key_read(const struct mapping *m, bool is_framed, struct span key, struct region *r, struct span *out);

/* Return the payload of a JSON value that has its schema beside it; any other value as it is. */
struct json_t *mapped_key_payload(struct json_t *json);

#endif
