/* SPDX-License-Identifier: Apache-2.0 */
/* Records: decoding returns what was encoded, and damaged bytes are an error, never a crash. */
#include "store/record/record.h"

#include "store/lmdb/seal.h"
#include "tests/support/store_oracle.h"

#include <math.h>

static uint64_t seed;

static struct oracle_item random_item(struct dice *dice)
{
  struct oracle_item item = {
    .id = (uint32_t)dice_below(dice, 1000),
    .partition = (int32_t)dice_below(dice, 1000),
    .offset = (int64_t)(dice_u64(dice) >> 8),
  };

  for (size_t i = 0; i < ORACLE_SPACES; i++)
    item.seeds[i] = dice_below(dice, 3) ? dice_u64(dice) : 0;
  for (size_t i = 0; i < ORACLE_ATTRIBUTES; i++)
    item.attributes[i] = dice_below(dice, 2) ? dice_u64(dice) | 2 : 0;
  return item;
}

/* Copy bytes to a heap block of exactly their size. The sanitizer then reports a read past the end. */
static uint8_t *exact_copy(struct span bytes)
{
  uint8_t *copy = malloc(bytes.n ? bytes.n : 1);

  assert_non_null(copy);
  if (bytes.n)
    memcpy(copy, bytes.p, bytes.n);
  return copy;
}

/* Assert that both readers report damage. */
static void assert_damaged(struct span bytes, struct region *region)
{
  struct record_head head;
  struct item_change item;

  assert_int_equal(record_read_head(bytes, &head), ERR_STORE_CORRUPT);
  assert_int_equal(record_decode(bytes, &oracle_ids, region, &item), ERR_STORE_CORRUPT);
}

static void decode_gives_what_was_encoded(void **state)
{
  struct dice dice = { seed };
  struct region region = { 0 };

  (void)state;
  for (int round = 0; round < 2000; round++) {
    region_reset(&region);
    struct oracle_item item = random_item(&dice);
    struct item_change want = oracle_change(&item, &region);
    uint64_t log_number = dice_u64(&dice);
    struct span record;
    struct record_head head;
    struct item_change got;
    assert_ok(record_encode(&want, log_number, &oracle_ids, &region, &record));
    assert_ok(record_read_head(record, &head));
    assert_ok(record_decode(record, &oracle_ids, &region, &got));
    assert_true(got.is_whole && !got.is_delete);
    assert_true(oracle_is_same(&want, &got));
    assert_true(span_equal(head.key, want.key));
    assert_int_equal(head.log_number, log_number);
    assert_int_equal(head.partition, want.partition);
    assert_int_equal(head.offset, want.offset);
    assert_int_equal(head.timestamp_ms, want.timestamp_ms);
  }
  region_fini(&region);
}

static void every_bit_of_a_number_survives(void **state)
{
  struct region region = { 0 };
  const float numbers[] = { NAN, -NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1e-45f, 3.4e38f };
  struct part part = { .space = span_of_str("s"), .vector = { numbers, 8 } };
  struct item_change item = { .key = span_of_str("k"), .parts = &part, .n_parts = 1 };
  struct span record;
  struct item_change got;

  (void)state;
  assert_ok(record_encode(&item, 1, &oracle_ids, &region, &record));
  assert_ok(record_decode(record, &oracle_ids, &region, &got));
  assert_memory_equal(got.parts[0].vector.v, numbers, sizeof numbers);
  region_fini(&region);
}

static void unaligned_record_decodes_to_aligned_numbers(void **state)
{
  struct region region = { 0 };
  struct oracle_item item = { .id = 3, .seeds = { 5, 6, 7, 8 }, .attributes = { 2, 3, 4, 5, 6, 7 } };

  (void)state;
  struct item_change want = oracle_change(&item, &region);
  struct span record;
  assert_ok(record_encode(&want, 1, &oracle_ids, &region, &record));
  for (size_t shift = 0; shift < 8; shift++) {
    uint8_t *moved = malloc(record.n + shift);
    struct item_change got;
    assert_non_null(moved);
    memcpy(moved + shift, record.p, record.n);
    assert_ok(record_decode(span_of(moved + shift, record.n), &oracle_ids, &region, &got));
    free(moved); /* the item must not point there */
    assert_true(oracle_is_same(&want, &got));
    for (size_t i = 0; i < got.n_parts; i++)
      assert_int_equal((uintptr_t)got.parts[i].vector.v % sizeof(float), 0);
  }
  region_fini(&region);
}

