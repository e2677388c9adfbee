/* SPDX-License-Identifier: Apache-2.0 */
/* The format of the catalogue in the configuration: paths, what they are for, and every mistake with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/config/config_message.h"
#include "daemon/config/config_schemas.h"
#include "tests/support/assert_ok.h"
#include "tests/support/config_fixture.h"

#define JSON "attributes: {price: number}\ncatalogue:\n  format: json\n"
#define AVRO "catalogue:\n  format: avro\n  mapping: {vectors: {books: v}}\n"

#define PROTOBUF "catalogue:\n  format: protobuf\n  mapping: {vectors: {books: v}}\n"
#define SET      SLUICE_SOURCE_DIR "/tests/ingest/protobuf/shop.desc"

static void paths_are_read_by_name(void **state)
{
  (void)state;
  struct config *c =
      open_text(JSON "  framing: confluent\n  mapping:\n    key: id\n    vectors: {books: a.b}\n"
                     "    attributes:\n      price: /x~1y\n    deleted: gone\n    envelope: debezium\n" REST);
  assert_int_equal(c->catalogue.format, CONFIG_FORMAT_JSON);
  assert_true(c->catalogue.is_framed && c->catalogue.mapping.is_debezium);
  assert_string_equal(c->catalogue.mapping.key, "id");
  assert_string_equal(c->catalogue.mapping.deleted, "gone");
  assert_int_equal(c->catalogue.mapping.vectors.n, 1);
  assert_string_equal(c->catalogue.mapping.vectors.v[0].name, "books");
  assert_string_equal(c->catalogue.mapping.vectors.v[0].path, "a.b");
  assert_string_equal(c->catalogue.mapping.attributes.v[0].path, "/x~1y");
  assert_int_equal(c->catalogue.mapping.codes.n, 0);
  config_close(&c);
  c = open_text(REST);
  assert_int_equal(c->catalogue.format, CONFIG_FORMAT_SLUICE);
  assert_false(c->catalogue.is_framed || c->catalogue.mapping.is_debezium);
  assert_string_equal(c->catalogue.mapping.key, "");
  assert_string_equal(c->catalogue.schemas, "");
  config_close(&c);
  c = open_text(JSON "  mapping: {codes: {books: c}, vectors: {}, key: ''}\n" REST);
  assert_int_equal(c->catalogue.mapping.codes.n, 1);
  config_close(&c);
}

static void a_registry_stands_for_schemas(void **state)
{
  struct config *c;

  (void)state;
  setenv("SLUICE_TEST_SECRET", "hush!", 1);
  c = open_text(AVRO "  framing: confluent\n  registry:\n    url: https://registry:8081/base\n    user: me\n"
                     "    password: env:SLUICE_TEST_SECRET\n    ca_file: ca.pem\n" REST);
  struct avro_sources from = config_schemas(c);
  assert_true(from.has_ids);
  assert_string_equal(from.path, "");
  assert_string_equal(from.registry.url, "https://registry:8081/base");
  assert_string_equal(from.registry.user, "me");
  assert_string_equal(from.registry.password, "hush!");
  assert_non_null(strstr(from.registry.ca_file, "/ca.pem")); /* beside the file */
  config_close(&c);
}

static void who_asks_no_registry_needs_no_password_of_it(void **state)
{
  struct config *c = NULL;

  (void)state;
  const char *text =
      AVRO "  framing: confluent\n  registry: {url: 'http://r', user: me, password: env:SLUICE_NO_SUCH}\n" REST;
  write_bytes(text, strlen(text));
  assert_int_equal(config_open_for_kafka(path, &c), ERR_OK);
  assert_string_equal(c->catalogue.registry.password, "env:SLUICE_NO_SUCH");
  config_close(&c);
}

static void mistakes_of_a_registry_name_their_line(void **state)
{
  (void)state;
  assert_refused(AVRO "  registry: {url: 'http://r'}\n" REST, 4, "catalogue.registry.url", "framing: confluent only");
  assert_refused(JSON "  framing: confluent\n  mapping: {vectors: {books: v}}\n  registry: {url: 'http://r'}\n" REST, 6,
                 "catalogue.registry.url", "format: avro and catalogue.framing: confluent only");
  assert_refused(AVRO "  schemas: x\n  registry:\n    user: me\n" REST, 6, "catalogue.registry.user is set",
                 "catalogue.registry.url is not");
  assert_refused(AVRO "  schemas: x\n  registry:\n    ca_file: x\n" REST, 6, "catalogue.registry.ca_file is set",
                 "catalogue.registry.url is not");
  assert_refused(AVRO "  framing: confluent\n  registry:\n    url: http://r\n    password: hush!\n" REST, 7,
                 "catalogue.registry.password is set", "catalogue.registry.user is not");
  assert_refused(AVRO "  framing: confluent\n  registry:\n    url: http://r\n    user: me:you\n" REST, 7,
                 "catalogue.registry.user expects a name", "without a colon");
  assert_refused(AVRO "  framing: confluent\n  registry:\n    url: http://r\n    user: me\n    password: \"a\\tb\"\n" REST,
                 8, "catalogue.registry.password expects a secret", "byte 2 of 3 is one");
  assert_refused(AVRO "  framing: confluent\n  registry:\n    url: http://me:hush@r\n" REST, 6,
                 "catalogue.registry.url expects a URL", "it has a user name or a password");
  assert_refused(AVRO "  framing: confluent\n  registry:\n    url: http://r\n    user: me\n"
                      "    password: env:SLUICE_NO_SUCH\n" REST,
                 8, "catalogue.registry.password env:SLUICE_NO_SUCH", "the environment has no variable");
}

