/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding and encoding items. */
#include <stdio.h>

#include "base/attributes.h"
#include "base/log.h"
#include "base/utf8.h"
#include "ingest/json/numbers.h"
#include "ingest/wire/wire_value.h"

enum { PATH_BYTES = 320 };

static err_t read_floats(const Sluice__V1__Vector *vector, struct span space, const char *field, struct region *r,
                         struct floats *out)
{
  char path[PATH_BYTES];

  if (!vector)
    return ERR_OK;
  snprintf(path, sizeof path, "parts[%s].%s", log_quote(space), field);
  return wire_vector_read(vector, path, ERR_ITEM, r, out);
}

static err_t read_part(const Sluice__V1__Item__PartsEntry *entry, struct region *r, struct part *out)
{
  const Sluice__V1__Part *part = entry->value;
  struct span space = span_of_str(entry->key);

  if (space.n < 1 || space.n > SPACE_NAME_MAX)
    FAIL(ERR_ITEM, "parts[%s]: the name of a space has 1 to %d bytes, not %zu", log_quote(space), SPACE_NAME_MAX,
         space.n);
  if (!utf8_is_valid(space))
    FAIL(ERR_ITEM, "parts[%s]: the name of a space must be UTF-8", log_quote(space));
  out->space = space;
  if (!part) /* a map entry without a value is an empty part */
    return ERR_OK;
  TRY(read_floats(part->vector, space, "vector", r, &out->vector));
  TRY(read_floats(part->components, space, "components", r, &out->components));
  TRY(read_floats(part->item_gate, space, "item_gate", r, &out->item_gate));
  out->codes = span_of(part->codes.data, part->codes.len);
  return ERR_OK;
}

/* Is the space among the parts? A search through at most WIRE_PARTS_MAX parts. */
static bool find_space(const struct part *parts, size_t n, struct span space)
{
  for (size_t i = 0; i < n; i++) {
    if (span_equal(parts[i].space, space))
      return true;
  }
  return false;
}

static bool find_attribute(const struct attribute_value *attributes, size_t n, struct span name)
{
  for (size_t i = 0; i < n; i++) {
    if (span_equal(attributes[i].name, name))
      return true;
  }
  return false;
}

static err_t verify_text(struct span text)
{
  if (text.n > ATTRIBUTE_TEXT_MAX)
    FAIL(ERR_ITEM, "%s has %zu bytes, at most %d", log_quote(text), text.n, ATTRIBUTE_TEXT_MAX);
  return ERR_OK;
}

/* Verify the limits of a value before anything is made of it. */
static err_t verify_value(const struct value *value)
{
  if (value->kind == VALUE_TEXT)
    return verify_text(value->text);
  if (value->kind != VALUE_LIST)
    return ERR_OK;
  if (value->list.n > ATTRIBUTE_SET_MAX)
    FAIL(ERR_ITEM, "%zu elements, at most %d", value->list.n, ATTRIBUTE_SET_MAX);
  for (size_t i = 0; i < value->list.n; i++) {
    if (value->list.v[i].kind == VALUE_TEXT)
      TRY(verify_text(value->list.v[i].text));
  }
  return ERR_OK;
}

static err_t read_attribute(const Sluice__V1__Item__AttributesEntry *entry, struct region *r,
                            struct attribute_value *out)
{
  out->name = span_of_str(entry->key);
  if (!attribute_name_is_valid(out->name))
    FAIL(ERR_ITEM, "a name is a letter or _, then letters, digits and _, at most %d bytes", ATTRIBUTE_NAME_MAX);
  TRY(wire_value_read(entry->value, ERR_ITEM, r, &out->value));
  return verify_value(&out->value);
}

static err_t read_attributes(const Sluice__V1__Item *item, struct region *r, struct item_change *out)
{
  struct attribute_value *attributes;

  TRY(region_array(r, item->n_attributes, sizeof *attributes, &attributes));
  for (size_t i = 0; i < item->n_attributes; i++) {
    err_code_t err = read_attribute(item->attributes[i], r, &attributes[i]);
    if (err == ERR_ITEM)
      FAIL(ERR_ITEM, "attributes[%s]: %s", log_quote(span_of_str(item->attributes[i]->key)), err_message());
    TRY(err);
    if (find_attribute(attributes, i, attributes[i].name))
      FAIL(ERR_ITEM, "attributes[%s]: the attribute occurs twice", log_quote(attributes[i].name));
  }
  out->attributes = attributes;
  out->n_attributes = item->n_attributes;
  return ERR_OK;
}

static err_t decode(struct span value, enum wire_format format, struct region *r, struct item_change *out)
{
  ProtobufCMessage *message;
  struct part *parts;

  TRY(wire_message_read(value, format, &sluice__v1__item__descriptor, ERR_ITEM, r, &message));
  const Sluice__V1__Item *item = (const Sluice__V1__Item *)message;
  TRY(region_array(r, item->n_parts, sizeof *parts, &parts));
  for (size_t i = 0; i < item->n_parts; i++) {
    TRY(read_part(item->parts[i], r, &parts[i]));
    if (find_space(parts, i, parts[i].space))
      FAIL(ERR_ITEM, "parts[%s]: the space occurs twice", log_quote(parts[i].space));
  }
  out->parts = parts;
  out->n_parts = item->n_parts;
  return read_attributes(item, r, out);
}

static err_t copy_floats(struct floats *floats, struct region *r)
{
  float *copy;

  TRY(region_array(r, floats->n, sizeof *copy, &copy));
  if (floats->n)
    memcpy(copy, floats->v, floats->n * sizeof *copy);
  floats->v = copy;
  return ERR_OK;
}

