/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas from files: one for all values, or one for each id, some of which come later. Schemas from a registry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ingest/avro/avro_schemas.h"
#include "tests/support/assert_ok.h"
#include "tests/support/http_fixture.h"
#include "tests/support/temp_dir.h"

static struct temp_dir dir;

static int begin(void **state)
{
  (void)state;
  temp_dir_init(&dir);
  return 0;
}

static int end(void **state)
{
  (void)state;
  temp_dir_fini(&dir);
  return 0;
}

/* The path of a file in the folder, until the next call. */
static const char *path_of(const char *name)
{
  static char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/%s", dir.path, name);
  return path;
}

static void save(const char *name, const char *text)
{
  FILE *file = fopen(path_of(name), "w");

  assert_non_null(file);
  assert_int_equal(fputs(text, file) >= 0, true);
  assert_int_equal(fclose(file), 0);
}

static void assert_message(const char *due)
{
  if (!strstr(err_message(), due))
    fail_msg("\"%s\" is not in: %s", due, err_message());
}

static err_code_t open_files(const char *path, bool has_ids, struct avro_schemas **out)
{
  const struct avro_sources from = { .has_ids = has_ids, .path = path, .registry.url = "" };

  return avro_schemas_open(&from, out);
}

static void one_file_is_the_schema_of_all_values(void **state)
{
  struct avro_schemas *s = NULL;
  const struct avro_type *type;

  (void)state;
  save("films.avsc", "\"double\"");
  assert_ok(open_files(path_of("films.avsc"), false, &s));
  assert_ok(avro_schemas_find(s, 0, true, &type));
  assert_int_equal(type->kind, AVRO_DOUBLE);
  avro_schemas_close(&s);
}

static void an_id_chooses_the_schema(void **state)
{
  struct avro_schemas *s = NULL;
  const struct avro_type *type;

  (void)state;
  save("7.avsc", "\"int\"");
  save("4294967295.avsc", "{\"schema\": \"{\\\"type\\\": \\\"string\\\"}\"}"); /* as a registry answers */
  save("readme.txt", "not a schema");
  assert_ok(open_files(path_of("."), true, &s));
  assert_ok(avro_schemas_find(s, 7, true, &type));
  assert_int_equal(type->kind, AVRO_INT);
  assert_ok(avro_schemas_find(s, UINT32_MAX, true, &type));
  assert_int_equal(type->kind, AVRO_STRING);
  assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_WIRE);
  assert_message("schema 8 is not known: save it from the registry as ");
  assert_message("/8.avsc, then retry the record");
  save("8.avsc", "{");
  assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_WIRE);
  assert_message("8.avsc: not JSON");
  save("8.avsc", "\"bytes\"");
  assert_ok(avro_schemas_find(s, 8, true, &type));
  assert_int_equal(type->kind, AVRO_BYTES);
  avro_schemas_close(&s);
}

static void files_that_cannot_be_used_are_named(void **state)
{
  struct avro_schemas *s = NULL;

  (void)state;
  assert_int_equal(open_files(path_of("missing.avsc"), false, &s), ERR_CONFIG);
  assert_message("catalogue.schemas: ");
  assert_message("missing.avsc cannot be opened: No such file or directory");
  save("empty.avsc", "");
  assert_int_equal(open_files(path_of("empty.avsc"), false, &s), ERR_CONFIG);
  assert_message("empty.avsc: not JSON");
  save("wrong.avsc", "\"flaot\"");
  assert_int_equal(open_files(path_of("wrong.avsc"), false, &s), ERR_CONFIG);
  assert_message("wrong.avsc: the schema: there is no type \"flaot\"");
  save("text.avsc", "{\"schema\": \"{\"}");
  assert_int_equal(open_files(path_of("text.avsc"), false, &s), ERR_CONFIG);
  assert_message("the text of its member \"schema\" is not JSON");
  assert_int_equal(open_files(path_of("text.avsc"), true, &s), ERR_CONFIG);
  assert_message("it is a folder of schemas");
  assert_int_equal(open_files(path_of("."), false, &s), ERR_CONFIG);
  assert_message("is not a regular file");
}

