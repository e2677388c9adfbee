/* SPDX-License-Identifier: Apache-2.0 */
/* Values of records as JSON for people. Thread: any. */
#ifndef DAEMON_CTL_CTL_PAYLOAD_H
#define DAEMON_CTL_CTL_PAYLOAD_H

#include <jansson.h>

#include "ingest/wire/wire.h"

/* Return a value as a message if it is one, else as text, else as {"base64": "..."}. The caller owns it; NULL: no
 * memory.
 *
 * content_type  of the record; empty: none
 */
json_t *ctl_payload_json(struct span value, struct span content_type, enum wire_kind kind);

#endif
