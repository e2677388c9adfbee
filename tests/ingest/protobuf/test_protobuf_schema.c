/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptor sets: what is made of them, and those that cannot be used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/protobuf/protobuf_schema.h"
#include "proto/descriptors.pb-c.h"
#include "tests/support/assert_ok.h"

enum { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };

static struct region region;

/* A set of one file with one message, m.M, of up to four fields. A test changes what it is about. */
static Descriptors__Set set;
static Descriptors__File file;
static Descriptors__Message message;
static Descriptors__Field fields[4];
static Descriptors__Enum number;
static Descriptors__EnumValue one;

static void set_field(size_t i, const char *name, int32_t of, int32_t type)
{
  descriptors__field__init(&fields[i]);
  fields[i].name = (char *)(uintptr_t)name;
  fields[i].has_number = fields[i].has_type = fields[i].has_label = 1;
  fields[i].number = of;
  fields[i].type = type;
  fields[i].label = LABEL_OPTIONAL;
}

static int begin(void **state)
{
  static Descriptors__File *const files[] = { &file };
  static Descriptors__Message *const messages[] = { &message };
  static Descriptors__Field *const pointers[] = { &fields[0], &fields[1], &fields[2], &fields[3] };
  static Descriptors__Enum *const enums[] = { &number };
  static Descriptors__EnumValue *const values[] = { &one };

  (void)state;
  descriptors__set__init(&set);
  descriptors__file__init(&file);
  descriptors__message__init(&message);
  descriptors__enum__init(&number);
  descriptors__enum_value__init(&one);
  set.n_file = file.n_message_type = file.n_enum_type = number.n_value = 1;
  set.file = (Descriptors__File **)(uintptr_t)files;
  file.package = (char *)(uintptr_t)"m";
  file.message_type = (Descriptors__Message **)(uintptr_t)messages;
  file.enum_type = (Descriptors__Enum **)(uintptr_t)enums;
  number.name = (char *)(uintptr_t)"E";
  number.value = (Descriptors__EnumValue **)(uintptr_t)values;
  one.name = (char *)(uintptr_t)"ONE";
  one.has_number = one.number = 1;
  message.name = (char *)(uintptr_t)"M";
  message.field = (Descriptors__Field **)(uintptr_t)pointers;
  message.n_field = 1;
  set_field(0, "a", 1, PROTOBUF_INT32);
  return 0;
}

static int end(void **state)
{
  (void)state;
  region_fini(&region);
  return 0;
}

static err_code_t make_bytes(const void *bytes, size_t n, const char *name, const struct protobuf_type **out)
{
  uint8_t *exact = malloc(n ? n : 1);

  assert_non_null(exact);
  if (n > 0)
    memcpy(exact, bytes, n);
  err_code_t err = protobuf_schema_make(span_of(exact, n), name, &region, out);
  free(exact);
  return err;
}

static err_code_t make(const struct protobuf_type **out)
{
  uint8_t bytes[4096];

  assert_true(descriptors__set__get_packed_size(&set) <= sizeof bytes);
  return make_bytes(bytes, descriptors__set__pack(&set, bytes), "m.M", out);
}

static void assert_refused(const char *due)
{
  const struct protobuf_type *type;

  assert_fails(make(&type), ERR_CONFIG, due);
}

static void fields_are_found_by_number_and_name(void **state)
{
  const struct protobuf_type *type;

  (void)state;
  message.n_field = 4;
  set_field(0, "d", 536870911, PROTOBUF_STRING);
  set_field(1, "a", 1, PROTOBUF_INT32);
  set_field(2, "c", 7, PROTOBUF_MESSAGE);
  set_field(3, "b", 2, PROTOBUF_ENUM);
  fields[2].type_name = (char *)(uintptr_t)".m.M"; /* itself */
  fields[3].type_name = (char *)(uintptr_t)".m.E";
  assert_ok(make(&type));
  assert_string_equal(type->name, "m.M");
  assert_string_equal(protobuf_schema_find(type, 1)->name, "a");
  assert_string_equal(protobuf_schema_find(type, 2)->name, "b");
  assert_string_equal(protobuf_schema_find(type, 7)->name, "c");
  assert_string_equal(protobuf_schema_find(type, 536870911)->name, "d");
  assert_null(protobuf_schema_find(type, 3));
  assert_null(protobuf_schema_find(type, 8));
  assert_ptr_equal(protobuf_schema_find_name(type, "c")->type, type);
  assert_null(protobuf_schema_find_name(type, "x"));
  assert_string_equal(protobuf_schema_find_value(protobuf_schema_find(type, 2)->enumeration, 1), "ONE");
  assert_null(protobuf_schema_find_value(protobuf_schema_find(type, 2)->enumeration, 0));
}

