/* SPDX-License-Identifier: Apache-2.0 */
/* Why the daemon is not ready. Its service decides that; /readyz, /status, /metrics and the service manager all show
 * it. */
#ifndef DAEMON_HEALTH_READINESS_H
#define DAEMON_HEALTH_READINESS_H

#include <stdatomic.h>

struct readiness {
  _Atomic(const char *) reason;
};

/* Return why the daemon is not ready, as static text that can follow "not ready: "; NULL: it is ready. Thread: any. */
static inline const char *readiness_reason(const struct readiness *r)
{
  return atomic_load(&r->reason);
}

/* Set the reason, and log a change. */
void readiness_set(struct readiness *r, const char *reason);

/* Set the reason while the daemon starts or stops, of which the log has other events. */
static inline void readiness_set_silently(struct readiness *r, const char *reason)
{
  atomic_store(&r->reason, reason);
}

#endif
