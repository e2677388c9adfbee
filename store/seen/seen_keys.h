/* SPDX-License-Identifier: Apache-2.0 */
/* What a read of a user's log returns. */
#ifndef STORE_SEEN_KEYS_H
#define STORE_SEEN_KEYS_H

#include <stdbool.h>

#include "base/span.h"

struct seen_keys {
  struct span *keys; /* [n] of items that are not expired, oldest first; a key may be there twice */
  size_t n;
  int64_t oldest_unix_ms; /* when the first of them was seen: it expires next; INT64_MAX: there are none */
};

#endif
