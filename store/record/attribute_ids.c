/* SPDX-License-Identifier: Apache-2.0 */
/* Assigning ids, and their stored form: the next id, then id, type, length of the name and name of each attribute. */
#include "store/record/attribute_ids.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/lmdb/env.h"

enum { NEXT_BYTES = 4, HEAD_BYTES = 4 };

void attribute_ids_fini(struct attribute_ids *a)
{
  attributes_free(&a->attributes);
  *a = (struct attribute_ids){ 0 };
}

size_t attribute_ids_find(const struct attribute_ids *a, uint16_t id, size_t hint)
{
  if (hint < a->attributes.n && a->ids[hint] == id)
    return hint;
  for (size_t i = 0; i < a->attributes.n; i++) {
    if (a->ids[i] == id)
      return i;
  }
  return ATTRIBUTE_NONE;
}

static err_t assign(const struct attribute_ids *stored, const struct attribute *attribute, uint32_t *next, uint16_t *id)
{
  size_t at = attributes_find(&stored->attributes, attribute->name, 0);

  if (at == ATTRIBUTE_NONE) {
    if (*next > UINT16_MAX)
      FAIL(ERR_STORE, "the store has no id left for attribute %s, after %d attributes: " ENV_REMEDY,
           log_quote(attribute->name), UINT16_MAX + 1);
    *id = (uint16_t)(*next)++;
    return ERR_OK;
  }
  if (stored->attributes.v[at].type != attribute->type)
    FAIL(ERR_CONFIG,
         "attributes.%.*s is %s in the store and %s in the configuration: give the attribute a new name; or start "
         "once without it, which drops its values, and then add it again",
         (int)attribute->name.n, (const char *)attribute->name.p, attribute_type_name(stored->attributes.v[at].type),
         attribute_type_name(attribute->type));
  *id = stored->ids[at];
  return ERR_OK;
}

err_t attribute_ids_assign(const struct attribute_ids *stored, const struct attributes *configured,
                           struct attribute_ids *out)
{
  AUTO(attribute_ids_fini) struct attribute_ids a = { .next = stored->next };

  TRY(attributes_copy(configured, &a.attributes));
  for (size_t i = 0; i < configured->n; i++)
    TRY(assign(stored, &configured->v[i], &a.next, &a.ids[i]));
  *out = a;
  a = (struct attribute_ids){ 0 };
  return ERR_OK;
}

/* Return the index of the attribute with the lowest id from `from` on, or ATTRIBUTE_NONE. */
static size_t find_lowest(const struct attribute_ids *a, uint32_t from)
{
  size_t lowest = ATTRIBUTE_NONE;

  for (size_t i = 0; i < a->attributes.n; i++) {
    if (a->ids[i] >= from && (lowest == ATTRIBUTE_NONE || a->ids[i] < a->ids[lowest]))
      lowest = i;
  }
  return lowest;
}

err_t attribute_ids_encode(const struct attribute_ids *a, struct region *region, struct span *out)
{
  size_t bytes = NEXT_BYTES, at;
  uint8_t *to;

  for (size_t i = 0; i < a->attributes.n; i++)
    bytes += HEAD_BYTES + a->attributes.v[i].name.n;
  TRY(region_array(region, bytes, 1, &to));
  *out = span_of(to, bytes);
  memcpy(to, &a->next, NEXT_BYTES);
  to += NEXT_BYTES;
  for (uint32_t from = 0; (at = find_lowest(a, from)) != ATTRIBUTE_NONE; from = a->ids[at] + 1u) {
    const struct attribute *attribute = &a->attributes.v[at];
    memcpy(to, &a->ids[at], 2);
    to[2] = (uint8_t)attribute->type;
    to[3] = (uint8_t)attribute->name.n;
    memcpy(to + HEAD_BYTES, attribute->name.p, attribute->name.n);
    to += HEAD_BYTES + attribute->name.n;
  }
  return ERR_OK;
}

static err_t decode_one(const uint8_t **from, const uint8_t *end, struct attribute *attribute, uint16_t *id)
{
  const uint8_t *p = *from;

  if (end - p < HEAD_BYTES || end - p < HEAD_BYTES + p[3] || p[2] >= N_ATTRIBUTE_TYPES ||
      !attribute_name_is_valid(span_of(p + HEAD_BYTES, p[3])))
    FAIL(ERR_STORE_CORRUPT, "an attribute of the list is damaged");
  memcpy(id, p, 2);
  *attribute = (struct attribute){ span_of(p + HEAD_BYTES, p[3]), (enum attribute_type)p[2] };
  *from = p + HEAD_BYTES + p[3];
  return ERR_OK;
}

err_t attribute_ids_decode(struct span bytes, struct attribute_ids *out)
{
  struct attribute_ids a = { 0 };
  struct attribute v[ATTRIBUTES_MAX];
  size_t n = 0;

  if (bytes.n < NEXT_BYTES)
    FAIL(ERR_STORE_CORRUPT, "the list of attributes is cut short");
  memcpy(&a.next, bytes.p, NEXT_BYTES);
  const uint8_t *end = bytes.p + bytes.n;
  for (const uint8_t *from = bytes.p + NEXT_BYTES; from < end; n++) {
    if (n == ATTRIBUTES_MAX)
      FAIL(ERR_STORE_CORRUPT, "the list has more than %d attributes", ATTRIBUTES_MAX);
    TRY(decode_one(&from, end, &v[n], &a.ids[n]));
    if (a.ids[n] >= a.next)
      FAIL(ERR_STORE_CORRUPT, "an attribute of the list has an id that was never given");
  }
  TRY(attributes_copy(&(struct attributes){ v, n }, &a.attributes));
  *out = a;
  return ERR_OK;
}
