/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the events of each second. */
#include "base/log_limit.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

bool log_limit_allows(struct log_limit *l, const char *event)
{
  int64_t second = clock_now_ns() / CLOCK_NS_PER_S;

  if (atomic_exchange(&l->second, second) != second) {
    uint64_t n_events = atomic_exchange(&l->n_seen, 0);
    if (n_events > LOG_LIMIT_PER_S)
      log_warn(event, "more=%" PRIu64 " note=\"not logged one by one\"", n_events - LOG_LIMIT_PER_S);
  }
  return atomic_fetch_add(&l->n_seen, 1) < LOG_LIMIT_PER_S;
}
