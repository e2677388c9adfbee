/* SPDX-License-Identifier: Apache-2.0 */
/* The Levenshtein distance by dynamic programming, with one row of the table in memory. */
#include "base/edit_distance.h"

#include <ctype.h>
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

static void lower(const char *text, char out[EDIT_TEXT_MAX + 1])
{
  size_t n = 0;

  for (; n < EDIT_TEXT_MAX && text[n]; n++)
    out[n] = (char)tolower((unsigned char)text[n]);
  out[n] = '\0';
}

size_t edit_distance_by_letter(const char *a, const char *b)
{
  char lower_a[EDIT_TEXT_MAX + 1], lower_b[EDIT_TEXT_MAX + 1];

  lower(a, lower_a);
  lower(b, lower_b);
  return edit_distance(lower_a, lower_b) * EDIT_TEXT_MAX + edit_distance(a, b);
}
