/* SPDX-License-Identifier: Apache-2.0 */
/* Computing and comparing seals. */
#include "store/lmdb/seal.h"

#include <assert.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t checksum(const uint8_t *value, size_t n)
{
  return XXH3_64bits(value + SEAL_BYTES, n - SEAL_BYTES);
}

void seal_put(uint8_t *value, size_t n)
{
  assert(n >= SEAL_BYTES);
  uint64_t sum = checksum(value, n);

  memcpy(value, &sum, sizeof sum);
}

bool seal_is_whole(struct span value)
{
  uint64_t sum;

  if (value.n < SEAL_BYTES)
    return false;
  memcpy(&sum, value.p, sizeof sum);
  return sum == checksum(value.p, value.n);
}
