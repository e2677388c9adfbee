/* SPDX-License-Identifier: Apache-2.0 */
/* Merging operands of an `and`: one pass for ranges, one for has(x), each with one note per attribute. */
#include "engine/filter/filter_merge.h"

#include <assert.h>
#include <math.h>

static bool is_range(const struct filter_node *node)
{
  return node->kind == FILTER_INTEGERS || node->kind == FILTER_NUMBERS;
}

/* Can the node be true only where its attribute is present? Inner nodes do not count. */
static bool is_comparison(const struct filter_node *node)
{
  return is_range(node) || node->kind == FILTER_IS || node->kind == FILTER_ONE_OF || node->kind == FILTER_TEXTS;
}

/* Narrow a range to what it has in common with another one of its attribute. Returns false if that is nothing. */
static bool narrow(struct filter_node *range, const struct filter_node *other)
{
  if (range->kind == FILTER_NUMBERS) {
    range->numbers.low = fmax(range->numbers.low, other->numbers.low);
    range->numbers.high = fmin(range->numbers.high, other->numbers.high);
    return range->numbers.low <= range->numbers.high;
  }
  if (other->integers.low > range->integers.low)
    range->integers.low = other->integers.low;
  if (other->integers.high < range->integers.high)
    range->integers.high = other->integers.high;
  return range->integers.low <= range->integers.high;
}

/* Put a copy that may be changed in place of a range. */
static err_t copy_range(const struct filter_node **place, struct region *region, struct filter_node **out)
{
  TRY(region_array(region, 1, sizeof **out, out));
  **out = **place;
  *place = *out;
  return ERR_OK;
}

/* What is known of an attribute while operands are merged. */
struct found {
  const struct filter_node **place; /* of its first range among the operands; NULL: it has none */
  struct filter_node *copy;         /* what is there now; NULL: the first range itself */
};

static err_t merge_ranges(const struct filter_node **operands, size_t *n, struct region *region, bool *is_none)
{
  struct found found[ATTRIBUTES_MAX] = { { NULL, NULL } };
  size_t kept = 0;

  for (size_t i = 0; i < *n; i++) {
    const struct filter_node *operand = operands[i];
    struct found *f = is_range(operand) ? &found[operand->attribute] : NULL;
    if (f && f->place) {
      if (!f->copy)
        TRY(copy_range(f->place, region, &f->copy));
      *is_none |= !narrow(f->copy, operand);
      continue;
    }
    if (f)
      f->place = &operands[kept];
    operands[kept++] = operand;
  }
  *n = kept;
  return ERR_OK;
}

static_assert(ATTRIBUTES_MAX <= 64, "a word has a bit for each");

static void drop_has(const struct filter_node **operands, size_t *n)
{
  uint64_t present = 0; /* bit a: attribute a must be present by another operand */
  size_t kept = 0;

  for (size_t i = 0; i < *n; i++) {
    if (is_comparison(operands[i]))
      present |= (uint64_t)1 << operands[i]->attribute;
  }
  for (size_t i = 0; i < *n; i++) {
    const struct filter_node *operand = operands[i];
    bool is_has = operand->kind == FILTER_HAS;
    if (is_has && (present >> operand->attribute & 1))
      continue;
    if (is_has)
      present |= (uint64_t)1 << operand->attribute;
    operands[kept++] = operand;
  }
  *n = kept;
}

err_t filter_merge(const struct filter_node **operands, size_t *n, struct region *region, bool *is_none)
{
  TRY(merge_ranges(operands, n, region, is_none));
  drop_has(operands, n);
  return ERR_OK;
}
