/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and other bytes as JSON: text, or {"base64": "..."} if they are not UTF-8. Thread: any. */
#ifndef INGEST_JSON_BYTES_H
#define INGEST_JSON_BYTES_H

#include <jansson.h>

#include "base/span.h"

/* Return the value of bytes, which the caller owns; NULL: no memory. */
json_t *json_bytes_make(struct span bytes);

#endif
