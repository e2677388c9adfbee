/* SPDX-License-Identifier: Apache-2.0 */
/* Show the progress of a long command on standard error: a bar on a terminal, else a line every few seconds.
 * Thread: one. */
#ifndef DAEMON_CTL_CTL_PROGRESS_H
#define DAEMON_CTL_CTL_PROGRESS_H

#include "base/err.h"

struct ctl_progress {
  const char *label; /* "loading" */
  const char *unit;  /* of n_items; NULL: "items" */
  uint64_t total;    /* value of `done` at the end, in any unit; 0: unknown */
  bool is_terminal;
  bool is_shown; /* the current line shows the bar */
  int64_t started_ns;
  int64_t shown_ns;
};

/* Begin to measure time; nothing is shown before the first tick.
 *
 * label  valid as long as the progress
 */
void ctl_progress_begin(struct ctl_progress *p, const char *label, uint64_t total);

/* Show the progress, if enough time has passed since it was last shown.
 *
 * done     work done, in the unit of total
 * n_items  number to show
 */
void ctl_progress_tick(struct ctl_progress *p, uint64_t done, uint64_t n_items);

/* Remove the bar, at the end or before printing anything else. The next tick shows it again. */
void ctl_progress_hide(struct ctl_progress *p);

/* Format one line without a line break: label, bar, percentage, items, items/s, time left. */
void ctl_progress_print(const struct ctl_progress *p, uint64_t done, uint64_t n_items, int64_t elapsed_ns, char *out,
                        size_t size);

#endif
