/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces that items name and the configuration does not have: counted, and told once each.
 *
 * Producers roll out a new space before or after the daemon's configuration knows it; until it does, such parts wait in
 * the store, or are dropped (catalogue.unknown_spaces).
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CONFIG_UNKNOWN_SPACES_H
#define DAEMON_CONFIG_UNKNOWN_SPACES_H

#include "base/item.h"

/* More names than these are counted under the last one. */
enum { UNKNOWN_SPACES_MAX = 64 };

enum unknown_policy {
  UNKNOWN_KEEP,   /* store the part, do not serve it */
  UNKNOWN_SKIP,   /* drop the part */
  UNKNOWN_REFUSE, /* put the record to the dead letters */
};

struct unknown_space {
  char name[SPACE_NAME_MAX + 1];
  uint64_t n_parts; /* met since the start, those of the loaded store included */
};

struct unknown_spaces {
  struct unknown_space spaces[UNKNOWN_SPACES_MAX];
  size_t n;
};

/* Count a part. The first one of a space is an event. */
void unknown_spaces_count(struct unknown_spaces *u, struct span name, enum unknown_policy policy);

#endif
