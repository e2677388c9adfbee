/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long command is, on standard error: a bar where that is a terminal, else a line every few seconds.
 * Thread: one. */
#ifndef DAEMON_CTL_CTL_PROGRESS_H
#define DAEMON_CTL_CTL_PROGRESS_H

#include "base/err.h"

struct ctl_progress {
  const char *label; /* "loading" */
  const char *unit;  /* what people count; NULL: "items" */
  uint64_t total;    /* of `done`, in any unit; 0: unknown */
  bool is_terminal;
  bool is_shown; /* a bar stands on the line */
  int64_t started_ns;
  int64_t shown_ns;
};

/* label  valid until the end */
void ctl_progress_begin(struct ctl_progress *p, const char *label, uint64_t total);

/* Show it if it is time to.
 *
 * done     of total
 * n_items  what people count
 */
void ctl_progress_tick(struct ctl_progress *p, uint64_t done, uint64_t n_items);

/* Take the bar away: also before anything else is written. It comes back with the next tick. */
void ctl_progress_hide(struct ctl_progress *p);

/* One line, without a line break: label, bar, share, items, items/s, time left. */
void ctl_progress_print(const struct ctl_progress *p, uint64_t done, uint64_t n_items, int64_t elapsed_ns, char *out,
                        size_t size);

#endif
