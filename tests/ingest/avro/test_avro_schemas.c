/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas from files: one for all values, or one for each id, some of which come later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/avro/avro_schemas.h"
#include "tests/support/assert_ok.h"
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

static void one_file_is_the_schema_of_all_values(void **state)
{
  struct avro_schemas *s = NULL;
  const struct avro_type *type;

  (void)state;
  save("films.avsc", "\"double\"");
  assert_ok(avro_schemas_open(path_of("films.avsc"), false, &s));
  assert_ok(avro_schemas_find(s, 0, &type));
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
  assert_ok(avro_schemas_open(path_of("."), true, &s));
  assert_ok(avro_schemas_find(s, 7, &type));
  assert_int_equal(type->kind, AVRO_INT);
  assert_ok(avro_schemas_find(s, UINT32_MAX, &type));
  assert_int_equal(type->kind, AVRO_STRING);
  assert_int_equal(avro_schemas_find(s, 8, &type), ERR_WIRE);
  assert_message("schema 8 is not known: save it from the registry as ");
  assert_message("/8.avsc, then retry the record");
  save("8.avsc", "{");
  assert_int_equal(avro_schemas_find(s, 8, &type), ERR_WIRE);
  assert_message("8.avsc: not JSON");
  save("8.avsc", "\"bytes\"");
  assert_ok(avro_schemas_find(s, 8, &type));
  assert_int_equal(type->kind, AVRO_BYTES);
  avro_schemas_close(&s);
}

static void files_that_cannot_be_used_are_named(void **state)
{
  struct avro_schemas *s = NULL;

  (void)state;
  assert_int_equal(avro_schemas_open(path_of("missing.avsc"), false, &s), ERR_CONFIG);
  assert_message("catalogue.schemas: ");
  assert_message("missing.avsc cannot be opened: No such file or directory");
  save("empty.avsc", "");
  assert_int_equal(avro_schemas_open(path_of("empty.avsc"), false, &s), ERR_CONFIG);
  assert_message("empty.avsc: not JSON");
  save("wrong.avsc", "\"flaot\"");
  assert_int_equal(avro_schemas_open(path_of("wrong.avsc"), false, &s), ERR_CONFIG);
  assert_message("wrong.avsc: the schema: there is no type \"flaot\"");
  save("text.avsc", "{\"schema\": \"{\"}");
  assert_int_equal(avro_schemas_open(path_of("text.avsc"), false, &s), ERR_CONFIG);
  assert_message("the text of its member \"schema\" is not JSON");
  assert_int_equal(avro_schemas_open(path_of("text.avsc"), true, &s), ERR_CONFIG);
  assert_message("it is a folder of schemas");
  assert_int_equal(avro_schemas_open(path_of("."), false, &s), ERR_CONFIG);
  assert_message("is not a regular file");
}

static void a_folder_without_schemas_is_refused(void **state)
{
  struct avro_schemas *s = NULL;

  (void)state;
  assert_int_equal(avro_schemas_open(path_of("."), true, &s), ERR_CONFIG);
  assert_message("it has no schema: save each as its id in the registry, such as 17.avsc");
  save("x7.avsc", "\"int\"");
  save("99999999999.avsc", "\"int\"");
  assert_int_equal(avro_schemas_open(path_of("."), true, &s), ERR_CONFIG);
  assert_null(s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(one_file_is_the_schema_of_all_values, begin, end),
    cmocka_unit_test_setup_teardown(an_id_chooses_the_schema, begin, end),
    cmocka_unit_test_setup_teardown(files_that_cannot_be_used_are_named, begin, end),
    cmocka_unit_test_setup_teardown(a_folder_without_schemas_is_refused, begin, end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
