/* SPDX-License-Identifier: Apache-2.0 */
/* Reading single values from attribute columns, to compare them with what was put. */
#ifndef TESTS_SUPPORT_ATTRIBUTE_GET_H
#define TESTS_SUPPORT_ATTRIBUTE_GET_H

#include <stdlib.h>

#include "engine/attributes/attribute_column.h"

/* The number of a key: attribute_column_key(). */
static inline double attribute_get_number(int64_t key)
{
  int64_t bits = key ^ (int64_t)((uint64_t)(key >> 63) >> 1);
  double number;

  memcpy(&number, &bits, sizeof number);
  return number;
}

static inline int attribute_get_order(const void *a, const void *b)
{
  return span_compare(((const struct value *)a)->text, ((const struct value *)b)->text);
}

static inline err_t attribute_get_set(const struct attribute_column *c, uint32_t slot, struct region *region,
                                      struct value *out)
{
  const struct code_set *set = &c->sets[slot];
  struct value *texts;

  TRY(region_array(region, set->n, sizeof *texts, &texts));
  for (uint32_t i = 0; i < set->n; i++)
    texts[i] = (struct value){ VALUE_TEXT, .text = dictionary_text(&c->texts, code_set_codes(set)[i]) };
  if (set->n > 1)
    qsort(texts, set->n, sizeof *texts, attribute_get_order);
  *out = (struct value){ VALUE_LIST, .list = { texts, set->n } };
  return ERR_OK;
}

/* Read a value of a slot in its kept form; VALUE_NULL if it is absent. A set's elements are written to the region. The
 * texts are valid until the columns change. Returns ERR_MEMORY. */
static inline err_t attribute_get(const struct attribute_columns *columns, uint32_t slot, size_t attribute,
                                  struct region *region, struct value *out)
{
  const struct attribute_column *c = &columns->v[attribute];

  if (!bits_get(c->present, slot))
    *out = (struct value){ .kind = VALUE_NULL };
  else if (c->type == ATTRIBUTE_BOOL)
    *out = (struct value){ VALUE_BOOL, .is_true = bits_get(c->truths, slot) };
  else if (c->type == ATTRIBUTE_NUMBER)
    *out = (struct value){ VALUE_NUMBER, .number = attribute_get_number(c->numbers[slot]) };
  else if (c->type == ATTRIBUTE_KEYWORD)
    *out = (struct value){ VALUE_TEXT, .text = dictionary_text(&c->texts, c->codes[slot]) };
  else if (c->type == ATTRIBUTE_KEYWORDS)
    return attribute_get_set(c, slot, region, out);
  else
    *out = (struct value){ VALUE_INTEGER, .integer = c->numbers[slot] };
  return ERR_OK;
}

#endif
