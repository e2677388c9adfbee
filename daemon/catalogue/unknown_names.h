/* SPDX-License-Identifier: Apache-2.0 */
/* Count what items have that is not configured, parts of spaces and attributes, and log each such name once.
 *
 * A new space may reach the producers before the daemon's configuration. Until it is configured, its parts wait in the
 * store, are dropped or are refused (catalogue.unknown_spaces). The values of an attribute that is not configured are
 * dropped.
 *
 * Thread: catalogue.
 */
#ifndef DAEMON_CATALOGUE_UNKNOWN_NAMES_H
#define DAEMON_CATALOGUE_UNKNOWN_NAMES_H

#include <assert.h>

#include "base/item.h"
#include "daemon/config/config.h"

/* Further names are counted together in the last entry. */
enum { UNKNOWN_NAMES_MAX = 64, UNKNOWN_NAME_BYTES = 65 };

static_assert((int)UNKNOWN_NAME_BYTES > (int)SPACE_NAME_MAX && (int)UNKNOWN_NAME_BYTES > (int)ATTRIBUTE_NAME_MAX,
              "a name and a zero byte");

struct unknown_name {
  char name[UNKNOWN_NAME_BYTES];
  uint64_t n; /* parts or values since the start, including those found while loading the store */
};

struct unknown_names {
  struct unknown_name names[UNKNOWN_NAMES_MAX];
  size_t n;
};

/* Count a part of a space. The first part of a space is logged. */
void unknown_names_count_part(struct unknown_names *u, struct span space, enum config_unknown policy);

/* Count a value of an attribute. The first one of an attribute is logged. */
void unknown_names_count_value(struct unknown_names *u, struct span attribute);

#endif
