/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges and lists of integers. Bounds are computed in 128 bits, where those of 64 bits cannot overflow. */
#include "engine/filter/filter_integers.h"

#include "base/compare.h"
#include "engine/filter/filter_sort.h"

/* Make low <= x <= high. The bounds may be beyond the attribute's values. */
static err_t make_range(struct filter_build *b, size_t attribute, enum attribute_type type, __int128 low, __int128 high,
                        const struct filter_node **out)
{
  const int64_t least = type == ATTRIBUTE_TIME ? 0 : INT64_MIN;

  if (low < least)
    low = least;
  if (high > INT64_MAX)
    high = INT64_MAX;
  if (low > high)
    return filter_build_nothing(out);
  if (low == least && high == INT64_MAX)
    return filter_build_has(b, attribute, out);
  struct filter_node leaf = { FILTER_INTEGERS, attribute, .integers = { (int64_t)low, (int64_t)high } };
  return filter_build_leaf(b, leaf, out);
}

static err_t make_comparison(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                             const struct filter_values *values, const struct filter_node **out)
{
  const __int128 beyond = (__int128)1 << 126;
  __int128 low = -beyond, high = beyond;
  struct filter_point first, last;

  TRY(filter_values_point(values, 0, &first));
  TRY(filter_values_point(values, values->n - 1, &last));
  if (op == TOKEN_MORE)
    low = first.floor + 1;
  else if (op != TOKEN_LESS && op != TOKEN_AT_MOST)
    low = first.floor + first.is_between;
  if (op == TOKEN_LESS)
    high = last.floor - !last.is_between;
  else if (op != TOKEN_MORE && op != TOKEN_AT_LEAST)
    high = last.floor;
  return make_range(b, attribute, values->attribute->type, low, high, out);
}

static err_t make_list(struct filter_build *b, size_t attribute, const struct filter_values *values,
                       const struct filter_node **out)
{
  int64_t *list;
  size_t n = 0;

  TRY(region_array(b->region, values->n, sizeof *list, &list));
  for (size_t i = 0; i < values->n; i++) {
    struct filter_point point;
    TRY(filter_values_point(values, i, &point));
    if (!point.is_between && point.floor >= INT64_MIN && point.floor <= INT64_MAX)
      list[n++] = (int64_t)point.floor;
  }
  n = filter_sort_once(list, n, sizeof *list, compare_int64);
  if (n == 0)
    return filter_build_nothing(out);
  if (n == 1)
    return make_range(b, attribute, values->attribute->type, list[0], list[0], out);
  return filter_build_leaf(b, (struct filter_node){ FILTER_ONE_OF, attribute, .integer_values = { list, n } }, out);
}

err_t filter_integers_make(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                           const struct filter_values *values, const struct filter_node **out)
{
  if (op == TOKEN_IN)
    return make_list(b, attribute, values, out);
  return make_comparison(b, attribute, op, values, out);
}
