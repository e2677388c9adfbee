/* SPDX-License-Identifier: Apache-2.0 */
/* The framing of Confluent's serializers: a zero byte, the schema's id in 4 bytes, then the message. In front of
 * protobuf there is also the list of indexes of the message within its schema. Sluice knows what the messages are, so
 * it needs the id of Avro's values alone (ingest/avro/avro_schemas.h).
 *
 * Thread: any. Blocks: no. Allocates: no.
 */
#ifndef INGEST_FRAMING_H
#define INGEST_FRAMING_H

#include "base/err.h"
#include "base/span.h"

/* Does the value begin as framed values do? */
bool framing_is_there(struct span value);

/* Take the zero byte and the schema's id off a value. Returns ERR_WIRE with what is there instead. */
err_t framing_take(struct span *value, uint32_t *id);
err_t framing_strip(struct span *value);

/* Take the list of indexes off: signed varints, first their count; a single zero stands for [0]. Returns ERR_WIRE. */
err_t framing_strip_indexes(struct span *value);

#endif
