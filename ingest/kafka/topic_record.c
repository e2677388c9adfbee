/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of a record. It is kept in the store: it must never change. */
#include "ingest/kafka/topic_record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t topic_record_digest(const struct topic_record *record)
{
  uint64_t key = XXH3_64bits(record->key.p, record->key.n);

  return XXH3_64bits_withSeed(record->value.p, record->value.n, key + record->has_value);
}