static void mistakes_name_their_line(void **state)
{
  (void)state;
  assert_refused("catalogue:\n  format: orc\n" REST, 2, "catalogue.format expects one of",
                 "`sluice`, `json`, `avro`, `protobuf`");
  assert_refused("catalogue: {mapping: {vectors: {books: v}}, format: avro}\n" REST, 1, "catalogue.format is avro",
                 "neither catalogue.schemas nor catalogue.registry.url says where");
  assert_refused(JSON "  schemas: x.avsc\n  mapping: {vectors: {books: v}}\n" REST, 4, "catalogue.schemas",
                 "format: avro or protobuf only");
  assert_refused("catalogue:\n  format: avro\n  schemas: x.avsc\n" REST, 2, "catalogue.format is avro",
                 "names no vectors");
  assert_refused(JSON REST, 3, "catalogue.format is json", "names no vectors, codes or attributes");
  assert_refused("catalogue:\n  mapping:\n    key: id\n" REST, 3, "catalogue.mapping.key", "format: json, avro or protobuf only");
  assert_refused("canary:\n  interval_ms: 5\ncatalogue: {format: json, mapping: {vectors: {books: v}}}\n" REST, 2,
                 "canary.interval_ms", "catalogue.format: sluice");
  assert_refused("catalogue:\n  mapping:\n    envelope: debezium\n" REST, 3, "catalogue.mapping.envelope", "protobuf only");
  assert_refused("catalogue:\n  mapping:\n    vectors:\n      books: v\n" REST, 4, "catalogue.mapping.vectors", "only");
  assert_refused(JSON "  mapping:\n    vectors: {books: v}\n    key: a..b\n" REST, 6, "catalogue.mapping.key expects a",
                 "a step is empty");
  assert_refused(JSON "  mapping:\n    vectors:\n      books: .v\n" REST, 6, "catalogue.mapping.vectors.books expects",
                 "a step is empty");
  assert_refused(JSON "  mapping:\n    vectors:\n      books: [v]\n" REST, 6, "vectors.\"books\" expects a path", "");
  assert_refused(JSON "  mapping:\n    vectors: v\n" REST, 5, "catalogue.mapping.vectors expects a map", "paths");
  assert_refused(JSON "  mapping:\n    vectors:\n      books: v\n      books: w\n" REST, 7, "\"books\" is given twice",
                 "first in line 6");
  assert_refused(JSON "  mapping:\n    vectors:\n      bokos: v\n" REST, 6, "there is no space \"bokos\"", "vectors");
  assert_refused(JSON "  mapping:\n    codes:\n      bokos: v\n" REST, 6, "there is no space \"bokos\"", "codes");
  assert_refused(JSON "  mapping:\n    attributes:\n      prize: v\n" REST, 6, "there is no attribute \"prize\"",
                 "add it");
  assert_refused(JSON "  mapping:\n    vectors:\n      books: v\n    codes:\n      books: v\n" REST, 8,
                 "the space books has codes here", "a vector in line 6");
  assert_refused(JSON "  mapping: {vector: {books: v}}\n" REST, 4, "there is no setting \"catalogue.mapping.vector\"",
                 "catalogue.mapping.vectors");
}

static void mistakes_of_a_message_name_their_line(void **state)
{
  (void)state;
  assert_refused(PROTOBUF "  message: m.M\n" REST, 2, "catalogue.format is protobuf, but catalogue.schemas",
                 "protoc --include_imports --descriptor_set_out=FILE");
  assert_refused(PROTOBUF "  schemas: x.desc\n" REST, 2, "catalogue.format is protobuf, but catalogue.message",
                 "does not name the message that each value is");
  assert_refused("catalogue:\n  format: protobuf\n  schemas: x.desc\n  message: m.M\n" REST, 2,
                 "catalogue.format is protobuf", "names no vectors, codes or attributes");
  assert_refused(JSON "  message: m.M\n  mapping: {vectors: {books: v}}\n" REST, 4, "catalogue.message",
                 "format: protobuf only");
  assert_refused("catalogue:\n  message: m.M\n" REST, 2, "catalogue.message", "format: protobuf only");
  assert_refused(PROTOBUF "  schemas: x\n  message: m.M\n  framing: confluent\n  registry: {url: 'http://r'}\n" REST,
                 7, "catalogue.registry.url", "format: avro and catalogue.framing: confluent only");
}

