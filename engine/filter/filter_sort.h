/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of values as a filter keeps them: sorted, each value once. */
#ifndef ENGINE_FILTER_FILTER_SORT_H
#define ENGINE_FILTER_FILTER_SORT_H

#include <stddef.h>

/* Sort an array as qsort() does, and keep each element once. Returns how many are left. */
size_t filter_sort_once(void *v, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
