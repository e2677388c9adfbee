/* SPDX-License-Identifier: Apache-2.0 */
/* The Levenshtein distance by dynamic programming, with one row of the table in memory. */
#include "base/edit_distance.h"

#include <string.h>

#include "base/size.h"

size_t edit_distance(const char *a, const char *b)
{
  size_t n_a = strnlen(a, EDIT_TEXT_MAX);
  size_t n_b = strnlen(b, EDIT_TEXT_MAX);
  size_t row[EDIT_TEXT_MAX + 1];

  for (size_t j = 0; j <= n_b; j++)
    row[j] = j;
  for (size_t i = 1; i <= n_a; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= n_b; j++) {
      size_t above = row[j];
      row[j] = size_min(diagonal + (a[i - 1] != b[j - 1]), 1 + size_min(above, row[j - 1]));
      diagonal = above;
    }
  }
  return row[n_b];
}
