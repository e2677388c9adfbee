/* SPDX-License-Identifier: Apache-2.0 */
/* Closing Kafka clients within a limit. Closing a librdkafka client waits for brokers, and after its topic was deleted
 * it may wait for ever. So each is closed by a thread of its own. What does not end in time is left behind on purpose,
 * with an event that names it: it holds memory and threads, but no data.
 *
 * Thread: any.
 */
#ifndef INGEST_KAFKA_CLOSING_H
#define INGEST_KAFKA_CLOSING_H

#include <stddef.h>
#include <stdint.h>

/* Run close(object) in a thread of its own, and wait for it, for three seconds at most. Does not wait after
 * kafka_closing_together(), nor any longer once that is called.
 *
 * name    for the event; outlives the process
 * object  belongs to `close` from now on
 */
void kafka_closing_run(const char *name, void (*close)(void *object), void *object);

/* The same, and do not wait: for a caller that goes on with another client. */
void kafka_closing_begin(const char *name, void (*close)(void *object), void *object);

/* The process is about to end: from now on kafka_closing_run() begins a closing and does not wait for it. */
void kafka_closing_together(void);

/* Wait for all that were begun, until `until_ns` (clock_now_ns()). Returns how many have not ended. */
size_t kafka_closing_wait(int64_t until_ns);

/* Tell which have not ended. Returns how many there are, also those of which kafka_closing_run() told: then the process
 * must not run exit handlers, because their threads still use the libraries. */
size_t kafka_closing_tell_left(void);

#endif
