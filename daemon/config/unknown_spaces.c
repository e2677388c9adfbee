/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, searched linearly: more than a few dozen unknown names are a mistake of a producer. */
#include "daemon/config/unknown_spaces.h"

#include <stdio.h>

#include "base/log.h"

static struct unknown_space *find(struct unknown_spaces *u, struct span name)
{
  for (size_t i = 0; i < u->n; i++) {
    if (span_equal(name, span_of_str(u->spaces[i].name)))
      return &u->spaces[i];
  }
  return NULL;
}

static struct unknown_space *add(struct unknown_spaces *u, struct span name, enum unknown_policy policy)
{
  bool is_last = u->n == UNKNOWN_SPACES_MAX - 1;
  struct unknown_space *space = &u->spaces[u->n++];

  if (is_last)
    name = span_of_str("(others)");
  snprintf(space->name, sizeof space->name, "%.*s", (int)name.n, (const char *)name.p);
  log_warn("unknown_space", "space=%s note=\"items have parts in it, but it is not configured: they are %s\"",
           log_quote(name), policy == UNKNOWN_KEEP ? "stored, and served once it is configured" : "dropped");
  return space;
}

void unknown_spaces_count(struct unknown_spaces *u, struct span name, enum unknown_policy policy)
{
  struct unknown_space *space = find(u, name);

  if (!space && u->n < UNKNOWN_SPACES_MAX)
    space = add(u, name, policy);
  if (!space)
    space = &u->spaces[UNKNOWN_SPACES_MAX - 1];
  space->n_parts++;
}
