/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding what users have seen. */
#include "base/item.h"
#include "ingest/wire/message_field.h"
#include "ingest/wire/wire_message.h"

static err_t read_items(const Sluice__V1__Seen *seen, struct region *r, struct seen_change *out)
{
  struct span *keys;

  if (seen->n_items == 0)
    FAIL(ERR_ITEM, "items: there are none; send a null value to forget the user");
  TRY(region_array(r, seen->n_items, sizeof *keys, &keys));
  for (size_t i = 0; i < seen->n_items; i++) {
    keys[i] = span_of(seen->items[i].data, seen->items[i].len);
    if (keys[i].n < 1 || keys[i].n > ITEM_KEY_MAX)
      FAIL(ERR_ITEM, "items[%zu]: a key has 1 to %d bytes, not %zu", i, ITEM_KEY_MAX, keys[i].n);
  }
  out->items = keys;
  out->n_items = seen->n_items;
  return ERR_OK;
}

static err_t read_fields(const Sluice__V1__Seen *seen, struct region *r, struct seen_change *out)
{
  TRY(read_items(seen, r, out));
  if (!message_has(&seen->base, "time_unix_ms"))
    return ERR_OK;
  if (seen->time_unix_ms < 0)
    FAIL(ERR_ITEM, "time_unix_ms: %lld is before 1970", (long long)seen->time_unix_ms);
  out->time_unix_ms = seen->time_unix_ms;
  return ERR_OK;
}

static err_t decode(struct span value, enum wire_format format, struct region *r, struct seen_change *out)
{
  ProtobufCMessage *message;

  TRY(wire_message_read(value, format, &sluice__v1__seen__descriptor, ERR_ITEM, r, &message));
  return read_fields((const Sluice__V1__Seen *)message, r, out);
}

static err_t copy_items(struct seen_change *change, struct region *r)
{
  struct span *keys;

  TRY(region_array(r, change->n_items, sizeof *keys, &keys));
  for (size_t i = 0; i < change->n_items; i++)
    TRY(region_copy(r, change->items[i], &keys[i]));
  change->items = keys;
  return ERR_OK;
}

/* Keep only the keys, and free the memory that only decoding needed: as in wire_decode_item(). */
static err_t keep_items_alone(struct region *r, struct region_mark start, struct seen_change *change)
{
  AUTO(region_fini) struct region aside = { 0 };

  TRY(copy_items(change, &aside));
  region_rewind(r, start);
  return copy_items(change, r);
}

err_t wire_decode_seen(struct span value, enum wire_format format, struct region *r, struct seen_change *out)
{
  struct region_mark start = region_mark(r);

  TRY(wire_verify_value(value));
  struct wire_limit limit = wire_limit_begin(r, value.n);
  struct seen_change whole = *out;
  err_code_t err = decode(value, format, r, &whole);
  if (err == ERR_OK && r->taken_bytes - start.taken_bytes > WIRE_KEPT_WHOLE)
    err = keep_items_alone(r, start, &whole);
  if (err == ERR_OK)
    *out = whole;
  else
    region_rewind(r, start);
  return wire_limit_end(&limit, err, ERR_ITEM);
}
