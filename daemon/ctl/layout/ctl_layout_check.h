/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a layout, and what one should know about it. Pure. Thread: one. */
#ifndef DAEMON_CTL_CTL_LAYOUT_CHECK_H
#define DAEMON_CTL_CTL_LAYOUT_CHECK_H

#include "daemon/ctl/layout/ctl_layout_shards.h"

struct ctl_finding {
  bool is_problem; /* false: a note */
  char *text;
};

/* All zeros: none. */
struct ctl_findings {
  struct ctl_finding *items;
  size_t n, capacity;
};

/* Find the problems:
 *
 *   a daemon that does not answer or is not ready
 *   a layout in which a shard is missing, and daemons without any layout
 *   daemons of one layout with different models of a space
 *   daemons that do not belong together: another group, query topic or partials topic
 *   a daemon with the whole catalogue that answers the same queries as shards do
 *
 * and the notes: several layouts, a layout that was stopped, no merge, and a merge that has not heard of a shard. */
err_t ctl_layout_check(const struct ctl_layout_daemons *daemons, const struct ctl_layouts *layouts,
                       struct ctl_findings *out);
void ctl_findings_fini(struct ctl_findings *f);

size_t ctl_findings_problems(const struct ctl_findings *f);

#endif
