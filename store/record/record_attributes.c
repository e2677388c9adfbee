/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes in bytes. */
#include "store/record/record_attributes.h"

#include <assert.h>
#include <math.h>

enum { HEAD_BYTES = 3, LENGTH_BYTES = 2, NUMBER_BYTES = 8 };

/* The kind of an attribute's kept form. */
static enum value_kind kind_of(enum attribute_type type)
{
  switch (type) {
  case ATTRIBUTE_BOOL:
    return VALUE_BOOL;
  case ATTRIBUTE_KEYWORD:
    return VALUE_TEXT;
  case ATTRIBUTE_KEYWORDS:
    return VALUE_LIST;
  case ATTRIBUTE_NUMBER:
    return VALUE_NUMBER;
  case ATTRIBUTE_INTEGER:
  case ATTRIBUTE_TIME:
  case N_ATTRIBUTE_TYPES:
    break;
  }
  return VALUE_INTEGER;
}

static size_t text_bytes(struct span text)
{
  return LENGTH_BYTES + text.n;
}

static size_t value_bytes(const struct value *value)
{
  size_t sum = LENGTH_BYTES;

  switch (value->kind) {
  case VALUE_NULL:
    return 0;
  case VALUE_BOOL:
    return 1;
  case VALUE_INTEGER:
  case VALUE_NUMBER:
    return NUMBER_BYTES;
  case VALUE_TEXT:
    return text_bytes(value->text);
  case VALUE_LIST:
    for (size_t i = 0; i < value->list.n; i++)
      sum += text_bytes(value->list.v[i].text);
    return sum;
  }
  return 0;
}

/* Find the attributes that are stored, one after the other: `*at` is the next one to look at. */
static const struct attribute_value *next_stored(const struct item_change *item, const struct attribute_ids *ids,
                                                 size_t *at, size_t *index)
{
  while (*at < item->n_attributes) {
    const struct attribute_value *attribute = &item->attributes[(*at)++];
    *index = attributes_find(&ids->attributes, attribute->name, *index + 1);
    if (*index != ATTRIBUTE_NONE && attribute->value.kind != VALUE_NULL)
      return attribute;
  }
  return NULL;
}

size_t record_attributes_bytes(const struct item_change *item, const struct attribute_ids *ids)
{
  const struct attribute_value *attribute;
  size_t sum = 0, at = 0, index = ATTRIBUTE_NONE;

  while ((attribute = next_stored(item, ids, &at, &index)))
    sum += HEAD_BYTES + value_bytes(&attribute->value);
  return sum ? LENGTH_BYTES + sum : 0;
}

static uint8_t *put(uint8_t *to, const void *from, size_t n)
{
  if (n)
    memcpy(to, from, n);
  return to + n;
}

static uint8_t *put_length(uint8_t *to, size_t n)
{
  uint16_t length = (uint16_t)n;

  assert(n <= UINT16_MAX);
  return put(to, &length, LENGTH_BYTES);
}

static uint8_t *put_text(uint8_t *to, struct span text)
{
  to = put_length(to, text.n);
  return put(to, text.p, text.n);
}

static uint8_t *put_value(uint8_t *to, const struct value *value)
{
  switch (value->kind) {
  case VALUE_NULL:
    break;
  case VALUE_BOOL:
    *to++ = value->is_true;
    break;
  case VALUE_INTEGER:
    return put(to, &value->integer, NUMBER_BYTES);
  case VALUE_NUMBER:
    return put(to, &value->number, NUMBER_BYTES);
  case VALUE_TEXT:
    return put_text(to, value->text);
  case VALUE_LIST:
    to = put_length(to, value->list.n);
    for (size_t i = 0; i < value->list.n; i++)
      to = put_text(to, value->list.v[i].text);
    break;
  }
  return to;
}

uint8_t *record_attributes_put(const struct item_change *item, const struct attribute_ids *ids, uint8_t *to)
{
  const struct attribute_value *attribute;
  size_t n = 0, at = 0, index = ATTRIBUTE_NONE;
  uint8_t *begin = to;

  for (to += LENGTH_BYTES; (attribute = next_stored(item, ids, &at, &index)); n++) {
    assert(attribute->value.kind == kind_of(ids->attributes.v[index].type));
    to = put(to, &ids->ids[index], 2);
    *to++ = (uint8_t)attribute->value.kind;
    to = put_value(to, &attribute->value);
  }
  if (n == 0)
    return begin;
  put_length(begin, n);
  return to;
}

/* Take n bytes off the section. Returns NULL if it does not have them. */
static const uint8_t *take(struct span *section, size_t n)
{
  const uint8_t *taken = section->p;

  if (section->n < n)
    return NULL;
  *section = span_of(section->p + n, section->n - n);
  return taken;
}

