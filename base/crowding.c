/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts hits by value, and hits with the same value by rank. */
#include "base/crowding.h"

#include <stdlib.h>

int crowding_compare(const struct value *a, const struct value *b)
{
  if (a->kind != b->kind)
    return a->kind < b->kind ? -1 : 1;
  switch (a->kind) {
  case VALUE_BOOL:
    return a->is_true - b->is_true;
  case VALUE_INTEGER:
    return (a->integer > b->integer) - (a->integer < b->integer);
  case VALUE_TEXT:
    return span_compare(a->text, b->text);
  default: /* absent; an attribute of another type cannot be named */
    return 0;
  }
}

/* The hits lie in one array, in order of rank. */
static int compare_hits(const void *a, const void *b)
{
  const struct hit *x = *(const struct hit *const *)a, *y = *(const struct hit *const *)b;
  int order = crowding_compare(&x->value, &y->value);

  return order ? order : (x > y) - (x < y);
}

err_t crowding_find(const struct hit *hits, size_t n_hits, uint32_t most, struct region *region, struct crowding *out)
{
  const struct hit **sorted;
  size_t n_same = 0;

  *out = (struct crowding){ 0 };
  TRY(region_array(region, n_hits, sizeof *out->is_out, &out->is_out));
  TRY(region_array(region, n_hits, sizeof *out->full, &out->full));
  TRY(region_array(region, n_hits, sizeof *sorted, &sorted));
  for (size_t i = 0; i < n_hits; i++)
    sorted[i] = &hits[i];
  if (n_hits > 0)
    qsort(sorted, n_hits, sizeof *sorted, compare_hits);
  for (size_t i = 0; i < n_hits; i++) {
    const struct value *value = &sorted[i]->value;
    if (value->kind == VALUE_NULL)
      continue;
    n_same = i > 0 && crowding_compare(value, &sorted[i - 1]->value) == 0 ? n_same + 1 : 1;
    out->is_out[sorted[i] - hits] = n_same > most;
    if (n_same == most)
      out->full[out->n_full++] = value;
  }
  return ERR_OK;
}
