/* SPDX-License-Identifier: Apache-2.0 */
/* A plain model of items with attributes, random values, and random filters. Tests compare attribute columns with it.
 */
#ifndef TESTS_SUPPORT_ATTRIBUTE_MODEL_H
#define TESTS_SUPPORT_ATTRIBUTE_MODEL_H

#include <math.h>

#include "base/region.h"
#include "engine/filter/filter.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"

enum { MODEL_ATTRIBUTES = 9, MODEL_TEXTS = 400, MODEL_SET_MAX = 6 };

static const enum attribute_type model_types[MODEL_ATTRIBUTES] = {
  ATTRIBUTE_BOOL,    ATTRIBUTE_KEYWORD, ATTRIBUTE_KEYWORDS, ATTRIBUTE_INTEGER, ATTRIBUTE_NUMBER,
  ATTRIBUTE_KEYWORD, ATTRIBUTE_TIME,    ATTRIBUTE_INTEGER,  ATTRIBUTE_BOOL,
};

/* An item: its values in their kept form, and the elements of its one set. */
struct model_item {
  struct value values[MODEL_ATTRIBUTES];
  struct value elements[MODEL_SET_MAX];
};

struct attribute_model {
  struct attribute attributes[MODEL_ATTRIBUTES];
  char texts[MODEL_TEXTS][8];
};

static inline struct attributes model_attributes(struct attribute_model *m)
{
  static const char *const names[MODEL_ATTRIBUTES] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };

  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++)
    m->attributes[i] = (struct attribute){ span_of_str(names[i]), model_types[i] };
  for (size_t i = 0; i < MODEL_TEXTS; i++)
    snprintf(m->texts[i], sizeof m->texts[i], "%s%zu", i % 3 ? "t" : "", i);
  return (struct attributes){ m->attributes, MODEL_ATTRIBUTES };
}

/* Texts are drawn from few frequent ones and many rare ones. */
static inline struct span model_text(const struct attribute_model *m, struct dice *d)
{
  size_t n = dice_below(d, 2) ? 3 : dice_below(d, 2) ? 40 : MODEL_TEXTS;

  return span_of_str(m->texts[dice_below(d, n)]);
}

static inline int model_compare_texts(const void *a, const void *b)
{
  return span_compare(((const struct value *)a)->text, ((const struct value *)b)->text);
}

/* Draw texts in bytewise order, each once. Returns how many. */
static inline size_t model_draw_texts(const struct attribute_model *m, struct dice *d, size_t n, struct value *out)
{
  size_t n_unique = 0;

  for (size_t i = 0; i < n; i++)
    out[i] = (struct value){ VALUE_TEXT, .text = model_text(m, d) };
  qsort(out, n, sizeof *out, model_compare_texts);
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || !span_equal(out[i].text, out[i - 1].text))
      out[n_unique++] = out[i];
  }
  return n_unique;
}

static inline int64_t model_integer(size_t attribute, struct dice *d)
{
  if (model_types[attribute] == ATTRIBUTE_TIME)
    return (int64_t)(1790000000000 + dice_below(d, 1000));
  if (dice_below(d, 50) == 0)
    return dice_below(d, 2) ? INT64_MIN : INT64_MAX;
  return attribute == 3 ? (int64_t)dice_below(d, 30) - 15 : (int64_t)dice_u64(d) >> dice_below(d, 60);
}

static inline double model_number(struct dice *d)
{
  static const double special[] = { 0.0, -0.0, 1.5, -1.5, 0x1p-1074, -0x1p-1074, 0x1.fffffffffffffp1023 };

  if (dice_below(d, 4) == 0)
    return special[dice_below(d, 7)];
  return ldexp((double)dice_float(d, 1.0f), (int)dice_below(d, 40) - 20);
}

/* Draw a value of an attribute that is present. */
static inline void model_draw_value(const struct attribute_model *m, struct dice *d, size_t attribute,
                                    struct value *elements, struct value *out)
{
  switch (model_types[attribute]) {
  case ATTRIBUTE_BOOL:
    *out = (struct value){ VALUE_BOOL, .is_true = dice_below(d, 3) == 0 };
    break;
  case ATTRIBUTE_KEYWORD:
    *out = (struct value){ VALUE_TEXT, .text = model_text(m, d) };
    break;
  case ATTRIBUTE_KEYWORDS:
    *out = (struct value){ VALUE_LIST,
                           .list = { elements, model_draw_texts(m, d, dice_below(d, MODEL_SET_MAX + 1), elements) } };
    break;
  case ATTRIBUTE_NUMBER:
    *out = (struct value){ VALUE_NUMBER, .number = model_number(d) };
    break;
  default:
    *out = (struct value){ VALUE_INTEGER, .integer = model_integer(attribute, d) };
  }
}

static inline void model_assert_value(const struct value *found, const struct value *wanted)
{
  assert_int_equal(found->kind, wanted->kind);
  switch (wanted->kind) {
  case VALUE_BOOL:
    assert_int_equal(found->is_true, wanted->is_true);
    break;
  case VALUE_INTEGER:
    assert_true(found->integer == wanted->integer);
    break;
  case VALUE_NUMBER:
    assert_true(found->number == wanted->number);
    break;
  case VALUE_TEXT:
    assert_true(span_equal(found->text, wanted->text));
    break;
  case VALUE_LIST:
    assert_int_equal(found->list.n, wanted->list.n);
    for (size_t i = 0; i < wanted->list.n; i++)
      model_assert_value(&found->list.v[i], &wanted->list.v[i]);
    break;
  default:
    break;
  }
}