static void a_folder_without_schemas_is_refused(void **state)
{
  struct avro_schemas *s = NULL;

  (void)state;
  assert_int_equal(open_files(path_of("."), true, &s), ERR_CONFIG);
  assert_message("it has no schema: save each as its id in the registry, such as 17.avsc");
  save("x7.avsc", "\"int\"");
  save("99999999999.avsc", "\"int\"");
  assert_int_equal(open_files(path_of("."), true, &s), ERR_CONFIG);
  assert_null(s);
}

/* The registry -------------------- */

static struct http_fixture server;
static struct avro_schemas *s;

/* Open schemas of a registry, and of a folder; "": there is none. */
static void open_registry(const char *path, const char *user)
{
  char url[80];
  const struct avro_sources from = {
    .has_ids = true, .path = path, .registry = { .url = url, .user = user, .password = "hush", .ca_file = "" }
  };

  snprintf(url, sizeof url, "%s/", server.url);
  avro_schemas_close(&s);
  assert_ok(avro_schemas_open(&from, &s));
}

static int begin_with_server(void **state)
{
  http_fixture_init(&server);
  return begin(state);
}

static int end_with_server(void **state)
{
  avro_schemas_close(&s);
  http_fixture_fini(&server);
  return end(state);
}

static void answer(int status, const char *body)
{
  atomic_store(&server.status, status);
  atomic_store(&server.answer, body);
}

static void a_registry_is_asked_once_for_each_id(void **state)
{
  const struct avro_type *type;

  (void)state;
  open_registry("", "");
  assert_int_equal(server.n_requests, 0);
  answer(200, "{\"schema\": \"{\\\"type\\\": \\\"string\\\"}\"}");
  assert_ok(avro_schemas_find(s, UINT32_MAX, true, &type));
  assert_int_equal(type->kind, AVRO_STRING);
  assert_non_null(strstr(http_fixture_request(&server), "GET /v1/traces/schemas/ids/4294967295 HTTP/1.1\r\n"));
  assert_null(strstr(http_fixture_request(&server), "Authorization"));
  answer(200, "{\"schemaType\": \"AVRO\", \"schema\": \"\\\"int\\\"\", \"references\": []}");
  assert_ok(avro_schemas_find(s, 7, true, &type));
  assert_int_equal(type->kind, AVRO_INT);
  assert_ok(avro_schemas_find(s, UINT32_MAX, true, &type));
  assert_int_equal(type->kind, AVRO_STRING);
  assert_int_equal(server.n_requests, 2);
}

static void a_registry_is_told_who_asks(void **state)
{
  const struct avro_type *type;

  (void)state;
  open_registry("", "me");
  answer(200, "{\"schema\": \"\\\"int\\\"\"}");
  assert_ok(avro_schemas_find(s, 7, true, &type));
  assert_non_null(strstr(http_fixture_request(&server), "Authorization: Basic bWU6aHVzaA==\r\n")); /* me:hush */
}

static void a_folder_comes_before_the_registry(void **state)
{
  const struct avro_type *type;

  (void)state;
  save("7.avsc", "\"int\"");
  open_registry(path_of("."), "");
  answer(200, "{\"schema\": \"\\\"string\\\"\"}");
  assert_ok(avro_schemas_find(s, 7, true, &type));
  assert_int_equal(type->kind, AVRO_INT);
  save("8.avsc", "\"bytes\"");
  assert_ok(avro_schemas_find(s, 8, true, &type));
  assert_int_equal(type->kind, AVRO_BYTES);
  assert_int_equal(server.n_requests, 0);
  assert_ok(avro_schemas_find(s, 9, true, &type));
  assert_int_equal(type->kind, AVRO_STRING);
  save("10.avsc", "{");
  assert_int_equal(avro_schemas_find(s, 10, true, &type), ERR_WIRE);
  assert_message("schema 10: ");
  assert_message("10.avsc: not JSON");
  assert_int_equal(server.n_requests, 1);
}