static void the_message_is_read_and_its_paths_are_checked(void **state)
{
  static const char start[] = "attributes: {price: number}\ncatalogue:\n  format: protobuf\n  schemas: " SET "\n";
  static const struct {
    const char *rest, *due;
  } bad[] = {
    { "  message: shop.v1.Flim\n  mapping: {vectors: {books: embedding}}\n", ":4: " SET ": there is no message" },
    { "  message: shop.v1.Film\n  mapping: {vectors: {books: vector}}\n",
      ":6: catalogue.mapping.vectors: vector: message shop.v1.Film has no field \"vector\"" },
    { "  message: shop.v1.Film\n  mapping:\n    key: sku.id\n    vectors: {books: embedding}\n",
      ":7: catalogue.mapping.key: sku.id: message shop.v1.Sku has no field \"id\"" },
    { "  message: shop.v1.Film\n  mapping:\n    deleted: Gone\n    vectors: {books: embedding}\n",
      ":7: catalogue.mapping.deleted: Gone: message" },
    { "  message: shop.v1.Film\n  mapping:\n    attributes:\n      price: prize\n",
      ":8: catalogue.mapping.attributes: prize: message" },
    { "  message: shop.v1.Film\n  mapping:\n    envelope: debezium\n    codes:\n      books: embedding\n",
      ":9: catalogue.mapping.codes: embedding: message shop.v1.Film has no field \"after\"" },
  };
  struct protobuf_source *source = NULL;
  char text[TEXT_BYTES];

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    snprintf(text, sizeof text, "%s%s%s", start, bad[i].rest, REST);
    struct config *c = open_text(text);
    assert_fails(config_message_open(c, &source), ERR_CONFIG, bad[i].due);
    config_close(&c);
  }
  snprintf(text, sizeof text, "%s  message: shop.v1.Film\n  mapping: {key: sku.code, attributes: {price: price}}\n%s",
           start, REST);
  struct config *c = open_text(text);
  assert_string_equal(c->catalogue.message, "shop.v1.Film");
  assert_ok(config_message_open(c, &source));
  protobuf_source_close(&source);
  config_close(&c);
}

static void all_mistakes_are_reported_at_once(void **state)
{
  struct problems problems = { 0 };
  struct config *c = NULL;

  (void)state;
  const char *text = JSON "  mapping:\n    key: .\n    vectors:\n      books: v\n      films: w\n    codes:\n"
                          "      books: /~\n      music: c\n    attributes:\n      country: c\n" REST;
  write_bytes(text, strlen(text));
  assert_int_equal(config_read(path, &problems, &c), ERR_OK);
  const char *const due[] = { ":5: catalogue.mapping.key", ":10: catalogue.mapping.codes.books",
                              ":8: ", ":11: ", ":13: " };
  assert_int_equal(problems.n, sizeof due / sizeof due[0]);
  for (size_t i = 0; i < problems.n; i++) {
    if (!strstr(problems.items[i], due[i]))
      fail_msg("%s does not have %s", problems.items[i], due[i]);
  }
  problems_fini(&problems);
  config_close(&c);
}

static void note_difference(void *context, const char *setting)
{
  snprintf((char *)context + strlen(context), TEXT_BYTES - strlen(context), "%s ", setting);
}

static void a_changed_mapping_is_a_difference(void **state)
{
  char differences[TEXT_BYTES] = "";

  (void)state;
  struct config *a = open_text(JSON "  mapping: {key: id, vectors: {books: a}}\n" REST);
  struct config *b = open_text(JSON "  framing: confluent\n  mapping: {key: sku, vectors: {books: b}}\n" REST);
  config_compare(a, a, note_difference, differences);
  assert_string_equal(differences, "");
  config_compare(a, b, note_difference, differences);
  assert_string_equal(differences, "catalogue.framing catalogue.mapping.key catalogue.mapping.vectors ");
  config_close(&a);
  config_close(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(paths_are_read_by_name),
    cmocka_unit_test(a_registry_stands_for_schemas),
    cmocka_unit_test(who_asks_no_registry_needs_no_password_of_it),
    cmocka_unit_test(mistakes_of_a_registry_name_their_line),
    cmocka_unit_test(mistakes_name_their_line),
    cmocka_unit_test(mistakes_of_a_message_name_their_line),
    cmocka_unit_test(the_message_is_read_and_its_paths_are_checked),
    cmocka_unit_test(all_mistakes_are_reported_at_once),
    cmocka_unit_test(a_changed_mapping_is_a_difference),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
