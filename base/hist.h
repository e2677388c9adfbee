/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations in buckets that grow by a quarter of a power of two: quantiles within 25 %. It counts from
 * the start on; a window beside it tells what was added lately, at no cost to those who add.
 * Thread: any; all counts are atomic. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

enum { HIST_BUCKETS = 160 };

struct hist {
  _Atomic uint64_t counts[HIST_BUCKETS];
  _Atomic uint64_t sum;
};

void hist_add(struct hist *h, uint64_t value);

/* How many values are below 2^i, for each i from 0 to HIST_POWERS - 1, and how many there are in all: counted once, so
 * that they never decrease. */
enum { HIST_POWERS = 40 };
struct hist_powers {
  uint64_t below[HIST_POWERS];
  uint64_t n;
};
void hist_powers_get(const struct hist *h, struct hist_powers *out);

/* What was added to a histogram since the last turn but one: between one and two periods, where it is turned once a
 * period. All zeros: since the start. */
struct hist_window {
  _Atomic uint64_t before[2][HIST_BUCKETS]; /* the histogram at the last turn, and at that before */
};

/* Thread: one. */
void hist_window_turn(struct hist_window *w, const struct hist *h);

uint64_t hist_window_count(const struct hist_window *w, const struct hist *h);

/* Upper end of the bucket that holds the quantile q in [0, 1]; 0 when nothing was added. */
uint64_t hist_window_quantile(const struct hist_window *w, const struct hist *h, double q);

#endif