/* What a registry says that is for good. It is not asked again at once. */
static void what_the_registry_does_not_have_is_refused(void **state)
{
  static const struct {
    int status;
    const char *answer, *due;
  } cases[] = {
    { 404, "{\"error_code\": 40403, \"message\": \"Schema 8 not found\"}",
      "/schemas/ids/8 answers \"Schema 8 not found\"" },
    { 200, "{\"schemaType\": \"PROTOBUF\", \"schema\": \"x\"}", "is not a schema of Avro, but of \"PROTOBUF\"" },
    { 200, "{\"schema\": \"\\\"int\\\"\", \"references\": [{\"name\": \"a\"}]}",
      "the registry names no subject of at most 512 bytes, or no version, in its references" },
    { 200, "{\"schema\": \"{\"}", "/schemas/ids/11: the text of its member \"schema\" is not JSON" },
    { 200, "{\"schema\": \"\\\"flaot\\\"\"}", "the registry's answer: the schema: there is no type \"flaot\"" },
  };
  const struct avro_type *type;

  (void)state;
  open_registry("", "");
  for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    answer(cases[i].status, cases[i].answer);
    for (int times = 0; times < 3; times++) {
      assert_int_equal(avro_schemas_find(s, 8 + i, true, &type), ERR_WIRE);
      assert_message(i == 0 ? "schema 8: " : "schema ");
      assert_message(cases[i].due);
    }
    assert_int_equal(server.n_requests, i + 1);
  }
}

static char long_text[(4 << 20) + 2];

/* What may be over soon. */
static void a_registry_that_cannot_tell_is_asked_again(void **state)
{
  static const struct {
    int status;
    const char *answer, *due;
  } cases[] = {
    { 503, "busy", "answers with HTTP status 503: \"busy\"" },
    { 401, "{\"error_code\": 401, \"message\": \"Unauthorized\"}", "answers with HTTP status 401: \"Unauthorized\"" },
    { 404, "<html>no such page</html>", "answers with HTTP status 404: \"<html>no such page</html>\"" },
    { 404, "{\"error_code\": 404, \"message\": \"HTTP 404 Not Found\"}",
      "answers with HTTP status 404: \"HTTP 404 Not Found\"" },
    { 200, long_text, "answers with HTTP status 200 and more than 4194304 bytes" },
    { 503, long_text, "answers with HTTP status 503 and more than 4194304 bytes" },
    { 200, "<html>hello</html>", "answers without a schema: is it the URL of a schema registry?" },
    { 200, "{\"schema\": \"\\\"int\\\"\", \"references\": {}}", "or references that are no list" },
    { 200, "{\"schema\": \"\\\"int\\\"\", \"schemaType\": 1}", "answers with a schemaType that is no text" },
  };
  const struct avro_type *type;

  (void)state;
  memset(long_text, 'x', sizeof long_text - 1);
  for (int i = 0; i < (int)(sizeof cases / sizeof cases[0]); i++) {
    open_registry("", "");
    answer(cases[i].status, cases[i].answer);
    assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_REGISTRY);
    assert_message("schema 8: http://127.0.0.1:");
    assert_message(cases[i].due);
    answer(200, "{\"schema\": \"\\\"int\\\"\"}");
    assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_REGISTRY); /* not again at once */
    assert_message(cases[i].due);
    assert_int_equal(server.n_requests, 3 * i + 1);
    assert_ok(avro_schemas_find(s, 9, true, &type)); /* other ids are not concerned */
    clock_sleep_ns(600 * CLOCK_NS_PER_MS);
    assert_int_equal(avro_schemas_find(s, 8, false, &type), ERR_REGISTRY);
    assert_ok(avro_schemas_find(s, 8, true, &type));
    assert_int_equal(server.n_requests, 3 * i + 3);
  }
}

static void the_registry_is_asked_only_when_it_may_be(void **state)
{
  const struct avro_type *type;

  (void)state;
  open_registry("", "");
  answer(200, "{\"schema\": \"\\\"int\\\"\"}");
  assert_int_equal(avro_schemas_find(s, 8, false, &type), ERR_REGISTRY);
  assert_message("schema 8: the registry is asked for it in a moment");
  assert_int_equal(server.n_requests, 0);
  assert_ok(avro_schemas_find(s, 8, true, &type));
  assert_ok(avro_schemas_find(s, 8, false, &type));
}

