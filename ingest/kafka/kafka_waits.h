/* SPDX-License-Identifier: Apache-2.0 */
/* Making librdkafka wait by the monotonic clock.
 *
 * librdkafka waits on condition variables with deadlines of the wall clock. If that clock is set back by an hour, a
 * wait lasts an hour longer, and nothing is read, sent or stopped during that time. So kafka_waits.c defines its own
 * cnd_timedwait(). The dynamic linker gives it to librdkafka instead of the C library's.
 */
#ifndef INGEST_KAFKA_WAITS_H
#define INGEST_KAFKA_WAITS_H

#include <stdbool.h>

/* Does librdkafka use our cnd_timedwait()? It does not if it was built with its own condition variables. The result is
 * final only some time after the first client was made. Thread: any. */
bool kafka_waits_are_steady(void);

#endif
