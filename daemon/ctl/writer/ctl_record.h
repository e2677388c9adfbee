/* SPDX-License-Identifier: Apache-2.0 */
/* What is written to the catalogue topic, made of a line of a catalogue file or of a key and a value. Thread: one. */
#ifndef DAEMON_CTL_CTL_RECORD_H
#define DAEMON_CTL_CTL_RECORD_H

#include "base/item.h"
#include "base/region.h"

/* The content of a Kafka record. */
struct ctl_record {
  struct span key;
  bool is_delete;
  struct span value; /* an encoded item, unless it is a delete */
};

/* Read a line: {"key": "gimp", "value": {"parts": {...}}}. A value of null deletes. A member "record", which
 * `sluicectl get` writes, is ignored.
 *
 * line  JSON, with or without a line break at its end
 * out   key and value are in the region
 *
 * Returns ERR_OK; ERR_WIRE or ERR_ITEM with the reason.
 */
err_t ctl_record_read(struct span line, struct region *r, struct ctl_record *out);

/* Make a record from a key and a JSON value that is not null. Errors as above. */
err_t ctl_record_make(struct span key, struct span json_value, struct region *r, struct ctl_record *out);

/* Verify the length of a key. Returns ERR_ITEM. */
err_t ctl_record_verify_key(struct span key);

#endif
