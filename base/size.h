/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller of two sizes. C has no min(); the whole tree shares this one. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stddef.h>

static inline size_t size_min(size_t a, size_t b)
{
  return a < b ? a : b;
}

#endif
