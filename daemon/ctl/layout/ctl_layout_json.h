/* SPDX-License-Identifier: Apache-2.0 */
/* What sluicectl layout prints for programs. Thread: one. */
#ifndef DAEMON_CTL_CTL_LAYOUT_JSON_H
#define DAEMON_CTL_CTL_LAYOUT_JSON_H

#include "daemon/ctl/layout/ctl_layout_check.h"

/* Return an object with `daemons`, `layouts`, `problems` and `notes` (docs/sharding.md). The caller owns it; where
 * memory runs out, fields are missing. */
json_t *ctl_layout_json(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                        const struct ctl_findings *findings);

#endif
