/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts that daemons make: for each number of shards, who is there. Pure: made from what daemons said.
 *
 * Daemons with the whole catalogue are a layout of their own: `of` is 0, and it has one row.
 *
 * Thread: one. */
#ifndef DAEMON_CTL_CTL_LAYOUT_SHARDS_H
#define DAEMON_CTL_CTL_LAYOUT_SHARDS_H

#include "daemon/ctl/layout/ctl_layout_daemons.h"

/* How long a shard may be silent before merges count it as away. Heartbeats come each second, but a merge that reads
 * few partitions hears few of them. */
enum { CTL_LAYOUT_SILENT_S = 30 };

struct ctl_layout_shard {
  size_t n_daemons;                      /* that were asked, and are this shard */
  size_t n_ready;                        /* of these */
  double heard_s;                        /* how long ago a merge has heard of it; below 0: none has */
  const struct ctl_layout_daemon *first; /* ready if one is; NULL: none was asked */
};

enum ctl_layout_state {
  CTL_LAYOUT_COMPLETE,   /* every shard has a daemon that is ready, or is heard of */
  CTL_LAYOUT_INCOMPLETE, /* a shard has not */
  CTL_LAYOUT_GONE        /* no shard has: merges remember a layout that was stopped */
};

struct ctl_layout {
  uint32_t n_shards;             /* 0: a daemon with the whole catalogue */
  struct ctl_layout_shard *rows; /* [n_rows] one for each shard, or one for the whole catalogue */
  size_t n_rows;
};

/* All zeros: none. */
struct ctl_layouts {
  struct ctl_layout *items; /* by the number of shards */
  size_t n, capacity;
};

/* Find the layouts. They borrow from the daemons. */
err_t ctl_layouts_find(const struct ctl_layout_daemons *daemons, struct ctl_layouts *out);
void ctl_layouts_fini(struct ctl_layouts *l);

/* Does the shard answer, as far as one can know? */
bool ctl_layout_shard_is_there(const struct ctl_layout_shard *s);

enum ctl_layout_state ctl_layout_state(const struct ctl_layout *l);

/* Find the current generation of a space in a daemon's /status; NULL: it has no such space. Borrowed. */
const json_t *ctl_layout_find_space(const struct ctl_layout_daemon *d, const char *name);

/* What a query for a space searches, as far as daemons were asked: one of each shard. */
struct ctl_layout_space {
  uint64_t n_items;
  size_t n_rows; /* of the layout, that have the space */
};
struct ctl_layout_space ctl_layout_space(const struct ctl_layout *l, const char *name);

#endif
