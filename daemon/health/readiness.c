/* SPDX-License-Identifier: Apache-2.0 */
/* The event that says when the readiness changes. */
#include "daemon/health/readiness.h"

#include "base/log.h"

void readiness_set(struct readiness *r, const char *reason)
{
  if (reason != readiness_reason(r))
    log_info("readiness", "ready=%s%s%s", reason ? "no" : "yes", reason ? " reason=" : "",
             reason ? log_quote(span_of_str(reason)) : "");
  atomic_store(&r->reason, reason);
}
