/* SPDX-License-Identifier: Apache-2.0 */
/* What each field of a topic's rows is for: the key, the flag of deleted items, parts of spaces, an attribute, or
 * nothing. Private to the files of ctl_mapping.h. Thread: one. */
#ifndef DAEMON_CTL_MAP_CTL_MAPPING_PLAN_H
#define DAEMON_CTL_MAP_CTL_MAPPING_PLAN_H

#include <string.h>

#include "daemon/ctl/map/ctl_mapping.h"

enum ctl_mapping_use {
  CTL_MAPPING_NOTHING,
  CTL_MAPPING_OBJECT, /* its members are fields */
  CTL_MAPPING_KEY,
  CTL_MAPPING_DELETED,
  CTL_MAPPING_PART,
  CTL_MAPPING_ATTRIBUTE,
};

struct ctl_mapping_choice {
  enum ctl_mapping_use use;
  enum attribute_type type;          /* CTL_MAPPING_ATTRIBUTE */
  char name[ATTRIBUTE_NAME_MAX + 1]; /* of the attribute */
  const char *why_not;               /* CTL_MAPPING_NOTHING */
};

struct ctl_mapping_plan {
  const struct mapping_census *census;
  const struct ctl_mapping_space *spaces;
  size_t n_spaces;
  struct ctl_mapping_choice *choices; /* [census->n_fields] */
  size_t *parts;                      /* [n_spaces] the field of each space; census->n_fields: none */
  size_t n_attributes;
};

/* Make a plan, which uses the census and the spaces. Returns ERR_MEMORY; ctl_mapping_plan_fini() accepts `*out` even
 * then. */
err_t ctl_mapping_plan_make(const struct mapping_census *census, const struct ctl_mapping_space *spaces,
                            size_t n_spaces, struct ctl_mapping_plan *out);
void ctl_mapping_plan_fini(struct ctl_mapping_plan *p);

/* Does a space need codes, and no vector? */
static inline bool ctl_mapping_needs_codes(const struct ctl_mapping_space *space)
{
  return space->is_known && space->lengths.item_codes > 0;
}

/* Is it one of the names of a list that ends with NULL, in upper or lower case? */
static inline bool ctl_mapping_is_one_of(const char *name, const char *const *names)
{
  for (; *names; names++) {
    if (strcasecmp(name, *names) == 0)
      return true;
  }
  return false;
}

#endif