static void every_flipped_bit_is_found(void **state)
{
  struct region region = { 0 };
  struct oracle_item item = { .id = 7, .seeds = { 1, 2, 3, 4 }, .attributes = { 2, 3, 4, 5, 6, 7 } };
  struct span record;

  (void)state;
  struct item_change change = oracle_change(&item, &region);
  assert_ok(record_encode(&change, 1, &oracle_ids, &region, &record));
  uint8_t *copy = exact_copy(record);
  for (size_t bit = 0; bit < record.n * 8; bit++) {
    copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_damaged(span_of(copy, record.n), &region);
    copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  free(copy);
  region_fini(&region);
}

/* Also with a valid seal: sizes are checked independently. */
static void every_other_length_is_refused(void **state)
{
  struct region region = { 0 };
  struct oracle_item item = { .id = 11, .seeds = { 1, 2, 3, 4 }, .attributes = { 2, 3, 4, 5, 6, 7 } };
  struct span record;

  (void)state;
  struct item_change change = oracle_change(&item, &region);
  assert_ok(record_encode(&change, 1, &oracle_ids, &region, &record));
  for (size_t n = 0; n < record.n + 64; n++) {
    uint8_t *copy = calloc(n ? n : 1, 1);
    assert_non_null(copy);
    memcpy(copy, record.p, n < record.n ? n : record.n);
    if (n >= SEAL_BYTES && n != record.n)
      seal_put(copy, n);
    if (n != record.n)
      assert_damaged(span_of(copy, n), &region);
    free(copy);
  }
  region_fini(&region);
}

/* Records with a valid seal and wrong sizes: nothing outside the record is read. */
static void sizes_that_lie_are_never_followed(void **state)
{
  static const uint32_t lies[] = { 0, 1, 2, 0xff, 0xffff, 0x10000, 0x3fffffff, 0x40000000, 0x7fffffff, 0xffffffff };
  struct dice dice = { seed };
  struct region region = { 0 };
  size_t n_refused = 0;

  (void)state;
  for (int round = 0; round < 20000; round++) {
    struct oracle_item item = { .id = (uint32_t)dice_below(&dice, 30), .seeds = { 1, 0, 3, dice_below(&dice, 2) } };
    struct span record;
    struct item_change got;
    region_reset(&region);
    struct item_change change = oracle_change(&item, &region);
    assert_ok(record_encode(&change, 1, &oracle_ids, &region, &record));
    uint8_t *copy = exact_copy(record);
    for (size_t i = dice_below(&dice, 3) + 1; i > 0; i--) {
      uint32_t lie = lies[dice_below(&dice, sizeof lies / sizeof lies[0])];
      size_t at = SEAL_BYTES + 2 * dice_below(&dice, 48);
      memcpy(copy + at, &lie, dice_below(&dice, 2) ? 2 : 4);
    }
    seal_put(copy, record.n);
    n_refused += record_decode(span_of(copy, record.n), &oracle_ids, &region, &got) != ERR_OK;
    free(copy);
  }
  assert_true(n_refused > 10000); /* the other changes hit an offset, or two sizes that cancel out */
  region_fini(&region);
}

/* Encode `n` attributes of the same value, and return what the decoder says. */
static err_code_t recode(size_t attribute, struct value value, size_t n)
{
  struct region region = { 0 };
  struct attribute_value values[ATTRIBUTES_MAX + 1];
  struct item_change item = { .key = span_of_str("k"), .attributes = values, .n_attributes = n }, got;
  struct span record;

  for (size_t i = 0; i < n; i++)
    values[i] = (struct attribute_value){ oracle_attribute_list[attribute].name, value };
  assert_ok(record_encode(&item, 1, &oracle_ids, &region, &record));
  err_code_t err = record_decode(record, &oracle_ids, &region, &got);
  region_fini(&region);
  return err;
}

/* Also with a valid seal: who reads the values relies on their limits. */
static void values_beyond_their_limits_are_damage(void **state)
{
  static const uint8_t bytes[ATTRIBUTE_TEXT_MAX + 1];
  static struct value texts[ATTRIBUTE_SET_MAX + 1];
  enum { YES, TEXT, SET, INTEGER, NUMBER, TIME };
  struct value text = { VALUE_TEXT, .text = { bytes, ATTRIBUTE_TEXT_MAX } };
  struct value set = { VALUE_LIST, .list = { texts, ATTRIBUTE_SET_MAX } };
  struct value number = { VALUE_NUMBER, .number = 0x1.fffffffffffffp1023 }, yes = { VALUE_BOOL, .is_true = true };
  struct value integer = { VALUE_INTEGER, .integer = -1 }, zero = { VALUE_INTEGER, .integer = 0 };

  (void)state;
  for (size_t i = 0; i <= ATTRIBUTE_SET_MAX; i++)
    texts[i] = text;
  assert_ok(recode(TEXT, text, 1));
  assert_ok(recode(SET, set, 1));
  assert_ok(recode(NUMBER, number, 1));
  assert_ok(recode(INTEGER, integer, 1));
  assert_ok(recode(TIME, zero, 1));
  assert_ok(recode(YES, yes, 1));
  text.text.n++;
  set.list.n++;
  assert_int_equal(recode(TEXT, text, 1), ERR_STORE_CORRUPT);
  assert_int_equal(recode(SET, set, 1), ERR_STORE_CORRUPT);
  texts[1] = text;
  set.list.n = 2;
  assert_int_equal(recode(SET, set, 1), ERR_STORE_CORRUPT);
  number.number = NAN;
  assert_int_equal(recode(NUMBER, number, 1), ERR_STORE_CORRUPT);
  number.number = -INFINITY;
  assert_int_equal(recode(NUMBER, number, 1), ERR_STORE_CORRUPT);
  assert_int_equal(recode(TIME, integer, 1), ERR_STORE_CORRUPT);
  assert_int_equal(recode(YES, yes, ATTRIBUTES_MAX + 1), ERR_STORE_CORRUPT);
}

static void keys_have_1_to_256_bytes(void **state)
{
  static const struct { size_t n; err_code_t want; } rows[] = {
    { 0, ERR_ITEM }, { 1, ERR_OK }, { 256, ERR_OK }, { 257, ERR_ITEM }, { 65536 + 5, ERR_ITEM },
  };
  static const uint8_t bytes[65536 + 5];
  struct region region = { 0 };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct item_change item = { .key = span_of(bytes, rows[i].n) };
    struct span record;
    assert_int_equal(record_encode(&item, 1, &oracle_ids, &region, &record), rows[i].want);
  }
  region_fini(&region);
}

