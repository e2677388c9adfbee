/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, searched linearly: more than a few dozen unknown names are a mistake of a producer. */
#include "daemon/catalogue/unknown_names.h"

#include <stdio.h>

#include "base/log.h"

static struct unknown_name *find(struct unknown_names *u, struct span name)
{
  for (size_t i = 0; i < u->n; i++) {
    if (span_equal(name, span_of_str(u->names[i].name)))
      return &u->names[i];
  }
  return NULL;
}

/* Count a name.
 *
 * Returns what to log it as: "(others)" for the last entry; n = 0: it was logged before
 */
static struct span count(struct unknown_names *u, struct span name)
{
  struct unknown_name *known = find(u, name);
  bool is_new = !known && u->n < UNKNOWN_NAMES_MAX;

  if (is_new) {
    if (u->n == UNKNOWN_NAMES_MAX - 1)
      name = span_of_str("(others)");
    known = &u->names[u->n++];
    snprintf(known->name, sizeof known->name, "%.*s", (int)name.n, (const char *)name.p);
  }
  if (!known)
    known = &u->names[UNKNOWN_NAMES_MAX - 1];
  known->n++;
  return is_new ? name : (struct span){ 0 };
}

void unknown_names_count_part(struct unknown_names *u, struct span space, enum config_unknown policy)
{
  struct span shown = count(u, space);

  if (shown.n)
    log_warn("unknown_space", "space=%s note=\"items have parts in it, but it is not configured: they are %s\"",
             log_quote(shown), policy == CONFIG_UNKNOWN_KEEP ? "stored, and served once it is configured" : "dropped");
}

void unknown_names_count_value(struct unknown_names *u, struct span attribute)
{
  struct span shown = count(u, attribute);

  if (shown.n)
    log_warn("unknown_attribute",
             "attribute=%s note=\"items have it, but it is not configured: its values are dropped\"", log_quote(shown));
}
