/* SPDX-License-Identifier: Apache-2.0 */
/* How alike two answers to one query are: how many hits they share, and whether they put them in the same order. */
#ifndef DAEMON_SHADOW_SHADOW_MEASURES_H
#define DAEMON_SHADOW_SHADOW_MEASURES_H

#include "base/query.h"
#include "base/region.h"

struct shadow_measures {
  size_t n_common;    /* hits of both */
  double overlap;     /* n_common, divided by the hits of the longer list: from 0 to 1 */
  bool is_ranked;     /* there are two common hits or more, so the next field is known */
  double correlation; /* of their order, Kendall's tau: 1 for the same order, -1 for the reverse one */
};

/* Compare two lists of hits, best first. One of them has a hit. Their keys differ within a list.
 *
 * region  scratch memory; rewound
 *
 * Returns ERR_MEMORY. Thread: any.
 * Source: M. G. Kendall, A New Measure of Rank Correlation, Biometrika 30 (1938); counted in n log n steps as in
 * W. R. Knight, A Computer Method for Calculating Kendall's Tau with Ungrouped Data, JASA 61 (1966).
 */
err_t shadow_measures_take(const struct hit *a, size_t n_a, const struct hit *b, size_t n_b, struct region *region,
                           struct shadow_measures *out);

#endif
