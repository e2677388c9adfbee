/* SPDX-License-Identifier: Apache-2.0 */
/* Closing Kafka clients within a time limit. librdkafka waits for brokers when it closes a client, and may wait for
 * ever after a topic was deleted. So a thread of its own closes each client. A client that is not closed in time is
 * left behind on purpose, and an event names it. It keeps memory and threads, but no data.
 *
 * Thread: any.
 */
#ifndef INGEST_KAFKA_CLOSING_H
#define INGEST_KAFKA_CLOSING_H

#include <stddef.h>
#include <stdint.h>

/* Run close(object) in a thread of its own, and wait for it for at most three seconds. After a call of
 * kafka_closing_together() it does not wait, and a wait under way ends.
 *
 * name    name of the client in the event; a string literal
 * object  owned by `close` from now on
 */
void kafka_closing_run(const char *name, void (*close)(void *object), void *object);

/* Run close(object) in a thread of its own, without waiting. For a caller that continues with another client. If it is
 * not closed in three seconds, the next closing logs that. */
void kafka_closing_begin(const char *name, void (*close)(void *object), void *object);

/* From now on, close clients side by side: kafka_closing_run() no longer waits. Call it when the process is about to
 * end.
 */
void kafka_closing_together(void);

/* Wait for all clients to be closed, until `until_ns` (clock_now_ns()). Returns how many are not closed. */
size_t kafka_closing_wait(int64_t until_ns);

/* Log each client that is not closed and was not logged before. Returns how many clients are not closed. If there are
 * any, the process must not run exit handlers, because their threads still use the libraries. */
size_t kafka_closing_log_left(void);

#endif
