/* SPDX-License-Identifier: Apache-2.0 */
/* A record as a consumer has read it from a topic. */
#ifndef INGEST_TOPIC_RECORD_H
#define INGEST_TOPIC_RECORD_H

#include "base/span.h"

/* A record, or a note that a partition was read to its end. Spans are valid until the consumer releases the record. */
struct topic_record {
  bool is_end; /* no record: all records below `offset` were returned. Markers and aborted transactions never are */
  bool has_key;
  struct span key;
  bool has_value; /* false: a tombstone */
  struct span value;
  struct span content_type;
  struct span retried; /* the header of ingest/kafka/retried_header.h */
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms; /* since 1970; -1: the record has none */
};

/* Return a digest of key and value, to recognise the record later. */
uint64_t topic_record_digest(const struct topic_record *record);

#endif
