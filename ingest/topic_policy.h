/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker does with old records of a topic, as far as it tells. Thread: any. Blocks: up to timeout_ms. */
#ifndef INGEST_TOPIC_POLICY_H
#define INGEST_TOPIC_POLICY_H

#include <stdbool.h>
#include <stdint.h>

struct topic_policy {
  bool is_known; /* false: the broker does not tell (the embedded one, or no right to ask) */
  bool is_compacted;
  int64_t delete_retention_ms; /* how long a tombstone is kept once compaction has met it */
};

#endif
