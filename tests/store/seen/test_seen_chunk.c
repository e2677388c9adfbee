/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk's room, its order, and its stored form, also with a seal that fits but bytes that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/lmdb/seal.h"
#include "store/seen/seen_chunk.h"

enum { HEAD_BYTES = 32, N_AT = 24, TIME_BYTES = 8, LENGTH_BYTES = 2, ITEM_BYTES = TIME_BYTES + LENGTH_BYTES };

static const uint8_t bytes[ITEM_KEY_MAX + 1];

static struct seen_item item_of(const char *key, int64_t time_unix_ms)
{
  return (struct seen_item){ span_of_str(key), time_unix_ms };
}

/* Fill an empty chunk with keys of n bytes. Returns how many have room. */
static size_t n_that_fit(size_t n_bytes, struct seen_chunk *c)
{
  *c = (struct seen_chunk){ 0 };
  while (seen_chunk_has_room(c, span_of(bytes, n_bytes)))
    seen_chunk_push(c, (struct seen_item){ span_of(bytes, n_bytes), 1 });
  return c->n;
}

static void a_chunk_takes_what_fits_into_its_bytes_and_no_more(void **state)
{
  uint8_t out[2 * SEEN_CHUNK_BYTES];
  struct seen_chunk c;

  (void)state;
  for (size_t n_bytes = 1; n_bytes <= ITEM_KEY_MAX; n_bytes++) {
    size_t n = (SEEN_CHUNK_BYTES - HEAD_BYTES) / (ITEM_BYTES + n_bytes);
    n = n < SEEN_CHUNK_ITEMS ? n : SEEN_CHUNK_ITEMS;
    assert_int_equal(n_that_fit(n_bytes, &c), n);
    assert_int_equal(seen_chunk_encode(&c, out), HEAD_BYTES + n * (ITEM_BYTES + n_bytes));
  }
}

/* Encode and decode. The keys point into `out`. */
static void pass_through(const struct seen_chunk *c, uint8_t *out, struct seen_chunk *back)
{
  memset(back, 0xff, sizeof *back);
  assert_true(seen_chunk_decode(span_of(out, seen_chunk_encode(c, out)), back));
}

static void a_decoded_chunk_has_the_same_items_and_room(void **state)
{
  uint8_t out[SEEN_CHUNK_BYTES];
  struct seen_chunk c = { .n_before = 70 }, back;
  struct seen_item taken;
  size_t n;
  int64_t newest_unix_ms;

  (void)state;
  seen_chunk_push(&c, item_of("a", -5));
  seen_chunk_push(&c, item_of("bb", -3));
  seen_chunk_push(&c, item_of("c", -4));
  seen_chunk_push(&c, item_of("d", -9));
  assert_false(seen_chunk_take(&c, span_of_str("b"), &taken));
  assert_true(seen_chunk_take(&c, span_of_str("a"), &taken));
  assert_int_equal(taken.time_unix_ms, -5);
  pass_through(&c, out, &back);
  assert_int_equal(back.n, 3);
  assert_int_equal(back.n_before, 70);
  assert_int_equal(back.newest_unix_ms, -3);
  assert_int_equal(back.bytes, 3 * ITEM_BYTES + 4);
  assert_int_equal(c.bytes, back.bytes);
  for (size_t i = 0; i < 3; i++) {
    assert_true(span_equal(back.items[i].key, c.items[i].key));
    assert_int_equal(back.items[i].time_unix_ms, c.items[i].time_unix_ms);
  }
  assert_true(span_equal(back.items[0].key, span_of_str("bb"))); /* the others stay in order */
  assert_true(seen_chunk_decode_head(span_of(out, HEAD_BYTES + back.bytes), &n, &newest_unix_ms));
  assert_int_equal(n, 3);
  assert_int_equal(newest_unix_ms, -3);
}

/* A chunk with the keys "a" and "bb" in exact memory. */
struct stored {
  uint8_t *p;
  size_t n;
};

static int encode_two(void **state)
{
  static struct stored s;
  uint8_t out[SEEN_CHUNK_BYTES];
  struct seen_chunk c = { 0 };

  seen_chunk_push(&c, item_of("a", 1));
  seen_chunk_push(&c, item_of("bb", 2));
  s.n = seen_chunk_encode(&c, out);
  s.p = malloc(s.n);
  assert_non_null(s.p);
  memcpy(s.p, out, s.n);
  *state = &s;
  return 0;
}

