/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a chunk, and its stored form: a sealed head, then time, length and key of each item. */
#include "store/seen/seen_chunk.h"

#include <assert.h>

#include "store/lmdb/seal.h"

struct head {
  uint64_t seal;
  uint64_t n_before;
  int64_t newest_unix_ms;
  uint64_t n;
};

/* Bytes of an item besides its key. */
enum { TIME_BYTES = 8, LENGTH_BYTES = 2, ITEM_BYTES = TIME_BYTES + LENGTH_BYTES };

static_assert(sizeof(struct head) + ITEM_BYTES + ITEM_KEY_MAX <= SEEN_CHUNK_BYTES, "every item fits into a chunk");

bool seen_chunk_has_room(const struct seen_chunk *c, struct span key)
{
  return c->n < SEEN_CHUNK_ITEMS && sizeof(struct head) + c->bytes + ITEM_BYTES + key.n <= SEEN_CHUNK_BYTES;
}

void seen_chunk_push(struct seen_chunk *c, struct seen_item item)
{
  assert(seen_chunk_has_room(c, item.key));
  if (c->n == 0 || item.time_unix_ms > c->newest_unix_ms)
    c->newest_unix_ms = item.time_unix_ms;
  c->items[c->n++] = item;
  c->bytes += ITEM_BYTES + item.key.n;
}

/* newest_unix_ms is left as it is: the caller adds the item again, with a time at least as new. */
bool seen_chunk_take(struct seen_chunk *c, struct span key, struct seen_item *out)
{
  for (size_t i = 0; i < c->n; i++) {
    if (!span_equal(c->items[i].key, key))
      continue;
    *out = c->items[i];
    memmove(c->items + i, c->items + i + 1, (c->n - i - 1) * sizeof *c->items);
    c->n--;
    c->bytes -= ITEM_BYTES + key.n;
    return true;
  }
  return false;
}

size_t seen_chunk_encode(const struct seen_chunk *c, uint8_t *out)
{
  struct head head = { .n_before = c->n_before, .newest_unix_ms = c->newest_unix_ms, .n = c->n };
  uint8_t *at = out + sizeof head;

  memcpy(out, &head, sizeof head);
  for (size_t i = 0; i < c->n; i++) {
    uint16_t length = (uint16_t)c->items[i].key.n;
    memcpy(at, &c->items[i].time_unix_ms, TIME_BYTES);
    memcpy(at + TIME_BYTES, &length, LENGTH_BYTES);
    memcpy(at + ITEM_BYTES, c->items[i].key.p, length);
    at += ITEM_BYTES + length;
  }
  seal_put(out, (size_t)(at - out));
  return (size_t)(at - out);
}

static bool decode_head(struct span value, struct head *out)
{
  if (value.n < sizeof *out || value.n > SEEN_CHUNK_BYTES || !seal_is_whole(value))
    return false;
  memcpy(out, value.p, sizeof *out);
  return out->n <= SEEN_CHUNK_ITEMS;
}

static bool decode_item(struct span *rest, struct seen_item *out)
{
  uint16_t length;

  if (rest->n < ITEM_BYTES)
    return false;
  memcpy(&out->time_unix_ms, rest->p, TIME_BYTES);
  memcpy(&length, rest->p + TIME_BYTES, LENGTH_BYTES);
  if (length < 1 || length > ITEM_KEY_MAX || length > rest->n - ITEM_BYTES)
    return false;
  out->key = span_of(rest->p + ITEM_BYTES, length);
  *rest = span_of(rest->p + ITEM_BYTES + length, rest->n - ITEM_BYTES - length);
  return true;
}

bool seen_chunk_decode(struct span value, struct seen_chunk *out)
{
  struct head head;
  struct span rest;

  if (!decode_head(value, &head))
    return false;
  rest = span_of(value.p + sizeof head, value.n - sizeof head);
  out->n_before = head.n_before;
  out->newest_unix_ms = head.newest_unix_ms;
  out->bytes = rest.n;
  for (out->n = 0; out->n < head.n; out->n++) {
    if (!decode_item(&rest, &out->items[out->n]))
      return false;
  }
  return rest.n == 0;
}

bool seen_chunk_decode_head(struct span value, size_t *n, int64_t *newest_unix_ms)
{
  struct head head;

  if (!decode_head(value, &head))
    return false;
  *n = head.n;
  *newest_unix_ms = head.newest_unix_ms;
  return true;
}
