/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on log lines of one kind: so many a second are told one by one, the rest as a sum. */
#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdatomic.h>

#include "base/err.h"

/* A limit of all zeros is a valid one. */
struct log_limit {
  _Atomic int64_t second;  /* of the newest line */
  _Atomic uint64_t n_seen; /* lines of that second */
};

enum { LOG_LIMIT_PER_S = 20 };

/* Whether one more line may be written now. In a new second the sum of those that were not is logged first, as the
 * event with more=N.
 *
 * Thread: any.
 */
bool log_limit_allows(struct log_limit *l, const char *event);

#endif
