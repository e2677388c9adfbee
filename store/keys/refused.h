/* SPDX-License-Identifier: Apache-2.0 */
/* The set of keys whose puts a full catalogue has refused. Later puts of these keys are refused too, so that
 * they do not overtake. The caller clears the set for a retry.
 *
 * Only hashes are kept. A key with the same hash as a refused one is refused needlessly, until the next retry. Once the
 * set has more than REFUSED_KEYS_MAX keys, every put is refused.
 */
#ifndef STORE_REFUSED_H
#define STORE_REFUSED_H

#include "base/err.h"
#include "base/span.h"

enum { REFUSED_KEYS_MAX = 1 << 20 };

/* All zeros are an empty set. */
struct refused_keys {
  uint64_t *hashes; /* [capacity]; 0: free. The capacity is a power of 2 */
  size_t n;
  size_t capacity;
};

void refused_keys_fini(struct refused_keys *r);
void refused_keys_clear(struct refused_keys *r);

/* Was a put of this key in this partition refused? May be true for a key that was not refused. */
bool refused_keys_has(const struct refused_keys *r, struct span key, int32_t partition);

err_t refused_keys_add(struct refused_keys *r, struct span key, int32_t partition);

#endif