static int free_two(void **state)
{
  struct stored *s = *state;

  free(s->p);
  return 0;
}

/* Is the value refused with a seal that fits? */
static bool is_refused(const struct stored *s, size_t n)
{
  struct seen_chunk c;

  if (n >= SEAL_BYTES)
    seal_put(s->p, n);
  return !seen_chunk_decode(span_of(s->p, n), &c);
}

static void put_u16(struct stored *s, size_t at, uint16_t x)
{
  memcpy(s->p + at, &x, sizeof x);
}

static void put_n(struct stored *s, uint64_t n)
{
  memcpy(s->p + N_AT, &n, sizeof n);
}

static void a_changed_byte_is_refused(void **state)
{
  struct stored *s = *state;
  struct seen_chunk c;
  size_t n;
  int64_t newest_unix_ms;

  for (size_t i = 0; i < s->n; i++) {
    s->p[i] ^= 1;
    assert_false(seen_chunk_decode(span_of(s->p, s->n), &c));
    assert_false(seen_chunk_decode_head(span_of(s->p, s->n), &n, &newest_unix_ms));
    s->p[i] ^= 1;
  }
  assert_true(seen_chunk_decode(span_of(s->p, s->n), &c));
}

static void a_value_that_is_too_short_or_too_long_is_refused(void **state)
{
  struct stored *s = *state;

  for (size_t n = 0; n < s->n; n++)
    assert_true(is_refused(s, n));
  put_n(s, 1); /* bytes follow the last item */
  assert_true(is_refused(s, s->n));
  put_n(s, 3);
  assert_true(is_refused(s, s->n));
  put_n(s, 2);
  assert_false(is_refused(s, s->n));
}

static void more_items_than_a_chunk_has_are_refused(void **state)
{
  struct stored s = { .n = HEAD_BYTES + (SEEN_CHUNK_ITEMS + 1) * (ITEM_BYTES + 1) };

  (void)state;
  s.p = calloc(1, s.n);
  assert_non_null(s.p);
  for (size_t i = 0; i <= SEEN_CHUNK_ITEMS; i++)
    put_u16(&s, HEAD_BYTES + i * (ITEM_BYTES + 1) + TIME_BYTES, 1);
  put_n(&s, SEEN_CHUNK_ITEMS);
  assert_false(is_refused(&s, s.n - ITEM_BYTES - 1));
  put_n(&s, SEEN_CHUNK_ITEMS + 1);
  assert_true(is_refused(&s, s.n));
  free(s.p);
}

static void a_length_that_no_key_has_is_refused(void **state)
{
  struct stored *s = *state;

  put_u16(s, HEAD_BYTES + TIME_BYTES, 0);
  assert_true(is_refused(s, s->n));
  put_u16(s, HEAD_BYTES + TIME_BYTES, UINT16_MAX);
  assert_true(is_refused(s, s->n));
  put_u16(s, HEAD_BYTES + TIME_BYTES, (uint16_t)(s->n - HEAD_BYTES - ITEM_BYTES + 1));
  assert_true(is_refused(s, s->n));
}

static void a_key_that_is_too_long_is_refused(void **state)
{
  struct stored s = { .n = HEAD_BYTES + ITEM_BYTES + ITEM_KEY_MAX + 1 };

  (void)state;
  s.p = calloc(1, s.n);
  assert_non_null(s.p);
  put_n(&s, 1);
  put_u16(&s, HEAD_BYTES + TIME_BYTES, ITEM_KEY_MAX);
  assert_false(is_refused(&s, s.n - 1));
  put_u16(&s, HEAD_BYTES + TIME_BYTES, ITEM_KEY_MAX + 1);
  assert_true(is_refused(&s, s.n));
  free(s.p);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_chunk_takes_what_fits_into_its_bytes_and_no_more),
    cmocka_unit_test(a_decoded_chunk_has_the_same_items_and_room),
    cmocka_unit_test_setup_teardown(a_changed_byte_is_refused, encode_two, free_two),
    cmocka_unit_test_setup_teardown(a_value_that_is_too_short_or_too_long_is_refused, encode_two, free_two),
    cmocka_unit_test(more_items_than_a_chunk_has_are_refused),
    cmocka_unit_test_setup_teardown(a_length_that_no_key_has_is_refused, encode_two, free_two),
    cmocka_unit_test(a_key_that_is_too_long_is_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
