/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations. Each power of two has four buckets, so quantiles are accurate to 25 %. A histogram counts
 * from the start of the process. A window beside it gives the values that were added recently, and costs hist_add()
 * nothing.
 *
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

/* Count a value. */
void hist_add(struct hist *h, uint64_t value);

/* How many values are below each power of two. All counts come from one pass over the buckets, so they never decrease
 * from one power to the next. */
enum { HIST_POWERS = 40 };
struct hist_powers {
  uint64_t below[HIST_POWERS]; /* below[i]: values below 2^i */
  uint64_t n;                  /* all values */
};
void hist_powers_get(const struct hist *h, struct hist_powers *out);

/* The values added to a histogram in this period and the one before. A turn ends a period. A window of all zeros covers
 * everything since the start. */
struct hist_window {
  _Atomic uint64_t before[2][HIST_BUCKETS]; /* the histogram at the last turn, and at the turn before that */
};

/* Begin a new period. Thread: one. */
void hist_window_turn(struct hist_window *w, const struct hist *h);

/* Return how many values the window has. */
uint64_t hist_window_count(const struct hist_window *w, const struct hist *h);

/* Return the upper end of the bucket that has the quantile q in [0, 1]; 0 if the window has no values. */
uint64_t hist_window_quantile(const struct hist_window *w, const struct hist *h, double q);

#endif