/* Copy an item. Its set's elements are its own. */
static inline void model_copy(const struct model_item *from, struct model_item *to)
{
  *to = *from;
  for (size_t i = 0; i < MODEL_ATTRIBUTES; i++) {
    if (to->values[i].kind == VALUE_LIST)
      to->values[i].list.v = to->elements;
  }
}

/* Filters -------------------- */

static inline void *model_array(struct region *region, size_t n, size_t size)
{
  void *p;

  assert_ok(region_array(region, n, size, &p));
  return p;
}

static inline int model_compare_integers(const void *a, const void *b)
{
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

static inline int model_compare_numbers(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static inline void model_draw_one_of(struct dice *d, struct region *region, struct filter_node *out)
{
  size_t n = 2 + dice_below(d, dice_below(d, 2) ? 3 : 40), n_unique = 0;
  int64_t *integers = model_array(region, n, sizeof *integers);
  double *numbers = model_array(region, n, sizeof *numbers);

  for (size_t i = 0; i < n; i++) {
    integers[i] = model_integer(out->attribute, d);
    numbers[i] = model_number(d);
  }
  qsort(integers, n, sizeof *integers, model_compare_integers);
  qsort(numbers, n, sizeof *numbers, model_compare_numbers);
  bool is_number = model_types[out->attribute] == ATTRIBUTE_NUMBER;
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || (is_number ? numbers[i] > numbers[i - 1] : integers[i] > integers[i - 1])) {
      integers[n_unique] = integers[i];
      numbers[n_unique++] = numbers[i];
    }
  }
  out->kind = FILTER_ONE_OF;
  if (is_number) {
    out->number_values.v = numbers;
    out->number_values.n = n_unique;
  } else {
    out->integer_values.v = integers;
    out->integer_values.n = n_unique;
  }
}

static inline void model_draw_range(struct dice *d, struct filter_node *out)
{
  if (model_types[out->attribute] == ATTRIBUTE_NUMBER) {
    double a = dice_below(d, 8) ? model_number(d) : (double)-INFINITY;
    double b = dice_below(d, 8) ? model_number(d) : (double)INFINITY;
    out->kind = FILTER_NUMBERS;
    out->numbers.low = a < b ? a : b;
    out->numbers.high = a < b ? b : a;
  } else {
    int64_t a = model_integer(out->attribute, d), b = model_integer(out->attribute, d);
    out->kind = FILTER_INTEGERS;
    out->integers.low = a < b ? a : b;
    out->integers.high = a < b ? b : a;
  }
}

static inline void model_draw_texts_leaf(const struct attribute_model *m, struct dice *d, struct region *region,
                                         struct filter_node *out)
{
  size_t n = 1 + dice_below(d, dice_below(d, 2) ? 4 : 30);
  struct value *texts = model_array(region, n, sizeof *texts);
  struct span *spans = model_array(region, n, sizeof *spans);

  n = model_draw_texts(m, d, n, texts);
  for (size_t i = 0; i < n; i++)
    spans[i] = texts[i].text;
  if (dice_below(d, 4) == 0)
    spans[n - 1] = span_of_str("the text that no item has"); /* the last in bytewise order */
  out->kind = FILTER_TEXTS;
  out->texts.v = spans;
  out->texts.n = n;
}

static inline void model_draw_leaf(const struct attribute_model *m, struct dice *d, struct region *region,
                                   struct filter_node *out)
{
  size_t which = dice_below(d, 24);

  out->attribute = dice_below(d, MODEL_ATTRIBUTES);
  if (which < 2) {
    out->kind = which ? FILTER_ALL : FILTER_NONE;
  } else if (which < 5) {
    out->kind = FILTER_HAS;
  } else if (model_types[out->attribute] == ATTRIBUTE_BOOL) {
    out->kind = FILTER_IS;
    out->is_true = dice_below(d, 2);
  } else if (model_types[out->attribute] == ATTRIBUTE_KEYWORD || model_types[out->attribute] == ATTRIBUTE_KEYWORDS) {
    model_draw_texts_leaf(m, d, region, out);
  } else if (dice_below(d, 2)) {
    model_draw_range(d, out);
  } else {
    model_draw_one_of(d, region, out);
  }
}

/* Draw a filter of at most `depth` levels above its leaves. */
static inline struct filter_node *model_draw_filter(const struct attribute_model *m, struct dice *d,
                                                    struct region *region, size_t depth)
{
  struct filter_node *node = model_array(region, 1, sizeof *node);

  if (depth == 0 || dice_below(d, 4) == 0) {
    model_draw_leaf(m, d, region, node);
    return node;
  }
  size_t which = dice_below(d, 5), n = which == 0 ? 1 : 2 + dice_below(d, 3);
  const struct filter_node **operands = model_array(region, n, sizeof(const struct filter_node *));
  for (size_t i = 0; i < n; i++)
    operands[i] = model_draw_filter(m, d, region, depth - 1);
  node->kind = which == 0 ? FILTER_NOT : which < 3 ? FILTER_AND : FILTER_OR;
  node->operands.v = operands;
  node->operands.n = n;
  return node;
}

#endif
