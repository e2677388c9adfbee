/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one attribute's column: a slot's value, and the ranges of numbers. */
#include <assert.h>
#include <stdlib.h>

#include "engine/attributes/attribute_column.h"

struct attribute_cell attribute_column_cell(const struct attribute_column *c, uint32_t slot)
{
  bool is_present = bits_get(c->present, slot);
  struct attribute_cell cell = { .is_present = is_present, .is_true = c->truths && bits_get(c->truths, slot) };

  if (is_present && c->numbers)
    cell.value = c->numbers[slot];
  else if (is_present && c->codes)
    cell.value = c->codes[slot];
  return cell;
}

struct value attribute_column_value(const struct attribute_column *c, uint32_t slot)
{
  assert(c->type != ATTRIBUTE_KEYWORDS);
  if (!bits_get(c->present, slot))
    return (struct value){ .kind = VALUE_NULL };
  if (c->truths)
    return (struct value){ .kind = VALUE_BOOL, .is_true = bits_get(c->truths, slot) };
  if (c->codes)
    return (struct value){ .kind = VALUE_TEXT, .text = dictionary_text(&c->texts, c->codes[slot]) };
  if (c->type == ATTRIBUTE_NUMBER)
    return (struct value){ .kind = VALUE_NUMBER, .number = attribute_column_double(c->numbers[slot]) };
  return (struct value){ .kind = VALUE_INTEGER, .integer = c->numbers[slot] };
}

/* Codes rise in the order in which their texts came first: here, not in another daemon. */
static int compare_texts(const void *a, const void *b)
{
  const struct value *x = a, *y = b;

  return span_compare(x->text, y->text);
}

static err_t copy_set(const struct attribute_column *c, uint32_t slot, struct region *region, struct value *out)
{
  const struct code_set *set = &c->sets[slot];
  const uint32_t *codes = code_set_codes(set);
  struct value *texts;

  TRY(region_array(region, set->n, sizeof *texts, &texts));
  for (uint32_t i = 0; i < set->n; i++) {
    texts[i].kind = VALUE_TEXT;
    TRY(region_copy(region, dictionary_text(&c->texts, codes[i]), &texts[i].text));
  }
  if (set->n > 0)
    qsort(texts, set->n, sizeof *texts, compare_texts);
  *out = (struct value){ .kind = VALUE_LIST, .list = { texts, set->n } };
  return ERR_OK;
}

err_t attribute_column_copy_value(const struct attribute_column *c, uint32_t slot, struct region *region,
                                  struct value *out)
{
  if (c->sets && bits_get(c->present, slot))
    return copy_set(c, slot, region, out);
  *out = c->sets ? (struct value){ .kind = VALUE_NULL } : attribute_column_value(c, slot);
  return out->kind == VALUE_TEXT ? region_copy(region, out->text, &out->text) : ERR_OK;
}

static double number_of(const struct attribute_column *c, int64_t number)
{
  return c->type == ATTRIBUTE_NUMBER ? attribute_column_double(number) : (double)number;
}

bool attribute_column_number(const struct attribute_column *c, uint32_t slot, double *out)
{
  if (!bits_get(c->present, slot))
    return false;
  *out = number_of(c, c->numbers[slot]);
  return true;
}

bool attribute_column_range(const struct attribute_column *c, double *low, double *high)
{
  if (c->buckets.n == 0)
    return false;
  *low = number_of(c, c->buckets.low);
  *high = number_of(c, c->buckets.high);
  return true;
}

bool attribute_column_bucket_range(const struct attribute_column *c, unsigned bucket, double *low, double *high)
{
  int64_t first, last;

  if (!value_buckets_bounds(&c->buckets, bucket, &first, &last))
    return false;
  *low = number_of(c, first);
  *high = number_of(c, last);
  return true;
}
