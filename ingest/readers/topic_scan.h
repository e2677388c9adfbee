/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a topic for people: the newest records, those since a time, one record, or what is written from now on. It
 * joins no group, commits nothing, and ends where the topic ended when it was opened, unless it follows the topic.
 *
 * Thread: one.
 */
#ifndef INGEST_TOPIC_SCAN_H
#define INGEST_TOPIC_SCAN_H

#include "base/err.h"
#include "base/span.h"
#include "ingest/kafka/kafka_properties.h"

struct topic_scan;

enum { TOPIC_SCAN_FROM_FIRST = -1 };

/* Which records are read. */
struct topic_scan_range {
  int64_t newest;        /* of each partition, at most so many of those that are there; or TOPIC_SCAN_FROM_FIRST */
  int64_t since_unix_ms; /* only records of this time or later; 0: all */
  bool has_place;        /* only the record at this place; the fields above are not used */
  int32_t partition;
  int64_t offset;
  bool follows; /* go on after the end */
};

/* A record. Its spans are valid until the next call. */
struct topic_scan_record {
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms;
  bool has_key;
  struct span key;
  bool has_value;
  struct span value;
  const void *message; /* private */
};

/* What a call of topic_scan_next() found. */
enum topic_scan_found { TOPIC_SCAN_NOTHING, TOPIC_SCAN_RECORD, TOPIC_SCAN_END };

/* Open a scan. A scan of newest = 0 that follows reads every record that is written after this call returns.
 *
 * Returns ERR_OK; ERR_KAFKA_RETRY when the topic or the broker is not there within timeout_ms; ERR_KAFKA_TOPIC when
 * the topic has no such partition.
 */
err_t topic_scan_open(const struct kafka_layers *layers, const char *topic, const struct topic_scan_range *range,
                      int timeout_ms, struct topic_scan **out);
void topic_scan_close(struct topic_scan **s);

/* Wait up to timeout_ms for the next record. Records of a partition come in order.
 *
 * out    set with TOPIC_SCAN_RECORD
 * found  TOPIC_SCAN_NOTHING: none came in time; TOPIC_SCAN_END: there are no more
 *
 * Returns ERR_KAFKA for a failure that waiting does not cure.
 */
err_t topic_scan_next(struct topic_scan *s, int timeout_ms, struct topic_scan_record *out,
                      enum topic_scan_found *found);

/* Return the number of partitions, and where one of them ended when the scan was opened. */
int topic_scan_n_partitions(const struct topic_scan *s);
int64_t topic_scan_end(const struct topic_scan *s, int32_t partition);

/* Return the value of a record's header, or an empty span if it has none. */
struct span topic_scan_header(const struct topic_scan_record *record, const char *name);

#endif
