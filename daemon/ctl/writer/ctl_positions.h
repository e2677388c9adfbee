/* SPDX-License-Identifier: Apache-2.0 */
/* The positions that the daemon must reach before queries see every record that was sent. Thread: one. */
#ifndef DAEMON_CTL_CTL_POSITIONS_H
#define DAEMON_CTL_CTL_POSITIONS_H

#include <jansson.h>

#include "base/err.h"
#include "base/item.h"

/* All zeros: nothing was sent. */
struct ctl_positions {
  struct position *items; /* one for each partition */
  size_t n;
  size_t capacity;
};

void ctl_positions_fini(struct ctl_positions *p);

/* Note that a record was written at this offset. Returns ERR_MEMORY. */
err_t ctl_positions_add(struct ctl_positions *p, int32_t partition, int64_t offset);

/* Return the number of records that the watermark has not passed yet; 0 if all are visible.
 *
 * watermark  as in /status: [{"partition": 0, "next": 12}, ...]; a missing partition is at 0
 */
uint64_t ctl_positions_behind(const struct ctl_positions *p, const json_t *watermark);

#endif
