/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on how often one event is logged. Above it, events are only counted, and the count is logged later. */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdatomic.h>

#include "base/err.h"

/* A limit starts as all zeros. */
struct log_limit {
  _Atomic int64_t second;  /* the second of the newest event */
  _Atomic uint64_t n_seen; /* events in that second */
};

/* Lines logged each second. */
enum { LOG_LIMIT_PER_S = 20 };

/* May the event be logged now? The first call in a second first logs how many events were left out before that second,
 * as the event with more=N.
 *
 * Thread: any.
 */
bool log_limit_allows(struct log_limit *l, const char *event);

#endif
