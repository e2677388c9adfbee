/* SPDX-License-Identifier: Apache-2.0 */
/* What users have seen: ingest decodes it, the store keeps it. */
#ifndef BASE_SEEN_CHANGE_H
#define BASE_SEEN_CHANGE_H

#include <stdbool.h>

#include "base/span.h"

/* Bytes of a user, and items of one record. */
enum { SEEN_USER_MAX = 256, SEEN_ITEMS_MAX = 10000 };

/* A record of the seen topic: a user has seen items, or is forgotten. */
struct seen_change {
  struct span user; /* 1..SEEN_USER_MAX bytes */
  bool is_forgotten;
  const struct span *items; /* [n_items] keys, in the order in which they were seen */
  size_t n_items;
  int64_t time_unix_ms; /* when they were seen */
};

#endif
