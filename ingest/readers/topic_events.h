/* SPDX-License-Identifier: Apache-2.0 */
/* What a poll of a topic found besides records, and the errors that this means for most readers. */
#ifndef INGEST_TOPIC_EVENTS_H
#define INGEST_TOPIC_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct topic_events {
  bool is_out_of_range; /* the next offset is outside the log of out_of_range_partition */
  int32_t out_of_range_partition;
  bool is_damaged; /* the broker's log cannot be read at damaged_offset; -1: the offset is unknown */
  int32_t damaged_partition;
  int64_t damaged_offset;
  bool is_denied; /* the broker does not allow us to read the topic */
  bool is_away;   /* the topic or all brokers are gone; when they are back, it may be another log */
};

/* Verify that the topic is there, and that we may read it.
 *
 * Returns ERR_KAFKA_DENIED; ERR_KAFKA_RETRY when it is away. */
err_t topic_events_verify_access(const struct topic_events *events, const char *topic);

/* Verify that no event came, for a caller that can go on after none of them.
 *
 * Returns errors as topic_events_verify_access() does; ERR_DISCONTINUITY when the next offset is outside its partition;
 * ERR_KAFKA_DAMAGED. */
err_t topic_events_verify(const struct topic_events *events, const char *topic);

#endif
