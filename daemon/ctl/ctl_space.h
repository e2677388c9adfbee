/* SPDX-License-Identifier: Apache-2.0 */
/* A space of the running daemon, and what its items and queries need, as /status has it. Thread: one. */
#ifndef DAEMON_CTL_CTL_SPACE_H
#define DAEMON_CTL_CTL_SPACE_H

#include "daemon/ctl/ctl_context.h"
#include "engine/model/model_lengths.h"

struct ctl_space {
  char name[SPACE_NAME_MAX + 1]; /* with a generation if that was named */
  bool is_known;                 /* the daemon has said the lengths; an older one does not */
  struct model_lengths lengths;
};

/* Find a space.
 *
 * name  with or without a generation; NULL: the only one
 *
 * Returns ERR_USAGE with the names of all spaces; ERR_SYSTEM if the daemon does not answer.
 */
err_t ctl_space_find(struct ctl_context *ctx, const char *name, struct ctl_space *out);

/* The same with the list in a /status. A name without a generation means the one that answers. */
err_t ctl_space_choose(const json_t *spaces, const char *name, struct ctl_space *out);

#endif