/* After pauses of 0.5 and 1 s. */
static void the_pauses_between_questions_grow(void **state)
{
  const struct avro_type *type;
  int64_t begin_ns = clock_now_ns();

  (void)state;
  open_registry("", "");
  answer(500, "");
  while (server.n_requests < 3) {
    assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_REGISTRY);
    clock_sleep_ns(10 * CLOCK_NS_PER_MS);
  }
  assert_true(clock_now_ns() - begin_ns >= 1500 * CLOCK_NS_PER_MS);
}

static void a_registry_that_is_not_there_is_named(void **state)
{
  const struct avro_type *type;

  (void)state;
  open_registry("", "");
  atomic_store(&server.mode, HTTP_FIXTURE_CLOSES);
  assert_int_equal(avro_schemas_find(s, 8, true, &type), ERR_REGISTRY);
  assert_message("/schemas/ids/8 does not answer: ");
  assert_int_equal(avro_schemas_find(s, 9, true, &type), ERR_REGISTRY); /* it is left alone, whatever the id */
  assert_message("schema 9: ");
  assert_message("/schemas/ids/8 does not answer: ");
  atomic_store(&server.mode, HTTP_FIXTURE_ANSWERS);
  answer(200, "{\"schema\": \"\\\"int\\\"\"}");
  clock_sleep_ns(600 * CLOCK_NS_PER_MS);
  assert_ok(avro_schemas_find(s, 9, true, &type));
  assert_ok(avro_schemas_find(s, 8, true, &type));
}

static void a_folder_may_be_empty_beside_a_registry(void **state)
{
  const struct avro_type *type;

  (void)state;
  open_registry(path_of("."), "");
  save("8.avsc", "\"int\"");
  assert_ok(avro_schemas_find(s, 8, false, &type));
}

static void authorities_that_cannot_be_read_are_refused(void **state)
{
  struct avro_schemas *schemas = NULL;
  const struct avro_sources from = {
    .has_ids = true, .path = "", .registry = { .url = "https://r", .user = "", .ca_file = path_of("none.pem") }
  };

  (void)state;
  assert_int_equal(avro_schemas_open(&from, &schemas), ERR_CONFIG);
  assert_message("catalogue.registry.ca_file: ");
  assert_message("none.pem cannot be read: No such file or directory");
}

/* The last test: what is renewed is so for the whole process. */
static void a_registry_is_told_who_asks_now(void **state)
{
  const struct schema_registry_access renewed = { .user = "me", .password = "anew", .ca_file = "" };
  const struct schema_registry_access unreadable = { .user = "you", .password = "", .ca_file = "/none" };
  const struct avro_type *type;

  (void)state;
  open_registry("", "me");
  answer(200, "{\"schema\": \"\\\"int\\\"\"}");
  assert_ok(avro_schemas_find(s, 7, true, &type));
  assert_ok(schema_registry_renew(&renewed));
  assert_int_equal(schema_registry_renew(&unreadable), ERR_CONFIG);
  assert_message("catalogue.registry.ca_file: /none cannot be read");
  for (uint32_t id = 8; id < 10; id++) {
    assert_ok(avro_schemas_find(s, id, true, &type));
    assert_non_null(strstr(http_fixture_request(&server), "Authorization: Basic bWU6YW5ldw==\r\n")); /* me:anew */
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_file_is_the_schema_of_all_values, begin, end),
    cmocka_unit_test_setup_teardown(an_id_chooses_the_schema, begin, end),
    cmocka_unit_test_setup_teardown(files_that_cannot_be_used_are_named, begin, end),
    cmocka_unit_test_setup_teardown(a_folder_without_schemas_is_refused, begin, end),
    cmocka_unit_test_setup_teardown(a_registry_is_asked_once_for_each_id, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(a_registry_is_told_who_asks, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(a_folder_comes_before_the_registry, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(what_the_registry_does_not_have_is_refused, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(a_registry_that_cannot_tell_is_asked_again, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(a_registry_that_is_not_there_is_named, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(the_registry_is_asked_only_when_it_may_be, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(the_pauses_between_questions_grow, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(a_folder_may_be_empty_beside_a_registry, begin_with_server, end_with_server),
    cmocka_unit_test_setup_teardown(authorities_that_cannot_be_read_are_refused, begin, end),
    cmocka_unit_test_setup_teardown(a_registry_is_told_who_asks_now, begin_with_server, end_with_server),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
