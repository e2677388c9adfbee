/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and lists of doubles. The bound of < is the double below. */
#include "engine/filter/filter_doubles.h"

#include <float.h>
#include <math.h>

#include "base/compare.h"
#include "engine/filter/filter_sort.h"

/* Make low <= x <= high. A bound of -0, which nextafter() may give, becomes 0. */
static err_t make_range(struct filter_build *b, size_t attribute, double low, double high,
                        const struct filter_node **out)
{
  if (low > high || low > DBL_MAX || high < -DBL_MAX) /* an item's numbers are finite */
    return filter_build_nothing(out);
  if (low <= -DBL_MAX && high >= DBL_MAX)
    return filter_build_has(b, attribute, out);
  struct filter_node leaf = { FILTER_NUMBERS, attribute, .numbers = { low + 0.0, high + 0.0 } };
  return filter_build_leaf(b, leaf, out);
}

static err_t make_comparison(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                             const struct filter_values *values, const struct filter_node **out)
{
  double low, high;

  TRY(filter_values_number(values, 0, &low));
  TRY(filter_values_number(values, values->n - 1, &high));
  if (op == TOKEN_LESS || op == TOKEN_AT_MOST)
    low = -INFINITY;
  if (op == TOKEN_MORE || op == TOKEN_AT_LEAST)
    high = INFINITY;
  if (op == TOKEN_MORE)
    low = nextafter(low, INFINITY);
  if (op == TOKEN_LESS)
    high = nextafter(high, -INFINITY);
  return make_range(b, attribute, low, high, out);
}

static err_t make_list(struct filter_build *b, size_t attribute, const struct filter_values *values,
                       const struct filter_node **out)
{
  double *list;

  TRY(region_array(b->region, values->n, sizeof *list, &list));
  for (size_t i = 0; i < values->n; i++)
    TRY(filter_values_number(values, i, &list[i]));
  size_t n = filter_sort_once(list, values->n, sizeof *list, compare_double);
  if (n == 0)
    return filter_build_nothing(out);
  if (n == 1)
    return make_range(b, attribute, list[0], list[0], out);
  return filter_build_leaf(b, (struct filter_node){ FILTER_ONE_OF, attribute, .number_values = { list, n } }, out);
}

err_t filter_doubles_make(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                          const struct filter_values *values, const struct filter_node **out)
{
  if (op == TOKEN_IN)
    return make_list(b, attribute, values, out);
  return make_comparison(b, attribute, op, values, out);
}