static void what_a_record_cannot_hold_is_refused(void **state)
{
  struct region region = { 0 };
  static const float one = 1.0f;
  struct part part = { .space = span_of_str("s"), .vector = { &one, (size_t)1 << 32 } };
  struct item_change item = { .key = span_of_str("k"), .parts = &part, .n_parts = 1 };
  struct span record;

  (void)state;
  assert_int_equal(record_encode(&item, 1, &oracle_ids, &region, &record), ERR_ITEM);
  part.vector.n = (1u << 28) + 1;
  assert_int_equal(record_encode(&item, 1, &oracle_ids, &region, &record), ERR_ITEM);
  item.n_parts = 65536; /* refused before the parts are read */
  assert_int_equal(record_encode(&item, 1, &oracle_ids, &region, &record), ERR_ITEM);
  region_fini(&region);
}

static void tombstone_has_a_head_and_nothing_else(void **state)
{
  struct region region = { 0 };
  struct oracle_item item = { .id = 7, .is_delete = true, .partition = 3, .offset = 99 };
  struct span record;
  struct span copy;
  struct record_head head;
  struct item_change got;

  (void)state;
  struct item_change change = oracle_change(&item, &region);
  assert_ok(record_encode_tombstone(&change, 5, 123456789, &region, &record));
  assert_ok(record_read_head(record, &head));
  assert_true(head.is_tombstone && !head.has_aside);
  assert_true(span_equal(head.key, change.key));
  assert_true(head.log_number == 5 && head.partition == 3 && head.offset == 99);
  assert_int_equal(head.timestamp_ms, change.timestamp_ms);
  assert_int_equal(head.applied_unix_ms, 123456789);
  assert_int_equal(record_decode(record, &oracle_ids, &region, &got), ERR_STORE_CORRUPT);
  for (size_t n = 0; n < record.n; n++) {
    uint8_t *cut = exact_copy(span_of(record.p, n));
    if (n >= SEAL_BYTES)
      seal_put(cut, n);
    assert_damaged(span_of(cut, n), &region);
    free(cut);
  }
  assert_ok(record_copy(record, true, &region, &copy));
  assert_ok(record_read_head(copy, &head));
  assert_true(head.is_tombstone && head.has_aside);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(decode_gives_what_was_encoded),
    cmocka_unit_test(every_bit_of_a_number_survives),
    cmocka_unit_test(unaligned_record_decodes_to_aligned_numbers),
    cmocka_unit_test(every_flipped_bit_is_found),
    cmocka_unit_test(every_other_length_is_refused),
    cmocka_unit_test(sizes_that_lie_are_never_followed),
    cmocka_unit_test(values_beyond_their_limits_are_damage),
    cmocka_unit_test(keys_have_1_to_256_bytes),
    cmocka_unit_test(what_a_record_cannot_hold_is_refused),
    cmocka_unit_test(tombstone_has_a_head_and_nothing_else),
  };

  seed = dice_seed();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
