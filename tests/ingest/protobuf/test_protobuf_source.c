/* SPDX-License-Identifier: Apache-2.0 */
/* Files of descriptor sets, and paths through their messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ingest/protobuf/protobuf_source.h"
#include "tests/support/assert_ok.h"

#define FOLDER SLUICE_SOURCE_DIR "/tests/ingest/protobuf"

static void messages_are_named_in_full(void **state)
{
  struct protobuf_source *s = NULL;

  (void)state;
  assert_ok(protobuf_source_open(FOLDER "/shop.desc", "shop.v1.Film.Numbers", &s));
  assert_string_equal(protobuf_source_type(s)->name, "shop.v1.Film.Numbers");
  protobuf_source_close(&s);
  assert_null(s);
  protobuf_source_close(&s);
  assert_fails(protobuf_source_open(FOLDER "/shop.desc", "Film", &s), ERR_CONFIG,
               "shop.desc: there is no message \"Film\" in it, which catalogue.message names; it has: shop.legacy.Film, shop.legacy.Film.Cast, "
               "shop.legacy.Film.Cast.Actor, shop.v1.Event, shop.v1.Film, shop.v1.Film.Numbers, shop.v1.Sku");
  assert_fails(protobuf_source_open(FOLDER "/shop.desc", "shop.v1.Genre", &s), ERR_CONFIG, "there is no message");
  assert_null(s);
}

static void files_that_cannot_be_used_are_named(void **state)
{
  struct protobuf_source *s = NULL;

  (void)state;
  assert_fails(protobuf_source_open(FOLDER "/none.desc", "shop.v1.Film", &s), ERR_CONFIG,
               "none.desc cannot be opened: No such file");
  assert_fails(protobuf_source_open(FOLDER, "shop.v1.Film", &s), ERR_CONFIG, "is a folder: expected the file of a");
  assert_fails(protobuf_source_open("/dev/null", "shop.v1.Film", &s), ERR_CONFIG, "is not a regular file");
  assert_fails(protobuf_source_open(FOLDER "/shop.proto", "shop.v1.Film", &s), ERR_CONFIG,
               "shop.proto: it is no descriptor set");
}

static err_code_t verify(const struct protobuf_source *s, const char *row, const char *text)
{
  struct json_path path = { 0 };

  assert_ok(json_path_init(span_of_str(text), &path));
  err_code_t err = protobuf_source_verify_path(s, row, &path);
  json_path_fini(&path);
  return err;
}

static void paths_lead_to_fields(void **state)
{
  static const char *const good[] = { "price",   "sku",         "sku.code",      "tags",   "tags.0",       "sequels.0.sku.code",
                                      "stock.a", "editions.7.code", "bundle.code", "rating", "published_at", "flags.true" };
  struct protobuf_source *s = NULL;

  (void)state;
  assert_ok(protobuf_source_open(FOLDER "/shop.desc", "shop.v1.Film", &s));
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_ok(verify(s, NULL, good[i]));
  assert_fails(verify(s, NULL, "publishedAt"), ERR_CONFIG,
               "message shop.v1.Film has no field \"publishedAt\": names are those of the .proto file");
  assert_fails(verify(s, NULL, "sku.id"), ERR_CONFIG, "message shop.v1.Sku has no field \"id\"");
  assert_fails(verify(s, NULL, "tags.first"), ERR_CONFIG, "tags is a list: \"first\" is no index into it");
  assert_fails(verify(s, NULL, "price.amount"), ERR_CONFIG, "price has no fields, so no \"amount\"");
  assert_fails(verify(s, NULL, "rating.value"), ERR_CONFIG, "rating has no fields");
  assert_fails(verify(s, NULL, "published_at.seconds"), ERR_CONFIG, "published_at has no fields");
  assert_fails(verify(s, NULL, "stock.a.b"), ERR_CONFIG, "value has no fields");
  assert_ok(verify(s, "sku", "code"));
  assert_fails(verify(s, "sku", "price"), ERR_CONFIG, "message shop.v1.Sku has no field \"price\"");
  assert_fails(verify(s, "after", "price"), ERR_CONFIG, "message shop.v1.Film has no field \"after\"");
  protobuf_source_close(&s);
  assert_ok(protobuf_source_open(FOLDER "/shop.desc", "google.protobuf.Timestamp", &s));
  assert_fails(verify(s, NULL, "seconds"), ERR_CONFIG, "google.protobuf.Timestamp has no fields");
  protobuf_source_close(&s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(messages_are_named_in_full),
    cmocka_unit_test(files_that_cannot_be_used_are_named),
    cmocka_unit_test(paths_lead_to_fields),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
