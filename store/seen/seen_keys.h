/* SPDX-License-Identifier: Apache-2.0 */
/* What a read of a user's log returns. */
#ifndef STORE_SEEN_KEYS_H
#define STORE_SEEN_KEYS_H

#include <stdbool.h>

#include "base/span.h"

/* All of a log. See `newest_chunk`. */
enum { SEEN_WHOLE_LOG = 0 };

struct seen_keys {
  struct span *keys; /* [n] of items that are not expired, oldest first; a key may be there twice */
  size_t n;
  int64_t oldest_unix_ms; /* when the first of them was seen: it expires next; INT64_MAX: there are none */
  uint64_t newest_chunk;  /* another read can go on there: it returns what has changed, and some keys again.
                             SEEN_WHOLE_LOG: the user has seen nothing */
  bool is_whole;          /* all of the log. Always, if that was asked for, and if the log does not have the chunk from
                             which on it was to be read: it was forgotten or compacted, or the chunk has expired */
};

#endif