/* Copy the parts and everything that they refer to into a region. */
static err_t copy_parts(struct item_change *change, struct region *r)
{
  struct part *parts;

  TRY(region_array(r, change->n_parts, sizeof *parts, &parts));
  for (size_t i = 0; i < change->n_parts; i++) {
    parts[i] = change->parts[i];
    TRY(region_copy(r, parts[i].space, &parts[i].space));
    TRY(region_copy(r, parts[i].codes, &parts[i].codes));
    TRY(copy_floats(&parts[i].vector, r));
    TRY(copy_floats(&parts[i].components, r));
    TRY(copy_floats(&parts[i].item_gate, r));
  }
  change->parts = parts;
  return ERR_OK;
}

static err_t copy_attributes(struct item_change *change, struct region *r)
{
  struct attribute_value *attributes;

  TRY(region_array(r, change->n_attributes, sizeof *attributes, &attributes));
  for (size_t i = 0; i < change->n_attributes; i++) {
    TRY(region_copy(r, change->attributes[i].name, &attributes[i].name));
    TRY(wire_value_copy(&change->attributes[i].value, r, &attributes[i].value));
  }
  change->attributes = attributes;
  return ERR_OK;
}

static err_t copy_all(struct item_change *change, struct region *r)
{
  TRY(copy_parts(change, r));
  return copy_attributes(change, r);
}

/* Keep only the parts and attributes, and free the memory that only decoding needed. Otherwise a batch would keep it
 * for each message. */
static err_t keep_result_alone(struct region *r, struct region_mark start, struct item_change *change)
{
  AUTO(region_fini) struct region aside = { 0 };

  TRY(copy_all(change, &aside));
  region_rewind(r, start);
  return copy_all(change, r);
}

err_t wire_decode_item(struct span value, enum wire_format format, struct region *r, struct item_change *out)
{
  struct region_mark start = region_mark(r);

  TRY(wire_verify_value(value));
  struct wire_limit limit = wire_limit_begin(r, value.n);
  struct item_change whole = *out;
  err_code_t err = decode(value, format, r, &whole);
  if (err == ERR_OK && r->taken_bytes - start.taken_bytes > WIRE_KEPT_WHOLE)
    err = keep_result_alone(r, start, &whole);
  if (err == ERR_OK)
    *out = whole;
  else /* a batch of bad records then takes no more memory than the largest of them */
    region_rewind(r, start);
  return wire_limit_end(&limit, err, ERR_ITEM);
}

/* Make a vector message: with numbers for JSON, with their bytes for protobuf. */
static err_t make_vector(struct floats floats, enum wire_format format, struct region *r, Sluice__V1__Vector **out)
{
  Sluice__V1__Vector *vector;
  uint8_t *bytes;

  if (floats.n == 0)
    return ERR_OK;
  TRY(region_array(r, 1, sizeof *vector, &vector));
  sluice__v1__vector__init(vector);
  if (format == WIRE_JSON) {
    vector->values = (float *)floats.v;
    vector->n_values = floats.n;
  } else {
    TRY(region_array(r, floats.n, 4, &bytes));
    numbers_encode_f32(floats.v, floats.n, bytes);
    vector->data = (ProtobufCBinaryData){ .len = floats.n * 4, .data = bytes };
  }
  *out = vector;
  return ERR_OK;
}

static err_t make_entry(const struct part *part, enum wire_format format, struct region *r,
                        Sluice__V1__Item__PartsEntry **out)
{
  struct span space;
  Sluice__V1__Part *value;
  Sluice__V1__Item__PartsEntry *entry;

  TRY(region_array(r, 1, sizeof *entry, &entry));
  TRY(region_array(r, 1, sizeof *value, &value));
  TRY(region_copy(r, part->space, &space)); /* for the zero byte after it */
  sluice__v1__item__parts_entry__init(entry);
  sluice__v1__part__init(value);
  TRY(make_vector(part->vector, format, r, &value->vector));
  TRY(make_vector(part->components, format, r, &value->components));
  TRY(make_vector(part->item_gate, format, r, &value->item_gate));
  value->codes = (ProtobufCBinaryData){ .len = part->codes.n, .data = (uint8_t *)part->codes.p };
  entry->key = (char *)space.p;
  entry->value = value;
  *out = entry;
  return ERR_OK;
}

static err_t make_attribute(const struct attribute_value *attribute, struct region *r,
                            Sluice__V1__Item__AttributesEntry **out)
{
  Sluice__V1__Item__AttributesEntry *entry;
  struct span name;

  TRY(region_array(r, 1, sizeof *entry, &entry));
  TRY(region_copy(r, attribute->name, &name)); /* for the zero byte after it */
  sluice__v1__item__attributes_entry__init(entry);
  entry->key = (char *)name.p;
  TRY(wire_value_make(&attribute->value, r, &entry->value));
  *out = entry;
  return ERR_OK;
}

err_t wire_encode_item(const struct item_change *change, enum wire_format format, struct region *r, struct span *out)
{
  Sluice__V1__Item item = SLUICE__V1__ITEM__INIT;

  TRY(region_array(r, change->n_parts, sizeof *item.parts, &item.parts));
  for (size_t i = 0; i < change->n_parts; i++)
    TRY(make_entry(&change->parts[i], format, r, &item.parts[i]));
  item.n_parts = change->n_parts;
  TRY(region_array(r, change->n_attributes, sizeof *item.attributes, &item.attributes));
  for (size_t i = 0; i < change->n_attributes; i++)
    TRY(make_attribute(&change->attributes[i], r, &item.attributes[i]));
  item.n_attributes = change->n_attributes;
  return wire_message_write(&item.base, format, NULL, r, out);
}