static void syntax_says_what_an_absent_field_is(void **state)
{
  const struct protobuf_type *type;

  (void)state;
  assert_ok(make(&type)); /* proto2, which compilers leave out */
  assert_false(type->fields[0].has_default);
  file.syntax = (char *)(uintptr_t)"proto3";
  assert_ok(make(&type));
  assert_true(type->fields[0].has_default);
  fields[0].has_proto3_optional = fields[0].proto3_optional = 1;
  assert_ok(make(&type));
  assert_false(type->fields[0].has_default);
}

/* Editions say it for a file or a field; 1: explicit, 2: implicit. */
static void features_of_an_edition_say_it_too(void **state)
{
  Descriptors__Features of_file = DESCRIPTORS__FEATURES__INIT, of_field = DESCRIPTORS__FEATURES__INIT;
  Descriptors__FileOptions file_options = DESCRIPTORS__FILE_OPTIONS__INIT;
  Descriptors__FieldOptions field_options = DESCRIPTORS__FIELD_OPTIONS__INIT;
  const struct protobuf_type *type;

  (void)state;
  file.syntax = (char *)(uintptr_t)"editions";
  file.has_edition = 1;
  file.edition = 1000;
  assert_ok(make(&type));
  assert_false(type->fields[0].has_default);
  file.options = &file_options;
  file_options.features = &of_file;
  of_file.has_field_presence = 1;
  of_file.field_presence = 2;
  assert_ok(make(&type));
  assert_true(type->fields[0].has_default);
  fields[0].options = &field_options;
  field_options.features = &of_field;
  of_field.has_field_presence = of_field.field_presence = 1;
  assert_ok(make(&type));
  assert_false(type->fields[0].has_default);
}

/* 2: delimited, that is, as a group. */
static void messages_of_an_edition_may_be_groups(void **state)
{
  Descriptors__Features features = DESCRIPTORS__FEATURES__INIT;
  Descriptors__FieldOptions options = DESCRIPTORS__FIELD_OPTIONS__INIT;
  const struct protobuf_type *type;

  (void)state;
  file.syntax = (char *)(uintptr_t)"editions";
  file.has_edition = 1;
  file.edition = 1001;
  set_field(0, "a", 1, PROTOBUF_MESSAGE);
  fields[0].type_name = (char *)(uintptr_t)".m.M";
  assert_ok(make(&type));
  assert_int_equal(type->fields[0].kind, PROTOBUF_MESSAGE);
  fields[0].options = &options;
  options.features = &features;
  features.has_message_encoding = 1;
  features.message_encoding = 2;
  assert_ok(make(&type));
  assert_int_equal(type->fields[0].kind, PROTOBUF_GROUP);
}

/* The entry's message is no group, even if all messages of the file are. */
static void what_is_in_a_map_is_no_group(void **state)
{
  Descriptors__Features features = DESCRIPTORS__FEATURES__INIT;
  Descriptors__FileOptions file_options = DESCRIPTORS__FILE_OPTIONS__INIT;
  Descriptors__MessageOptions options = DESCRIPTORS__MESSAGE_OPTIONS__INIT;
  const struct protobuf_type *type;

  (void)state;
  file.syntax = (char *)(uintptr_t)"editions";
  file.has_edition = 1;
  file.edition = 1000;
  file.options = &file_options;
  file_options.features = &features;
  features.has_message_encoding = 1;
  features.message_encoding = 2;
  message.n_field = 2;
  set_field(0, "key", 1, PROTOBUF_STRING);
  set_field(1, "value", 2, PROTOBUF_MESSAGE);
  fields[1].type_name = (char *)(uintptr_t)".m.M";
  assert_ok(make(&type));
  assert_int_equal(type->fields[1].kind, PROTOBUF_GROUP);
  message.options = &options;
  options.has_map_entry = options.map_entry = 1;
  assert_ok(make(&type));
  assert_int_equal(type->fields[1].kind, PROTOBUF_MESSAGE);
}

