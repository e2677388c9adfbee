/* SPDX-License-Identifier: Apache-2.0 */
/* Completing a message that has been read: what is absent gets its default, and messages that stand for something else
 * become that. Thread: any. Blocks: no. */
#ifndef INGEST_PROTOBUF_COMPLETE_H
#define INGEST_PROTOBUF_COMPLETE_H

#include <jansson.h>

#include "ingest/protobuf/protobuf_budget.h"
#include "ingest/protobuf/protobuf_schema.h"

/* Complete a message and all in it.
 *
 * budget  counts its values; shared with the reader
 * object  what is written in it; changed in place, also on error
 *
 * Returns ERR_WIRE with the place of a time that is none, or if there are too many values; ERR_MEMORY. */
err_t protobuf_complete(const struct protobuf_type *type, struct protobuf_budget *budget, json_t *object);

#endif
