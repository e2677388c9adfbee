/* SPDX-License-Identifier: Apache-2.0 */
/* The reference evaluation of a filter, one item and one value after the other. Faster ones are compared with it. */
#ifndef TESTS_SUPPORT_FILTER_MATCHES_H
#define TESTS_SUPPORT_FILTER_MATCHES_H

#include <assert.h>
#include <stdlib.h>

#include "base/compare.h"
#include "engine/filter/filter.h"

static inline bool matches_text(const struct filter_node *node, struct span text)
{
  size_t from = 0, to = node->texts.n;

  while (from < to) {
    size_t middle = from + (to - from) / 2;
    int order = span_compare(node->texts.v[middle], text);
    if (order == 0)
      return true;
    if (order < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return false;
}

static inline bool matches_texts(const struct filter_node *node, const struct value *value)
{
  if (value->kind == VALUE_TEXT)
    return matches_text(node, value->text);
  for (size_t i = 0; i < value->list.n; i++) {
    if (matches_text(node, value->list.v[i].text))
      return true;
  }
  return false;
}

static inline bool matches_one_of(const struct filter_node *node, const struct value *value)
{
  if (value->kind == VALUE_INTEGER)
    return bsearch(&value->integer, node->integer_values.v, node->integer_values.n, sizeof value->integer,
                   compare_int64);
  return bsearch(&value->number, node->number_values.v, node->number_values.n, sizeof value->number, compare_double);
}

/* Does a leaf match a value that is present? */
static inline bool matches_leaf(const struct filter_node *node, const struct value *value)
{
  switch (node->kind) {
  case FILTER_IS:
    return value->is_true == node->is_true;
  case FILTER_INTEGERS:
    return node->integers.low <= value->integer && value->integer <= node->integers.high;
  case FILTER_NUMBERS:
    return node->numbers.low <= value->number && value->number <= node->numbers.high;
  case FILTER_ONE_OF:
    return matches_one_of(node, value);
  case FILTER_TEXTS:
    return matches_texts(node, value);
  default:
    assert(node->kind == FILTER_HAS);
    return true;
  }
}

static inline bool filter_matches(const struct filter_node *node, const struct value *values);

/* Is there an operand that is `wanted`? */
static inline bool matches_operand(const struct filter_node *node, const struct value *values, bool wanted)
{
  for (size_t i = 0; i < node->operands.n; i++) {
    if (filter_matches(node->operands.v[i], values) == wanted)
      return true;
  }
  return false;
}

/* Is the node true for an item?
 *
 * values  [attributes.n] the item's values in their kept form (enum attribute_type); VALUE_NULL: absent
 */
static inline bool filter_matches(const struct filter_node *node, const struct value *values)
{
  switch (node->kind) {
  case FILTER_ALL:
    return true;
  case FILTER_NONE:
    return false;
  case FILTER_AND:
    return !matches_operand(node, values, false);
  case FILTER_OR:
    return matches_operand(node, values, true);
  case FILTER_NOT:
    return !filter_matches(node->operands.v[0], values);
  default:
    return values[node->attribute].kind != VALUE_NULL && matches_leaf(node, &values[node->attribute]);
  }
}

#endif
