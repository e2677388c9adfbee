/* SPDX-License-Identifier: Apache-2.0 */
/* The times of a steady rate. */
#include "daemon/ctl/ctl_pace.h"

#include "base/clock.h"

int64_t ctl_pace_due_ns(const struct ctl_pace *p, uint64_t i)
{
  return p->per_s > 0 ? p->begin_ns + (int64_t)((double)i / p->per_s * (double)CLOCK_NS_PER_S) : p->begin_ns;
}
