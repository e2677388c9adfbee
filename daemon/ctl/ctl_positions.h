/* SPDX-License-Identifier: Apache-2.0 */
/* The positions that the daemon has to reach before it shows what was sent. Thread: one. */
#ifndef DAEMON_CTL_CTL_POSITIONS_H
#define DAEMON_CTL_CTL_POSITIONS_H

#include <jansson.h>

#include "base/err.h"
#include "base/item.h"

/* All zeros: nothing is waited for. */
struct ctl_positions {
  struct position *items; /* one for each partition */
  size_t n;
  size_t capacity;
};

void ctl_positions_fini(struct ctl_positions *p);

/* A record was written at that offset. */
err_t ctl_positions_add(struct ctl_positions *p, int32_t partition, int64_t offset);

/* Records that the watermark has not reached; 0: all is visible.
 *
 * watermark  [{"partition": 0, "next": 12}, ...], as /status has it; a partition that is missing there is at 0
 */
uint64_t ctl_positions_behind(const struct ctl_positions *p, const json_t *watermark);

#endif
