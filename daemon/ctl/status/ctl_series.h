/* SPDX-License-Identifier: Apache-2.0 */
/* The newest values of a number that changes, and a small chart of them in one line. Thread: one. */
#ifndef DAEMON_CTL_CTL_SERIES_H
#define DAEMON_CTL_CTL_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CTL_SERIES_MAX = 240 };

/* All zeros: no values yet. */
struct ctl_series {
  double values[CTL_SERIES_MAX]; /* a ring */
  size_t n_added;
};

void ctl_series_add(struct ctl_series *s, double value);

/* Print the newest values, at most n, as columns of eight heights between 0 and the largest of them. 0 is a blank.
 *
 * is_ascii  the terminal has no block characters
 */
void ctl_series_print(const struct ctl_series *s, size_t n, bool is_ascii, FILE *out);

#endif
