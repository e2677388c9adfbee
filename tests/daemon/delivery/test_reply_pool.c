/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of reply records: its bound, and the memory that free records keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/delivery/reply_pool.h"
#include "tests/support/assert_ok.h"
#include "tests/support/heap.h"

enum { RECORDS = 20000, KEY_BYTES = 512 };

static const struct trace_headers none;

static void a_freed_record_is_taken_next_with_its_buffer_and_nothing_else(void **state)
{
  struct reply_pool *pool;

  (void)state;
  assert_ok(reply_pool_open(2, &pool));
  struct reply_record *a = reply_pool_take(pool), *b = reply_pool_take(pool);
  assert_non_null(a);
  assert_non_null(b);
  assert_null(reply_pool_take(pool));
  assert_int_equal(reply_pool_n_used(pool), 2);
  assert_ok(reply_record_copy(
      a, &(struct reply_texts){ .key = span_of_str("key"), .space = span_of_str("space"), .trace = &none }));
  assert_true(span_equal(a->key, span_of_str("key")));
  assert_int_equal(a->id.n, 0);
  assert_true(span_equal(a->space, span_of_str("space")));
  a->stage = REPLY_STAGE_BARE_ERROR;
  uint8_t *bytes = a->bytes;
  reply_pool_put(pool, a);
  assert_int_equal(reply_pool_n_used(pool), 1);
  assert_ptr_equal(reply_pool_take(pool), a);
  assert_null(reply_pool_take(pool)); /* it is not given twice */
  assert_ptr_equal(a->bytes, bytes);
  assert_int_equal(a->stage, REPLY_STAGE_ANSWER);
  assert_int_equal(a->key.n, 0);
  reply_pool_close(&pool);
  assert_null(pool);
}

static void a_record_has_copies_of_all_texts_of_its_query(void **state)
{
  static const char *const texts[] = { "key", "id", "space", "head", "parent", "state", "baggage" };
  struct trace_headers trace = { { span_of_str(texts[4]), span_of_str(texts[5]), span_of_str(texts[6]) } };
  struct reply_pool *pool;

  (void)state;
  assert_ok(reply_pool_open(1, &pool));
  struct reply_record *r = reply_pool_take(pool);
  struct reply_texts from = {
    .key = span_of_str(texts[0]),
    .id = span_of_str(texts[1]),
    .space = span_of_str(texts[2]),
    .head = span_of_str(texts[3]),
    .trace = &trace,
  };
  assert_ok(reply_record_copy(r, &from));
  const struct span copies[] = { r->key, r->id, r->space, r->head, r->trace.value[0], r->trace.value[1],
                                 r->trace.value[2] };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    assert_true(span_equal(copies[i], span_of_str(texts[i])));
    assert_ptr_not_equal(copies[i].p, texts[i]);
    assert_in_range((uintptr_t)copies[i].p, (uintptr_t)r->bytes, (uintptr_t)r->bytes + r->capacity);
  }
  reply_pool_close(&pool);
}

/* A flood of long keys must not hold its memory for ever. */
static void free_records_keep_a_bounded_amount_of_memory(void **state)
{
  static struct reply_record *records[RECORDS];
  static uint8_t key[KEY_BYTES];
  struct reply_pool *pool;

  (void)state;
  assert_ok(reply_pool_open(RECORDS, &pool));
  size_t before = heap_used();
  for (size_t i = 0; i < RECORDS; i++) {
    records[i] = reply_pool_take(pool);
    assert_ok(reply_record_copy(records[i], &(struct reply_texts){ .key = span_of(key, sizeof key), .trace = &none }));
  }
  assert_true(heap_used() - before >= (size_t)RECORDS * KEY_BYTES);
  for (size_t i = 0; i < RECORDS; i++)
    reply_pool_put(pool, records[i]);
  size_t kept = heap_used() - before;
  assert_true(kept > 0 && kept < (size_t)RECORDS * KEY_BYTES * 3 / 4);
  for (size_t i = 0; i < RECORDS; i++)
    assert_non_null(reply_pool_take(pool));
  reply_pool_close(&pool);
}

/* Records are in use all the time, and one reply in eleven has a long key, each time another record's. */
static void a_few_long_keys_do_not_grow_the_buffers_of_all_records(void **state)
{
  enum { IN_USE = 1000, LONG_BYTES = 5000, SHORT_BYTES = 60, REPLIES = 100000 };
  static struct reply_record *records[IN_USE];
  static uint8_t key[LONG_BYTES];
  struct reply_pool *pool;

  (void)state;
  assert_ok(reply_pool_open(IN_USE, &pool));
  size_t before = heap_used();
  for (size_t i = 0; i < REPLIES; i++) {
    struct reply_record **record = &records[i % IN_USE];
    if (*record)
      reply_pool_put(pool, *record);
    *record = reply_pool_take(pool);
    assert_non_null(*record);
    size_t n = i % 11 == 0 ? LONG_BYTES : SHORT_BYTES;
    assert_ok(reply_record_copy(*record, &(struct reply_texts){ .key = span_of(key, n), .trace = &none }));
  }
  assert_true(heap_used() - before < (size_t)IN_USE * LONG_BYTES / 2); /* an eleventh of them are long now */
  reply_pool_close(&pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_freed_record_is_taken_next_with_its_buffer_and_nothing_else),
    cmocka_unit_test(a_record_has_copies_of_all_texts_of_its_query),
    cmocka_unit_test(free_records_keep_a_bounded_amount_of_memory),
    cmocka_unit_test(a_few_long_keys_do_not_grow_the_buffers_of_all_records),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
