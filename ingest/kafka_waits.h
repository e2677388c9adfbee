/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of librdkafka go by the monotonic clock.
 *
 * librdkafka waits for conditions with deadlines of the wall clock. A step of that clock backwards would make each wait
 * longer by as much: an hour, say, in which nothing is read, sent or stopped. So kafka_waits.c has a cnd_timedwait() of
 * its own, which a program's dynamic linker gives to librdkafka in place of the C library's.
 */
#ifndef INGEST_KAFKA_WAITS_H
#define INGEST_KAFKA_WAITS_H

#include <stdbool.h>

/* Whether librdkafka uses it: not when librdkafka was built with conditions of its own. Known some time after the first
 * client was made. Thread: any. */
bool kafka_waits_are_steady(void);

#endif
