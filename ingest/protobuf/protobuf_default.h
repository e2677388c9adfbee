/* SPDX-License-Identifier: Apache-2.0 */
/* The default of a field, as the text that a descriptor has. Thread: any. Blocks: no. */
#ifndef INGEST_PROTOBUF_DEFAULT_H
#define INGEST_PROTOBUF_DEFAULT_H

#include "ingest/protobuf/protobuf_schema.h"

/* Read the default of a field into it. Bytes are copied into the region. Returns ERR_CONFIG if the text is no value of
 * the field's kind; ERR_MEMORY. */
err_t protobuf_default_read(const char *text, struct region *r, struct protobuf_field *field);

#endif
