/* A histogram of durations in buckets that grow by a quarter of a power of two: quantiles within 25 %.
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

uint64_t hist_count(const struct hist *h);

/* Upper end of the bucket that holds the quantile q in [0, 1]; 0 when nothing was added. */
uint64_t hist_quantile(const struct hist *h, double q);

#endif
