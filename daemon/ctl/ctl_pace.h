/* SPDX-License-Identifier: Apache-2.0 */
/* A steady rate: when each of many things is due. Lateness of one does not move the others. Thread: one. */
#ifndef DAEMON_CTL_CTL_PACE_H
#define DAEMON_CTL_CTL_PACE_H

#include <stdint.h>

struct ctl_pace {
  int64_t begin_ns; /* when number 0 is due, by clock_now_ns() */
  double per_s;     /* 0: all are due at once */
};

/* Return when number i is due. */
int64_t ctl_pace_due_ns(const struct ctl_pace *p, uint64_t i);

#endif
