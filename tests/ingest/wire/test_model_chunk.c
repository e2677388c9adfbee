/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and sizes of the chunks of model files. */
#include "ingest/wire/model_chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void the_chunks_of_a_file_cover_it(void **state)
{
  static const uint64_t sizes[] = {
    1, MODEL_CHUNK_BYTES - 1, MODEL_CHUNK_BYTES, MODEL_CHUNK_BYTES + 1, 5 * (uint64_t)MODEL_CHUNK_BYTES,
  };

  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint64_t sum = 0;
    for (uint64_t c = 0; c < model_chunk_count(sizes[i]); c++) {
      assert_in_range(model_chunk_size(sizes[i], c), 1, MODEL_CHUNK_BYTES);
      sum += model_chunk_size(sizes[i], c);
    }
    assert_int_equal(sum, sizes[i]);
  }
  assert_int_equal(model_chunk_count(MODEL_FILE_BYTES_MAX), MODEL_FILE_BYTES_MAX / MODEL_CHUNK_BYTES);
}

static void a_key_that_is_printed_is_read_again(void **state)
{
  static const uint64_t indexes[] = { 0, 9, 10, MODEL_FILE_BYTES_MAX / MODEL_CHUNK_BYTES - 1 };
  char text[MODEL_CHUNK_KEY_BYTES];

  (void)state;
  for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) {
    uint64_t index = 77;
    assert_true(model_chunk_parse(model_chunk_key(DIGEST, indexes[i], text), DIGEST, &index));
    assert_int_equal(index, indexes[i]);
  }
  assert_true(span_equal(model_chunk_key(DIGEST, 12, text), span_of_str(DIGEST "/12")));
}

static void other_keys_are_not_of_the_file(void **state)
{
  static const char *const keys[] = {
    "",
    "/0",
    DIGEST,
    DIGEST "/",
    DIGEST "0",
    DIGEST "/x",
    DIGEST "/-1",
    DIGEST "/ 1",
    DIGEST "/1 ",
    DIGEST "/01",
    DIGEST "/00",
    DIGEST "/1/2",
    DIGEST "/12345678901",
    "1" DIGEST "/1",
    "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/1",
  };

  (void)state;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    uint64_t index = 77;
    if (model_chunk_parse(span_of_str(keys[i]), DIGEST, &index))
      fail_msg("\"%s\" was accepted", keys[i]);
    assert_int_equal(index, 77);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_chunks_of_a_file_cover_it),
    cmocka_unit_test(a_key_that_is_printed_is_read_again),
    cmocka_unit_test(other_keys_are_not_of_the_file),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