static void an_unknown_syntax_is_refused(void **state)
{
  (void)state;
  file.syntax = (char *)(uintptr_t)"proto4";
  assert_refused("message m.M: its syntax is \"proto4\", but only proto2, proto3 and the editions 2023 and 2024");
  file.syntax = (char *)(uintptr_t)"editions";
  assert_refused("its syntax is an edition");
  file.has_edition = 1;
  file.edition = 1002;
  assert_refused("its syntax is an edition");
}

static void a_missing_type_says_how_to_add_it(void **state)
{
  (void)state;
  set_field(0, "a", 1, PROTOBUF_MESSAGE);
  fields[0].type_name = (char *)(uintptr_t)".google.protobuf.Timestamp";
  assert_refused("message m.M: its field a: its type \"google.protobuf.Timestamp\" is not in the file: make that with "
                 "protoc's --include_imports");
  fields[0].type_name = NULL;
  assert_refused("its type \"\" is not in the file");
  fields[0].type_name = (char *)(uintptr_t)".m.E";
  assert_refused("its type m.E is no message");
  fields[0].type = PROTOBUF_ENUM;
  fields[0].type_name = (char *)(uintptr_t)".m.M";
  assert_refused("its type m.M is no enum");
}

static void wrong_fields_are_refused(void **state)
{
  (void)state;
  set_field(0, "a", 0, PROTOBUF_INT32);
  assert_refused("its field a: its number is 0");
  set_field(0, "a", 536870912, PROTOBUF_INT32);
  assert_refused("its field a: its number is 536870912");
  set_field(0, "a", 1, 19);
  assert_refused("its type has the number 19");
  set_field(0, "a", 1, 0);
  assert_refused("its type has the number 0");
  set_field(0, "", 1, 1);
  assert_refused("a name is missing");
  set_field(0, "\xff", 1, 1);
  assert_refused("a name is missing, or is not UTF-8");
  message.n_field = 2;
  set_field(0, "a", 1, 1);
  set_field(1, "b", 1, 1);
  assert_refused("it has two fields of number 1");
  set_field(1, "a", 2, 1);
  assert_refused("it has two fields a");
  set_field(1, "b", 2, 1);
  fields[1].has_oneof_index = 1;
  fields[1].oneof_index = 2;
  assert_refused("its field b is in oneof 2, which does not exist");
  fields[1].oneof_index = -1;
  assert_refused("its field b is in oneof -1");
}

static void wrong_defaults_are_refused(void **state)
{
  (void)state;
  fields[0].default_value = (char *)(uintptr_t)"five";
  assert_refused("its field a: its default \"five\" is not a value of its type");
  fields[0].default_value = (char *)(uintptr_t)"99999999999999999999";
  assert_refused("is not a value of its type");
  fields[0].type = PROTOBUF_BOOL;
  fields[0].default_value = (char *)(uintptr_t)"yes";
  assert_refused("is not a value of its type");
  fields[0].type = PROTOBUF_STRING;
  fields[0].default_value = (char *)(uintptr_t)"\xff";
  assert_refused("is not a value of its type");
  fields[0].type = PROTOBUF_ENUM;
  fields[0].type_name = (char *)(uintptr_t)".m.E";
  fields[0].default_value = (char *)(uintptr_t)"TWO";
  assert_refused("its default \"TWO\" is not");
}

