/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that events of a topic mean. */
#include "ingest/readers/topic_events.h"

#include <inttypes.h>

err_t topic_events_verify_access(const struct topic_events *events, const char *topic)
{
  if (events->is_denied)
    FAIL(ERR_KAFKA_DENIED, "this user may describe topic %s, but not read it: allow it to read the topic", topic);
  if (events->is_away)
    FAIL(ERR_KAFKA_RETRY, "topic %s or its brokers are away", topic);
  return ERR_OK;
}

err_t topic_events_verify(const struct topic_events *events, const char *topic)
{
  TRY(topic_events_verify_access(events, topic));
  if (events->is_out_of_range)
    FAIL(ERR_DISCONTINUITY, "the next offset to read is outside partition %" PRId32 " of topic %s",
         events->out_of_range_partition, topic);
  if (events->is_damaged)
    FAIL(ERR_KAFKA_DAMAGED, "partition %" PRId32 " of topic %s cannot be read at offset %" PRId64,
         events->damaged_partition, topic, events->damaged_offset);
  return ERR_OK;
}
