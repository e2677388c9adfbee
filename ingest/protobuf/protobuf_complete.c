/* SPDX-License-Identifier: Apache-2.0 */
/* From the outside to the inside, so that errors have a place; what a message stands for is known once it is complete.
 */
#include "ingest/protobuf/protobuf_complete.h"

#include "ingest/json/json_make.h"
#include "ingest/protobuf/protobuf_budget.h"
#include "ingest/protobuf/protobuf_scalar.h"

static err_t complete_message(struct protobuf_budget *budget, const struct value_place *place,
                              const struct protobuf_type *type, json_t *object);

static err_t add_default(struct protobuf_budget *budget, const struct value_place *place,
                         const struct protobuf_field *field, json_t *object)
{
  json_t *value = NULL;

  TRY(protobuf_budget_take(budget, place, 1));
  if (field->is_repeated)
    TRY(json_make_keep(field->is_map ? json_object() : json_array(), &value));
  else
    TRY(protobuf_scalar_default(field, &value));
  return json_make_member(object, field->name, value);
}

static err_t give_time(const struct value_place *place, const json_t *object, json_t **out)
{
  const json_t *seconds = json_object_get(object, "seconds"), *nanos = json_object_get(object, "nanos");
  int64_t ms, fraction = json_integer_value(nanos);
  char text[VALUE_PLACE_BYTES];

  fraction = fraction / 1000000 - (fraction % 1000000 < 0);
  if (__builtin_mul_overflow((int64_t)json_integer_value(seconds), 1000, &ms) ||
      __builtin_add_overflow(ms, fraction, &ms))
    FAIL(ERR_WIRE, "%s: a time of %" JSON_INTEGER_FORMAT " seconds", value_place_text(place, text),
         json_integer_value(seconds));
  return json_make_keep(json_integer(ms), out);
}

/* Complete a message.
 *
 * out  a new reference to it, or to what it stands for */
static err_t complete_value(struct protobuf_budget *budget, const struct value_place *place,
                            const struct protobuf_type *type, json_t *object, json_t **out)
{
  json_t *seconds = NULL, *value = NULL;

  TRY(complete_message(budget, place, type, object));
  if (type->meaning == PROTOBUF_TIMESTAMP)
    seconds = json_object_get(object, "seconds");
  if (json_is_integer(seconds))
    return give_time(place, object, out);
  if (type->meaning == PROTOBUF_WRAPPER)
    value = json_object_get(object, "value");
  *out = json_incref(value ? value : object);
  return ERR_OK;
}

static err_t complete_list(struct protobuf_budget *budget, const struct value_place *at,
                           const struct protobuf_type *type, json_t *list)
{
  for (size_t i = 0; i < json_array_size(list); i++) {
    const struct value_place place = value_place_in(at, NULL, i);
    json_t *value = NULL;
    TRY(complete_value(budget, &place, type, json_array_get(list, i), &value));
    if (json_array_set_new(list, i, value) != 0)
      FAIL(ERR_MEMORY, "no memory for an element of JSON");
  }
  return ERR_OK;
}

static err_t complete_map(struct protobuf_budget *budget, const struct value_place *at,
                          const struct protobuf_type *entry, json_t *map)
{
  const struct protobuf_field *field = protobuf_schema_find(entry, 2);

  if (!protobuf_schema_is_message(field))
    return ERR_OK;
  for (void *i = json_object_iter(map); i; i = json_object_iter_next(map, i)) {
    const struct value_place place = value_place_in(at, json_object_iter_key(i), 0);
    json_t *value = NULL;
    TRY(complete_value(budget, &place, field->type, json_object_iter_value(i), &value));
    if (json_object_iter_set_new(map, i, value) != 0)
      FAIL(ERR_MEMORY, "no memory for a member of JSON");
  }
  return ERR_OK;
}

static err_t complete_field(struct protobuf_budget *budget, const struct value_place *up,
                            const struct protobuf_field *field, json_t *object)
{
  const struct value_place place = value_place_in(up, field->name, 0);
  json_t *there = json_object_get(object, field->name), *value = NULL;

  if (!there)
    return field->has_default ? add_default(budget, &place, field, object) : ERR_OK;
  if (field->is_map)
    return complete_map(budget, &place, field->type, there);
  if (!protobuf_schema_is_message(field))
    return ERR_OK;
  if (field->is_repeated)
    return complete_list(budget, &place, field->type, there);
  TRY(complete_value(budget, &place, field->type, there, &value));
  return json_make_member(object, field->name, value);
}

static err_t complete_message(struct protobuf_budget *budget, const struct value_place *place,
                              const struct protobuf_type *type, json_t *object)
{
  for (size_t i = 0; i < type->n; i++)
    TRY(complete_field(budget, place, &type->fields[i], object));
  return ERR_OK;
}

err_t protobuf_complete(const struct protobuf_type *type, struct protobuf_budget *budget, json_t *object)
{
  return complete_message(budget, NULL, type, object);
}
