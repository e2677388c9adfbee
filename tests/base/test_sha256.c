/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256: the examples of FIPS 180-4, every length around a block, and bytes that come in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/sha256.h"

static void assert_digest(struct span bytes, const char *expected)
{
  char hex[SHA256_HEX_BYTES];

  sha256_hex(bytes, hex);
  assert_string_equal(hex, expected);
}

static void the_examples_of_the_standard_come_out(void **state)
{
  uint8_t *million = malloc(1000000);
  (void)state;

  assert_digest(span_of_str(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert_digest(span_of_str("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert_digest(span_of_str("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  memset(million, 'a', 1000000);
  assert_digest(span_of(million, 1000000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(million);
}

/* The expected digest is that of all digests of 0 to 200 bytes, one after the other: made with Python's hashlib. */
static void every_length_around_a_block_is_padded(void **state)
{
  uint8_t bytes[200];
  struct sha256 all;
  char hex[SHA256_HEX_BYTES];
  (void)state;

  for (size_t i = 0; i < sizeof bytes; i++)
    bytes[i] = (uint8_t)(i * 7);
  sha256_init(&all);
  for (size_t n = 0; n <= sizeof bytes; n++) {
    sha256_hex(span_of(bytes, n), hex);
    sha256_add(&all, span_of_str(hex));
  }
  sha256_finish(&all, hex);
  assert_string_equal(hex, "020088e9c26b95faf20594b4a5301fc5493cad4e2e0e002a0233825ae81dbd5f");
}

static void pieces_make_the_digest_of_the_whole(void **state)
{
  uint8_t bytes[300];
  char whole[SHA256_HEX_BYTES], hex[SHA256_HEX_BYTES];
  (void)state;

  memset(bytes, 'x', sizeof bytes);
  sha256_hex(span_of(bytes, sizeof bytes), whole);
  for (size_t step = 1; step < 140; step++) {
    struct sha256 s;
    sha256_init(&s);
    for (size_t at = 0; at < sizeof bytes; at += step)
      sha256_add(&s, span_of(bytes + at, sizeof bytes - at < step ? sizeof bytes - at : step));
    sha256_finish(&s, hex);
    assert_string_equal(hex, whole);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_examples_of_the_standard_come_out),
    cmocka_unit_test(every_length_around_a_block_is_padded),
    cmocka_unit_test(pieces_make_the_digest_of_the_whole),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
