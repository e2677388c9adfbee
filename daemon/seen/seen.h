/* SPDX-License-Identifier: Apache-2.0 */
/* The seen thread: it reads the seen topic into the seen store. Search workers read there what a user has seen.
 *
 * If the topic does not continue the store, what users have seen is kept, and the topic is read from its first record.
 */
#ifndef DAEMON_SEEN_SEEN_H
#define DAEMON_SEEN_SEEN_H

#include "base/region.h"
#include "daemon/config/config.h"
#include "daemon/counters/counters.h"
#include "daemon/delivery/delivery.h"
#include "daemon/health/alarm.h"
#include "daemon/seen/seen_progress.h"
#include "daemon/setup/kafka_setup.h"
#include "store/seen/seen_store.h"

struct seen;

struct seen_context {
  const struct config *config;
  const struct kafka_setup *kafka;
  struct delivery *delivery;
  struct counters *counters;
  struct alarm *alarm;
};

/* Open the seen store, below store.path, and start the thread. What the context points to must outlive it. */
err_t seen_open(const struct seen_context *context, struct seen **out);

/* Ask the thread to stop after its current batch. Does not wait. Thread: any. */
void seen_ask_to_stop(struct seen *s);

/* Stop the thread after its current batch, and wait for it. What users have seen stays readable. */
void seen_stop(struct seen *s);

/* Stop and close. The delivery must be closed before: it sets flags in dead letters that are freed here. */
void seen_close(struct seen **s);

/* Read the keys of the items that a user has seen, or what has changed, as seen_store_read() does. Thread: any. */
err_t seen_read(struct seen *s, struct span user, uint64_t first_chunk, struct region *region, struct seen_keys *out);

/* A number that rises with each change of what the user has seen, before any position tells of the change. If it is
 * the same as before a seen_read(), that is still what the user has seen, except for items that have expired since.
 * Thread: any. */
uint64_t seen_stamp(const struct seen *s, struct span user);

/* Has an item that was seen at this time expired? Thread: any. */
bool seen_is_expired(const struct seen *s, int64_t time_unix_ms);

/* Return how far the topic was read. Thread: any. */
struct seen_progress *seen_progress_of(struct seen *s);

/* Return the size of the store. Thread: any. */
void seen_stats(const struct seen *s, struct seen_store_stats *out);

#endif
