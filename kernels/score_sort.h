/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting entries by score alone, faster than a heap does it. Thread: any. Allocates: no. */
#ifndef KERNELS_SCORE_SORT_H
#define KERNELS_SCORE_SORT_H

#include "kernels/topk.h"

/* Sort in place, highest scores first. Entries with equal scores come in any order. No score may be NaN. Entries whose
 * scores never fall are only reversed. */
void score_sort(struct topk_entry *entries, size_t n);

#endif