static void the_entry_of_a_map_has_a_key_and_a_value(void **state)
{
  Descriptors__MessageOptions options = DESCRIPTORS__MESSAGE_OPTIONS__INIT;

  (void)state;
  options.has_map_entry = options.map_entry = 1;
  message.options = &options;
  assert_refused("it is the entry of a map, but has no key and value");
  message.n_field = 2;
  set_field(1, "b", 2, PROTOBUF_INT32);
  set_field(0, "a", 1, PROTOBUF_DOUBLE);
  assert_refused("it is the entry of a map");
}

static void oneofs_are_rings(void **state)
{
  const struct protobuf_type *type;

  (void)state;
  message.n_field = 4;
  for (int i = 0; i < 4; i++) {
    set_field((size_t)i, (const char *const[]){ "a", "b", "c", "d" }[i], i + 1, PROTOBUF_INT32);
    fields[i].has_oneof_index = i != 1;
  }
  fields[3].oneof_index = 1; /* a ring of one */
  assert_ok(make(&type));
  assert_ptr_equal(type->fields[0].next_in_oneof, &type->fields[2]);
  assert_ptr_equal(type->fields[2].next_in_oneof, &type->fields[0]);
  assert_ptr_equal(type->fields[3].next_in_oneof, &type->fields[3]);
  assert_null(type->fields[1].next_in_oneof);
}

static void what_is_no_descriptor_set_is_refused(void **state)
{
  static const char proto[] = "syntax = \"proto3\";\npackage shop.v1;\nmessage Film { string code = 1; }\n";
  static const char remedy[] = "make it of the .proto files with protoc --include_imports --descriptor_set_out=FILE";
  const struct protobuf_type *type;

  (void)state;
  assert_fails(make_bytes(proto, strlen(proto), "shop.v1.Film", &type), ERR_CONFIG, remedy);
  assert_fails(make_bytes(proto, strlen(proto), "shop.v1.Film", &type), ERR_CONFIG, "it is no descriptor set");
  assert_fails(make_bytes("// hi\n", 6, "m.M", &type), ERR_CONFIG, "it is no descriptor set");
  assert_fails(make_bytes(NULL, 0, "m.M", &type), ERR_CONFIG, "it defines no message");
  assert_fails(make_bytes("\x0a\x03" "m.p", 5, "m.M", &type), ERR_CONFIG, "it is no descriptor set");
}

static void messages_may_not_be_defined_too_deep(void **state)
{
  uint8_t bytes[256], *at = bytes + sizeof bytes;
  const struct protobuf_type *type;
  size_t n = 0;

  (void)state;
  for (int i = 0; i < 40; i++) { /* nested_type, again and again */
    *--at = (uint8_t)n;
    *--at = 3 << 3 | 2;
    n += 2;
  }
  *--at = (uint8_t)n;
  *--at = 4 << 3 | 2;
  *--at = (uint8_t)(n + 2);
  *--at = 1 << 3 | 2;
  assert_fails(make_bytes(at, n + 4, "m.M", &type), ERR_CONFIG, "messages are nested more than 32 deep");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(fields_are_found_by_number_and_name, begin),
    cmocka_unit_test_setup(syntax_says_what_an_absent_field_is, begin),
    cmocka_unit_test_setup(features_of_an_edition_say_it_too, begin),
    cmocka_unit_test_setup(messages_of_an_edition_may_be_groups, begin),
    cmocka_unit_test_setup(what_is_in_a_map_is_no_group, begin),
    cmocka_unit_test_setup(an_unknown_syntax_is_refused, begin),
    cmocka_unit_test_setup(a_missing_type_says_how_to_add_it, begin),
    cmocka_unit_test_setup(wrong_fields_are_refused, begin),
    cmocka_unit_test_setup(wrong_defaults_are_refused, begin),
    cmocka_unit_test_setup(the_entry_of_a_map_has_a_key_and_a_value, begin),
    cmocka_unit_test_setup(oneofs_are_rings, begin),
    cmocka_unit_test_setup(what_is_no_descriptor_set_is_refused, begin),
    cmocka_unit_test_setup(messages_may_not_be_defined_too_deep, begin),
  };

  return cmocka_run_group_tests(tests, NULL, end);
}
