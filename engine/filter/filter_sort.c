/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting, and dropping what is there twice. */
#include "engine/filter/filter_sort.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t filter_sort_once(void *v, size_t n, size_t size, int (*compare)(const void *, const void *))
{
  uint8_t *element = v;
  size_t kept = 0;

  qsort(v, n, size, compare);
  for (size_t i = 0; i < n; i++) {
    if (kept == 0 || compare(element + (kept - 1) * size, element + i * size) != 0)
      memmove(element + kept++ * size, element + i * size, size);
  }
  return kept;
}
