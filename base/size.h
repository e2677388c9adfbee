/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller and the larger of two sizes: C has no min() and max(). */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stddef.h>

static inline size_t size_min(size_t a, size_t b)
{
  return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
  return a > b ? a : b;
}

#endif
