/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: the examples of FIPS 180-4, and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sha256.h"

static void assert_digest(struct span bytes, const char *expected)
{
  char hex[SHA256_HEX_BYTES];

  assert_int_equal(sha256_hex(bytes, hex), ERR_OK);
  assert_string_equal(hex, expected);
}

static void the_examples_of_the_standard_come_out(void **state)
{
  (void)state;

  assert_digest(span_of_str(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert_digest(span_of_str("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static FILE *file_of_a_million(void)
{
  FILE *f = tmpfile();

  assert_non_null(f);
  for (int i = 0; i < 1000000; i++)
    assert_int_equal(putc('a', f), 'a');
  rewind(f);
  return f;
}

static void a_file_has_the_digest_of_its_bytes(void **state)
{
  FILE *f = file_of_a_million();
  char hex[SHA256_HEX_BYTES];
  (void)state;

  assert_int_equal(sha256_file(f, hex), ERR_OK);
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  fclose(f);
}

static void a_file_that_cannot_be_read_is_an_error(void **state)
{
  FILE *f = fopen("/", "rb"); /* a directory opens, and every read of it fails */
  char hex[SHA256_HEX_BYTES];
  (void)state;

  assert_non_null(f);
  assert_int_equal(sha256_file(f, hex), ERR_SYSTEM);
  fclose(f);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_examples_of_the_standard_come_out),
    cmocka_unit_test(a_file_has_the_digest_of_its_bytes),
    cmocka_unit_test(a_file_that_cannot_be_read_is_an_error),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
