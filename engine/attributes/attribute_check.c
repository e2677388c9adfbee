/* SPDX-License-Identifier: Apache-2.0 */
/* One check for each type. */
#include "engine/attributes/attribute_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { SHOWN_BYTES = 400 };

/* Print a value for an error. */
static void print_value(const struct value *value, char out[SHOWN_BYTES])
{
  char number[32];

  switch (value->kind) {
  case VALUE_NULL:
    snprintf(out, SHOWN_BYTES, "null");
    break;
  case VALUE_BOOL:
    snprintf(out, SHOWN_BYTES, "%s", value->is_true ? "true" : "false");
    break;
  case VALUE_INTEGER:
    snprintf(out, SHOWN_BYTES, "the integer %" PRId64, value->integer);
    break;
  case VALUE_NUMBER:
    snprintf(number, sizeof number, "%.17g", value->number);
    snprintf(out, SHOWN_BYTES, "the number %s%s", number, strpbrk(number, ".en") ? "" : ".0");
    break;
  case VALUE_TEXT:
    snprintf(out, SHOWN_BYTES, "the text %s", log_quote(value->text));
    break;
  case VALUE_LIST:
    snprintf(out, SHOWN_BYTES, "a list of %zu", value->list.n);
    break;
  }
}

static err_t fail(const struct attribute *attribute, const char *expected, const struct value *value)
{
  char shown[SHOWN_BYTES];

  print_value(value, shown);
  FAIL(ERR_ITEM, "attributes[%s]: expected %s, not %s", log_quote(attribute->name), expected, shown);
}

static err_t verify_text(const struct attribute *attribute, const struct value *value)
{
  if (value->kind != VALUE_TEXT)
    return fail(attribute, attribute->type == ATTRIBUTE_KEYWORDS ? "only texts in the list" : "text", value);
  if (value->text.n > ATTRIBUTE_TEXT_MAX)
    FAIL(ERR_ITEM, "attributes[%s]: a text of %zu bytes, at most %d", log_quote(attribute->name), value->text.n,
         ATTRIBUTE_TEXT_MAX);
  return ERR_OK;
}

static int compare_texts(const void *a, const void *b)
{
  return span_compare(((const struct value *)a)->text, ((const struct value *)b)->text);
}

/* Is the set in its kept form already, as one of the store is? */
static bool is_sorted(const struct value *set)
{
  for (size_t i = 1; i < set->list.n; i++) {
    if (compare_texts(&set->list.v[i - 1], &set->list.v[i]) >= 0)
      return false;
  }
  return true;
}

static err_t sort_set(struct region *region, struct value *set)
{
  struct value *v;
  size_t n = 0;

  if (is_sorted(set))
    return ERR_OK;
  TRY(region_array(region, set->list.n, sizeof *v, &v));
  memcpy(v, set->list.v, set->list.n * sizeof *v);
  qsort(v, set->list.n, sizeof *v, compare_texts);
  for (size_t i = 0; i < set->list.n; i++) {
    if (n == 0 || compare_texts(&v[n - 1], &v[i]) != 0)
      v[n++] = v[i];
  }
  set->list.v = v;
  set->list.n = n;
  return ERR_OK;
}

static err_t normalize_set(const struct attribute *attribute, struct region *region, struct value *value)
{
  if (value->kind != VALUE_LIST)
    return fail(attribute, "a list of texts", value);
  if (value->list.n > ATTRIBUTE_SET_MAX)
    FAIL(ERR_ITEM, "attributes[%s]: %zu texts, at most %d", log_quote(attribute->name), value->list.n,
         ATTRIBUTE_SET_MAX);
  for (size_t i = 0; i < value->list.n; i++)
    TRY(verify_text(attribute, &value->list.v[i]));
  return sort_set(region, value);
}

static err_t normalize_number(const struct attribute *attribute, struct value *value)
{
  if (value->kind == VALUE_INTEGER)
    *value = (struct value){ .kind = VALUE_NUMBER, .number = (double)value->integer };
  if (value->kind != VALUE_NUMBER || !isfinite(value->number))
    return fail(attribute, "a finite number", value);
  value->number += 0.0; /* -0 becomes 0 */
  return ERR_OK;
}

err_t attribute_normalize(const struct attribute *attribute, struct region *region, struct value *value)
{
  if (value->kind == VALUE_NULL)
    return ERR_OK;
  switch (attribute->type) {
  case ATTRIBUTE_BOOL:
    return value->kind == VALUE_BOOL ? ERR_OK : fail(attribute, "true or false", value);
  case ATTRIBUTE_KEYWORD:
    return verify_text(attribute, value);
  case ATTRIBUTE_KEYWORDS:
    return normalize_set(attribute, region, value);
  case ATTRIBUTE_INTEGER:
    return value->kind == VALUE_INTEGER ? ERR_OK
                                        : fail(attribute, "an integer, without a decimal point or an exponent", value);
  case ATTRIBUTE_NUMBER:
    return normalize_number(attribute, value);
  case ATTRIBUTE_TIME:
    if (value->kind == VALUE_INTEGER && value->integer >= 0)
      return ERR_OK;
    return fail(attribute, "a time (an integer: milliseconds since 1970, not negative)", value);
  case N_ATTRIBUTE_TYPES:
    break;
  }
  return fail(attribute, "a type", value);
}
