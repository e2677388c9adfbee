/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a catalogue file: {"key": "gimp", "value": {"parts": {...}}}; a value of null deletes. Thread: one. */
#ifndef DAEMON_CTL_CTL_ITEM_LINE_H
#define DAEMON_CTL_CTL_ITEM_LINE_H

#include "base/item.h"
#include "base/region.h"

/* What becomes a Kafka record. */
struct ctl_record {
  struct span key;
  bool is_delete;
  struct span value; /* an encoded item, where it is no delete */
};

/* Read a line.
 *
 * line  JSON; one line break at its end does not matter
 * out   key and value lie in the region
 *
 * Returns ERR_OK; ERR_WIRE or ERR_ITEM with the reason.
 */
err_t ctl_item_line_read(struct span line, struct region *r, struct ctl_record *out);

/* The same from a key and a JSON value, which is not null. */
err_t ctl_item_make(struct span key, struct span json_value, struct region *r, struct ctl_record *out);

/* Returns ERR_ITEM for a key that no item can have. */
err_t ctl_item_verify_key(struct span key);

/* Whether there is nothing but white space. */
bool ctl_item_line_is_blank(struct span line);

#endif
