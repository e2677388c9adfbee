/* SPDX-License-Identifier: Apache-2.0 */
/* The daemons of a layout, each with its /status, or the reason why it has none. Thread: one. */
#ifndef DAEMON_CTL_CTL_LAYOUT_DAEMONS_H
#define DAEMON_CTL_CTL_LAYOUT_DAEMONS_H

#include "daemon/ctl/ctl_context.h"

enum ctl_layout_role { CTL_LAYOUT_UNKNOWN, CTL_LAYOUT_WHOLE, CTL_LAYOUT_SHARD, CTL_LAYOUT_MERGE };

/* A daemon that was asked. */
struct ctl_layout_daemon {
  char *at;       /* its address, as it was given */
  json_t *status; /* its /status; NULL: it did not answer with one */
  char *reason;   /* why not, with the address; NULL: out of memory */
  enum ctl_layout_role role;
  uint32_t shard, n_shards; /* of a shard; 0 for the others */
  bool is_ready;
};

/* All zeros: none. */
struct ctl_layout_daemons {
  struct ctl_layout_daemon *items;
  size_t n, capacity;
};

enum { CTL_LAYOUT_DAEMONS_MAX = 1024, CTL_LAYOUT_SHARDS_MAX = 1024 };

/* Add the daemons of a list, "address:port" or several with commas between. One that is there already is left out.
 * Returns ERR_USAGE if there is nothing between two commas, or if there are too many. */
err_t ctl_layout_daemons_add(struct ctl_layout_daemons *d, const char *list);
void ctl_layout_daemons_fini(struct ctl_layout_daemons *d);

/* Ask all at the same time. A daemon that does not answer gets its reason. */
err_t ctl_layout_daemons_ask(struct ctl_layout_daemons *d);

/* Set what /status says of a daemon. The daemon owns `status` from then on. For tests too. */
err_t ctl_layout_daemon_set(struct ctl_layout_daemon *d, json_t *status);

/* Return how many records of its partitions are not applied yet. */
uint64_t ctl_layout_daemon_lag(const struct ctl_layout_daemon *d);

/* Return why it is not ready; NULL: /status does not say. */
const char *ctl_layout_daemon_not_ready(const struct ctl_layout_daemon *d);

/* Write "shard 1 of 4", "merge", "whole catalogue" or "?". */
enum { CTL_LAYOUT_NAME_BYTES = 48 };
void ctl_layout_daemon_name(const struct ctl_layout_daemon *d, char out[CTL_LAYOUT_NAME_BYTES]);

#endif
