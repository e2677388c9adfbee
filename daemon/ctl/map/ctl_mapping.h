/* SPDX-License-Identifier: Apache-2.0 */
/* Suggest a mapping for a topic, as text for the configuration: from a census of its rows, and from what the spaces
 * need. Thread: one. */
#ifndef DAEMON_CTL_MAP_CTL_MAPPING_H
#define DAEMON_CTL_MAP_CTL_MAPPING_H

#include <stdio.h>

#include "engine/model/model_lengths.h"
#include "ingest/wire/mapping_census.h"

struct ctl_mapping_space {
  const char *name;
  bool is_known; /* otherwise its model takes long to load, and `lengths` is not set */
  struct model_lengths lengths;
};

/* Write `attributes` and `catalogue.mapping` as YAML. Comments say what each field is like, what is not mapped and why,
 * and what a person should look at.
 *
 * Returns ERR_MEMORY. */
err_t ctl_mapping_write(const struct mapping_census *census, const struct ctl_mapping_space *spaces, size_t n_spaces,
                        FILE *out);

#endif
