/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the records of the control topic: JSON that people read.
 *
 *   key       value
 *   books@2   {"add": {"path": "/srv/models/2.safetensors", "sha256": "9f86..."}}
 *   books@2   {"add": {"path": "/srv/models/2.safetensors", "sha256": "9f86...", "derive": 1}}
 *   books@2   {"add": {"topic": true, "bytes": 1048576, "sha256": "9f86..."}}
 *   books@2   {"add": {"path": "/srv/models/2.safetensors", "sha256": "9f86...", "shadow": 0.05}}
 *   books@2   {"retire": true}
 *   books@2   {"retire": true, "derive": 1}
 *   books     {"switches": [{"to": 2, "at_ms": 1700000000000}]}
 *
 * A value may also have "time", for people. No other members are allowed: what is misspelt must not be ignored. A null
 * value forgets the key.
 *
 * A generation with "derive" has no parts of its own: it uses those of an earlier generation. The record of its
 * retirement says so too, because older records of the catalogue name it.
 *
 * A record is judged by itself alone. So it does not matter which of the records before it compaction has removed.
 *
 * Thread: any.
 */
#ifndef INGEST_MODEL_RECORD_H
#define INGEST_MODEL_RECORD_H

#include "base/model_change.h"
#include "base/region.h"

/* Decode a record.
 *
 * has_value  false: a tombstone
 * region     the change's switches and texts live here; the name of the space is borrowed from the key
 *
 * Returns ERR_WIRE if the value is not JSON; ERR_ITEM with the member at fault, and what was expected; ERR_MEMORY.
 */
err_t model_record_decode(struct span key, bool has_value, struct span value, struct region *region,
                          struct model_change *out);

/* Encode the value of a record, for a change that is not MODEL_FORGET. The text lives in the region. */
err_t model_record_encode(const struct model_change *change, struct region *region, struct span *out);

#endif
