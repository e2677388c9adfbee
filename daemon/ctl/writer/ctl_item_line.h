/* SPDX-License-Identifier: Apache-2.0 */
/* Read a line of a catalogue file: {"key": "gimp", "value": {"parts": {...}}}. A value of null deletes. A member
 * "record", which `sluicectl get` writes, is ignored. Thread: one. */
#ifndef DAEMON_CTL_CTL_ITEM_LINE_H
#define DAEMON_CTL_CTL_ITEM_LINE_H

#include "base/item.h"
#include "base/region.h"

/* The content of a Kafka record for the catalogue topic. */
struct ctl_record {
  struct span key;
  bool is_delete;
  struct span value; /* an encoded item, unless it is a delete */
};

/* Read a line.
 *
 * line  JSON, with or without a line break at its end
 * out   key and value are in the region
 *
 * Returns ERR_OK; ERR_WIRE or ERR_ITEM with the reason.
 */
err_t ctl_item_line_read(struct span line, struct region *r, struct ctl_record *out);

/* Make a record from a key and a JSON value that is not null. Errors as above. */
err_t ctl_item_make(struct span key, struct span json_value, struct region *r, struct ctl_record *out);

/* Verify the length of a key. Returns ERR_ITEM. */
err_t ctl_item_verify_key(struct span key);

/* Is the line empty or only white space? */
bool ctl_item_line_is_blank(struct span line);

#endif