static bool take_length(struct span *section, size_t *out)
{
  const uint8_t *bytes = take(section, LENGTH_BYTES);
  uint16_t length;

  if (!bytes)
    return false;
  memcpy(&length, bytes, LENGTH_BYTES);
  *out = length;
  return true;
}

static bool take_text(struct span *section, struct span *out)
{
  size_t n;

  if (!take_length(section, &n))
    return false;
  *out = span_of(take(section, n), n);
  return out->p != NULL && n <= ATTRIBUTE_TEXT_MAX;
}

/* Take the head of an attribute. The kind is one that records have. */
static bool take_head(struct span *section, uint16_t *id, enum value_kind *kind)
{
  const uint8_t *bytes = take(section, HEAD_BYTES);

  if (!bytes || bytes[2] <= VALUE_NULL || bytes[2] > VALUE_LIST)
    return false;
  memcpy(id, bytes, 2);
  *kind = (enum value_kind)bytes[2];
  return true;
}

/* Take a value within the limits of attributes.
 *
 * elements  room for those of a list; NULL: they are only skipped
 */
static bool take_value(struct span *section, enum value_kind kind, struct value *elements, struct value *out)
{
  const uint8_t *bytes = section->p;
  struct span text;
  size_t n;

  *out = (struct value){ .kind = kind };
  switch (kind) {
  case VALUE_BOOL:
    out->is_true = section->n > 0 && *bytes;
    return take(section, 1) && *bytes <= 1;
  case VALUE_INTEGER:
  case VALUE_NUMBER:
    if (!take(section, NUMBER_BYTES))
      return false;
    memcpy(kind == VALUE_INTEGER ? (void *)&out->integer : (void *)&out->number, bytes, NUMBER_BYTES);
    return kind == VALUE_INTEGER || isfinite(out->number);
  case VALUE_TEXT:
    return take_text(section, &out->text);
  case VALUE_LIST:
    if (!take_length(section, &n) || n > ATTRIBUTE_SET_MAX)
      return false;
    out->list.v = elements;
    out->list.n = n;
    for (size_t i = 0; i < n; i++) {
      if (!take_text(section, &text))
        return false;
      if (elements)
        elements[i] = (struct value){ .kind = VALUE_TEXT, .text = text };
    }
    return true;
  case VALUE_NULL:
    break;
  }
  return false;
}

err_t record_attributes_verify(struct span section)
{
  enum value_kind kind;
  struct value value;
  uint16_t id;
  size_t n;

  bool is_whole = take_length(&section, &n) && n > 0 && n <= ATTRIBUTES_MAX;
  for (size_t i = 0; is_whole && i < n; i++)
    is_whole = take_head(&section, &id, &kind) && take_value(&section, kind, NULL, &value);
  if (!is_whole || section.n > 0)
    FAIL(ERR_STORE_CORRUPT, "its attributes are not what their number says, or beyond the limits of attributes");
  return ERR_OK;
}

/* Read one attribute. A list is gone through twice: the first time only to skip it, and to know its length. */
static err_t take_one(struct span *section, const struct attribute_ids *ids, size_t *index, struct region *region,
                      struct item_change *out)
{
  struct value *elements = NULL, value;
  enum value_kind kind = VALUE_NULL;
  uint16_t id = 0;

  bool is_whole = take_head(section, &id, &kind);
  struct span before = *section;
  is_whole = take_value(section, kind, NULL, &value) && is_whole;
  assert(is_whole); /* record_attributes_verify() has gone through it */
  (void)is_whole;
  *index = attribute_ids_find(ids, id, *index + 1);
  if (*index == ATTRIBUTE_NONE)
    return ERR_OK;
  if (kind != kind_of(ids->attributes.v[*index].type))
    FAIL(ERR_STORE_CORRUPT, "it has an attribute of another type than table `meta` says");
  if (ids->attributes.v[*index].type == ATTRIBUTE_TIME && value.integer < 0)
    FAIL(ERR_STORE_CORRUPT, "it has a time before 1970");
  if (kind == VALUE_LIST) {
    TRY(region_array(region, value.list.n, sizeof *elements, &elements));
    take_value(&before, kind, elements, &value);
  }
  out->attributes[out->n_attributes++] = (struct attribute_value){ ids->attributes.v[*index].name, value };
  return ERR_OK;
}

err_t record_attributes_take(struct span section, const struct attribute_ids *ids, struct region *region,
                             struct item_change *out)
{
  size_t index = ATTRIBUTE_NONE, n;

  if (!take_length(&section, &n))
    return ERR_OK;
  TRY(region_array(region, n, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < n; i++)
    TRY(take_one(&section, ids, &index, region, out));
  return ERR_OK;
}
