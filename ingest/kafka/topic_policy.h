/* SPDX-License-Identifier: Apache-2.0 */
/* A topic's policy: how the broker treats its old records. */
#ifndef INGEST_TOPIC_POLICY_H
#define INGEST_TOPIC_POLICY_H

#include <stdbool.h>
#include <stdint.h>

struct topic_policy {
  bool is_known; /* false: the broker did not say. The embedded one never does */
  bool is_compacted;
  bool deletes;                /* old records are deleted, compacted or not */
  int64_t delete_retention_ms; /* how long compaction keeps a tombstone */
  int64_t retention_ms;        /* if `deletes`: how long a record is kept; -1: for ever, unless there are too many */
};

#endif
