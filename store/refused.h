/* SPDX-License-Identifier: Apache-2.0 */
/* Keys whose changes a full catalogue has refused, until they are tried again: later puts of them must not overtake.
 *
 * Hashes are kept. A key that meets another one's hash is refused without need, until the next try; the same
 * holds for every key once there are more than REFUSED_KEYS_MAX.
 */
#ifndef STORE_REFUSED_H
#define STORE_REFUSED_H

#include "base/err.h"
#include "base/span.h"

enum { REFUSED_KEYS_MAX = 1 << 20 };

/* All zeros is an empty set. */
struct refused_keys {
  uint64_t *hashes; /* [capacity], a power of 2; 0: free */
  size_t n;
  size_t capacity;
};

void refused_keys_fini(struct refused_keys *r);
void refused_keys_clear(struct refused_keys *r);

/* Was a change of this key in this partition refused? May say so of one that was not. */
bool refused_keys_check(const struct refused_keys *r, struct span key, int32_t partition);
err_t refused_keys_add(struct refused_keys *r, struct span key, int32_t partition);

#endif
