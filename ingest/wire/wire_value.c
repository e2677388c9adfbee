/* SPDX-License-Identifier: Apache-2.0 */
/* Values between their messages and their structs. */
#include "ingest/wire/wire_value.h"

#include <math.h>

#include "base/log.h"
#include "base/utf8.h"

static err_t read_number(double number, err_code_t field_error, struct value *out)
{
  if (!isfinite(number))
    FAIL(field_error, "expected a finite number, not %g", number);
  *out = (struct value){ .kind = VALUE_NUMBER, .number = number };
  return ERR_OK;
}

static err_t read_text(const char *text, err_code_t field_error, struct value *out)
{
  *out = (struct value){ .kind = VALUE_TEXT, .text = span_of_str(text) };
  if (!utf8_is_valid(out->text))
    FAIL(field_error, "expected UTF-8, not %s", log_quote(out->text));
  return ERR_OK;
}

static err_t read_list(const Sluice__V1__Value__List *from, err_code_t field_error, struct region *r, struct value *out)
{
  size_t n = from->n_booleans + from->n_integers + from->n_numbers + from->n_texts;
  struct value *to;

  TRY(region_array(r, n, sizeof *to, &to));
  *out = (struct value){ .kind = VALUE_LIST, .list = { to, n } };
  for (size_t i = 0; i < from->n_booleans; i++)
    *to++ = (struct value){ .kind = VALUE_BOOL, .is_true = from->booleans[i] };
  for (size_t i = 0; i < from->n_integers; i++)
    *to++ = (struct value){ .kind = VALUE_INTEGER, .integer = from->integers[i] };
  for (size_t i = 0; i < from->n_numbers; i++)
    TRY(read_number(from->numbers[i], field_error, to++));
  for (size_t i = 0; i < from->n_texts; i++)
    TRY(read_text(from->texts[i], field_error, to++));
  return ERR_OK;
}

err_t wire_value_read(const Sluice__V1__Value *from, err_code_t field_error, struct region *r, struct value *out)
{
  *out = (struct value){ .kind = VALUE_NULL };
  switch (from ? from->kind_case : SLUICE__V1__VALUE__KIND__NOT_SET) {
  case SLUICE__V1__VALUE__KIND_BOOLEAN:
    *out = (struct value){ .kind = VALUE_BOOL, .is_true = from->boolean };
    return ERR_OK;
  case SLUICE__V1__VALUE__KIND_INTEGER:
    *out = (struct value){ .kind = VALUE_INTEGER, .integer = from->integer };
    return ERR_OK;
  case SLUICE__V1__VALUE__KIND_NUMBER:
    return read_number(from->number, field_error, out);
  case SLUICE__V1__VALUE__KIND_TEXT:
    return read_text(from->text, field_error, out);
  case SLUICE__V1__VALUE__KIND_LIST:
    return read_list(from->list, field_error, r, out);
  default:
    return ERR_OK;
  }
}

/* Copy a text, for the zero byte after it. */
static err_t copy_text(struct span text, struct region *r, char **out)
{
  struct span copy;

  TRY(region_copy(r, text, &copy));
  *out = (char *)copy.p;
  return ERR_OK;
}

/* Append an element to the field of its kind. */
static err_t append(const struct value *element, struct region *r, Sluice__V1__Value__List *to)
{
  switch (element->kind) {
  case VALUE_BOOL:
    to->booleans[to->n_booleans++] = element->is_true;
    return ERR_OK;
  case VALUE_INTEGER:
    to->integers[to->n_integers++] = element->integer;
    return ERR_OK;
  case VALUE_NUMBER:
    to->numbers[to->n_numbers++] = element->number;
    return ERR_OK;
  case VALUE_TEXT:
    return copy_text(element->text, r, &to->texts[to->n_texts++]);
  case VALUE_NULL:
  case VALUE_LIST:
    break;
  }
  FAIL(ERR_WIRE, "a list of values that are null or lists");
}

static err_t make_list(const struct value *value, struct region *r, Sluice__V1__Value__List **out)
{
  Sluice__V1__Value__List *list;

  TRY(region_array(r, 1, sizeof *list, &list));
  sluice__v1__value__list__init(list);
  TRY(region_array(r, value->list.n, sizeof *list->booleans, &list->booleans));
  TRY(region_array(r, value->list.n, sizeof *list->integers, &list->integers));
  TRY(region_array(r, value->list.n, sizeof *list->numbers, &list->numbers));
  TRY(region_array(r, value->list.n, sizeof *list->texts, &list->texts));
  for (size_t i = 0; i < value->list.n; i++)
    TRY(append(&value->list.v[i], r, list));
  *out = list;
  return ERR_OK;
}

err_t wire_value_make(const struct value *value, struct region *r, Sluice__V1__Value **out)
{
  Sluice__V1__Value *message;

  TRY(region_array(r, 1, sizeof *message, &message));
  sluice__v1__value__init(message);
  *out = message;
  switch (value->kind) {
  case VALUE_NULL:
    return ERR_OK;
  case VALUE_BOOL:
    message->kind_case = SLUICE__V1__VALUE__KIND_BOOLEAN;
    message->boolean = value->is_true;
    return ERR_OK;
  case VALUE_INTEGER:
    message->kind_case = SLUICE__V1__VALUE__KIND_INTEGER;
    message->integer = value->integer;
    return ERR_OK;
  case VALUE_NUMBER:
    message->kind_case = SLUICE__V1__VALUE__KIND_NUMBER;
    message->number = value->number;
    return ERR_OK;
  case VALUE_TEXT:
    message->kind_case = SLUICE__V1__VALUE__KIND_TEXT;
    return copy_text(value->text, r, &message->text);
  case VALUE_LIST:
    message->kind_case = SLUICE__V1__VALUE__KIND_LIST;
    return make_list(value, r, &message->list);
  }
  return ERR_OK;
}

err_t wire_value_copy(const struct value *from, struct region *r, struct value *out)
{
  struct value *elements;

  *out = *from;
  if (from->kind == VALUE_TEXT)
    return region_copy(r, from->text, &out->text);
  if (from->kind != VALUE_LIST)
    return ERR_OK;
  TRY(region_array(r, from->list.n, sizeof *elements, &elements));
  for (size_t i = 0; i < from->list.n; i++) {
    elements[i] = from->list.v[i];
    if (elements[i].kind == VALUE_TEXT)
      TRY(region_copy(r, from->list.v[i].text, &elements[i].text));
  }
  out->list.v = elements;
  return ERR_OK;
}
