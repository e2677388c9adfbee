/* SPDX-License-Identifier: Apache-2.0 */
/* The orders that qsort() and bsearch() need, for the plain types. */
#ifndef BASE_COMPARE_H
#define BASE_COMPARE_H

#include <stdint.h>

#include "base/span.h"

static inline int compare_uint32(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

static inline int compare_int64(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

/* Neither may be NaN. */
static inline int compare_double(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static inline int compare_span(const void *a, const void *b)
{
  return span_compare(*(const struct span *)a, *(const struct span *)b);
}

#endif
