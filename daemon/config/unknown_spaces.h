/* SPDX-License-Identifier: Apache-2.0 */
/* Count the parts of items whose space is not configured, and log each such space once.
 *
 * A new space may reach the producers before the daemon's configuration. Until it is configured, its parts wait in the
 * store, are dropped or are refused (catalogue.unknown_spaces).
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CONFIG_UNKNOWN_SPACES_H
#define DAEMON_CONFIG_UNKNOWN_SPACES_H

#include "base/item.h"

/* Further names are counted together in the last entry. */
enum { UNKNOWN_SPACES_MAX = 64 };

enum unknown_policy {
  UNKNOWN_KEEP,   /* store the part without serving it */
  UNKNOWN_SKIP,   /* drop the part */
  UNKNOWN_REFUSE, /* send the record to the dead letters */
};

struct unknown_space {
  char name[SPACE_NAME_MAX + 1];
  uint64_t n_parts; /* since the start, including those found while loading the store */
};

struct unknown_spaces {
  struct unknown_space spaces[UNKNOWN_SPACES_MAX];
  size_t n;
};

/* Count a part. The first part of a space is logged. */
void unknown_spaces_count(struct unknown_spaces *u, struct span name, enum unknown_policy policy);

#endif
