/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of model files: good files give the right numbers, and broken files give an error that names the file and
 * the tensor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/model/safetensors.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/heap.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

static uint64_t seed;
static struct temp_dir dir;
static char path[sizeof dir.path + 32];

/* Six numbers, and their bytes in each type. */
static const float numbers[6] = { 1.0f, -2.0f, 0.5f, 0.0f, 1024.0f, -0.25f };

static void write_bytes(const void *bytes, size_t n)
{
  FILE *file = fopen(path, "wb");

  assert_non_null(file);
  if (n)
    assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
}

/* Compose the bytes of a file with this header. */
static size_t compose(const char *header, const void *data, size_t n, uint8_t *out)
{
  uint64_t n_header = strlen(header);

  memcpy(out, &n_header, 8);
  memcpy(out + 8, header, n_header);
  if (n)
    memcpy(out + 8 + n_header, data, n);
  return 8 + n_header + n;
}

static void assert_message_names(const char *what)
{
  if (!strstr(err_message(), path) || !strstr(err_message(), what))
    fail_msg("\"%s\" does not name the file and \"%s\"", err_message(), what);
}

static void numbers_of_every_type_come_out_as_f32(void **state)
{
  static const char header[] =
      "{\"__metadata__\":{\"a\":\"b\"},"
      "\"f32\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
      "\"f64\":{\"dtype\":\"F64\",\"shape\":[6],\"data_offsets\":[24,72]},"
      "\"f16\":{\"dtype\":\"F16\",\"shape\":[3,1,2],\"data_offsets\":[72,84]},"
      "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[1,6],\"data_offsets\":[84,96]},"
      "\"again\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
      "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
      "\"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[96,96]}}";
  static const uint16_t halves[6] = { 0x3c00, 0xc000, 0x3800, 0x0000, 0x6400, 0xb400 };
  static const uint16_t brains[6] = { 0x3f80, 0xc000, 0x3f00, 0x0000, 0x4480, 0xbe80 };
  AUTO(safetensors_close) struct safetensors *f = NULL;
  uint8_t data[96];
  double doubles[6];
  float *out;

  (void)state;
  for (int i = 0; i < 6; i++)
    doubles[i] = (double)numbers[i];
  memcpy(data, numbers, 24);
  memcpy(data + 24, doubles, 48);
  memcpy(data + 72, halves, 12);
  memcpy(data + 84, brains, 12);
  model_file_write(path, header, data, sizeof data);
  assert_ok(safetensors_open(path, &f));
  assert_string_equal(safetensors_path(f), path);
  assert_ok(safetensors_floats(f, "f32", &out, 2, (size_t)2, (size_t)3));
  assert_memory_equal(out, numbers, 24);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "f64", &out, 1, (size_t)6));
  assert_memory_equal(out, numbers, 24);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "f16", &out, 3, (size_t)3, (size_t)1, (size_t)2));
  assert_memory_equal(out, numbers, 24);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "bf16", &out, 2, (size_t)1, (size_t)6));
  assert_memory_equal(out, numbers, 24);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "again", &out, 1, (size_t)1));
  assert_true(out[0] == -2.0f);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "scalar", &out, 0));
  assert_true(out[0] == 1.0f);
  mem_free(&out);
  assert_ok(safetensors_floats(f, "empty", &out, 1, (size_t)0));
  mem_free(&out);
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
  static const char header[] = "{\"t\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}";
  uint8_t bytes[256];
  size_t n = compose(header, numbers, sizeof numbers, bytes);

  (void)state;
  for (size_t cut = 0; cut <= n; cut++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    AUTO(mem_free) float *out = NULL;
    write_bytes(bytes, cut);
    err_code_t err = safetensors_open(path, &f);
    assert_int_equal(err, cut < 8 + strlen(header) ? ERR_MODEL : ERR_OK);
    if (err != ERR_OK) {
      assert_message_names("");
      assert_null(f);
      continue;
    }
    err = safetensors_floats(f, "t", &out, 1, (size_t)6);
    assert_int_equal(err, cut < n ? ERR_MODEL : ERR_OK);
    if (err != ERR_OK)
      assert_message_names("\"t\"");
  }
}

static void what_is_no_file_is_refused_by_name(void **state)
{
  struct safetensors *f = NULL;
  char was[sizeof path];

  (void)state;
  memcpy(was, path, sizeof was);
  snprintf(path, sizeof path, "%s/absent", dir.path);
  assert_fails(safetensors_open(path, &f), ERR_MODEL, "No such file");
  assert_message_names("");
  snprintf(path, sizeof path, "%s", dir.path);
  assert_fails(safetensors_open(path, &f), ERR_MODEL, "file");
  assert_message_names("");
  snprintf(path, sizeof path, "/dev/null");
  assert_fails(safetensors_open(path, &f), ERR_MODEL, "file");
  assert_message_names("");
  assert_null(f);
  memcpy(path, was, sizeof was);
}

static void a_header_that_is_no_json_object_is_refused(void **state)
{
  static const char *const headers[] = {
    "", " ", "{", "}", "[]", "[1,2]", "1", "null", "\"x\"", "{\"a\":}", "{\"a\":1,}", "{\"a\":1}x", "{\"a\":1,\"a\":2}",
    "{\"a\\u0000b\":1}", "{\"a\":1e999}", "{'a':1}", "{\"\xff\":1}",
  };
  struct safetensors *f = NULL;

  (void)state;
  for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
    model_file_write(path, headers[i], NULL, 0);
    if (safetensors_open(path, &f) != ERR_MODEL)
      fail_msg("the header %s was not refused", headers[i]);
    assert_message_names("header");
    assert_null(f);
  }
}

static void a_header_nested_too_deep_is_refused(void **state)
{
  enum { DEPTH = 200000 };
  char *header = malloc(5 + DEPTH + 1);
  struct safetensors *f = NULL;

  (void)state;
  memcpy(header, "{\"a\":", 5);
  memset(header + 5, '[', DEPTH);
  header[5 + DEPTH] = '\0';
  model_file_write(path, header, NULL, 0);
  assert_fails(safetensors_open(path, &f), ERR_MODEL, "header");
  free(header);
}

static void a_header_length_beyond_the_file_is_refused(void **state)
{
  static const uint64_t lengths[] = { 9, 100, 1u << 30, UINT64_MAX, UINT64_MAX - 7, INT64_MAX };
  uint8_t bytes[16] = { 0 };
  struct safetensors *f = NULL;

  (void)state;
  memcpy(bytes + 8, "{}      ", 8);
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    memcpy(bytes, &lengths[i], 8);
    write_bytes(bytes, sizeof bytes);
    assert_fails(safetensors_open(path, &f), ERR_MODEL, "header");
    assert_message_names("");
  }
}

static void a_tensor_that_does_not_fit_is_refused_by_name(void **state)
{
  static const struct {
    const char *entry; /* the header entry of tensor "layer.w" */
    const char *says;
  } rows[] = {
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}", NULL },
    { "{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}", "[3, 2] where the model needs [2, 3]" },
    { "{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}", "[6] where the model needs [2, 3]" },
    { "{\"dtype\":\"F32\",\"shape\":[1,2,3],\"data_offsets\":[0,24]}", "[1, 2, 3]" },
    { "{\"dtype\":\"F32\",\"shape\":[1,1,1,2,3],\"data_offsets\":[0,24]}", "more than 4 dimensions" },
    { "{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,24]}", "[] where" },
    { "{\"dtype\":\"F32\",\"shape\":[-2,-3],\"data_offsets\":[0,24]}", "dimension of -2" },
    { "{\"dtype\":\"F32\",\"shape\":[4294967298,4294967299],\"data_offsets\":[0,24]}", "dimension of 4294967298" },
    { "{\"dtype\":\"F32\",\"shape\":[2.0,3.0],\"data_offsets\":[0,24]}", "not a whole number" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3.5],\"data_offsets\":[0,24]}", "a dimension that is not a whole number" },
    { "{\"dtype\":\"F32\",\"shape\":[2,null],\"data_offsets\":[0,24]}", "not a whole number" },
    { "{\"dtype\":\"F32\",\"shape\":[\"2\",\"3\"],\"data_offsets\":[0,24]}", "not a whole number" },
    { "{\"dtype\":\"F32\",\"shape\":{\"0\":2},\"data_offsets\":[0,24]}", "no shape" },
    { "{\"dtype\":\"F32\",\"shape\":6,\"data_offsets\":[0,24]}", "no shape" },
    { "{\"dtype\":\"F32\",\"data_offsets\":[0,24]}", "no shape" },
    { "{\"shape\":[2,3],\"data_offsets\":[0,24]}", "type" },
    { "{\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]}", "type I32" },
    { "{\"dtype\":\"f32\",\"shape\":[2,3],\"data_offsets\":[0,24]}", "type f32" },
    { "{\"dtype\":32,\"shape\":[2,3],\"data_offsets\":[0,24]}", "type" },
    { "{\"dtype\":\"F64\",\"shape\":[2,3],\"data_offsets\":[0,24]}", "24 bytes where its shape needs 48" },
    { "{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,24]}", "24 bytes where its shape needs 12" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24,48]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,0]}", "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-24,0]}", "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]}", "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,9223372036854775807]}", "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[9223372036854775800,9223372036854775807]}",
      "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-9223372036854775808,9223372036854775807]}",
      "inside the file" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[\"0\",\"24\"]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0.5,24]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24.0]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[null,24]}", "not two whole numbers" },
    { "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]}", "20 bytes where its shape needs 24" },
    { "[]", "" },
    { "null", "" },
    { "17", "" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    AUTO(mem_free) float *out = NULL;
    char header[512];
    snprintf(header, sizeof header, "{\"layer.w\":%s}", rows[i].entry);
    model_file_write(path, header, numbers, sizeof numbers);
    assert_ok(safetensors_open(path, &f));
    err_code_t err = safetensors_floats(f, "layer.w", &out, 2, (size_t)2, (size_t)3);
    if (!rows[i].says) {
      assert_ok(err);
      continue;
    }
    if (err != ERR_MODEL)
      fail_msg("%s was not refused", rows[i].entry);
    assert_message_names("\"layer.w\"");
    assert_message_names(rows[i].says);
    assert_null(out);
  }
}

static void a_tensor_that_is_absent_is_named(void **state)
{
  AUTO(safetensors_close) struct safetensors *f = NULL;
  struct tensor_shape shape;
  float *out;

  (void)state;
  model_file_write(path, "{\"__metadata__\":{\"shape\":\"x\"},"
                   "\"t\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}",
                   numbers, sizeof numbers);
  assert_ok(safetensors_open(path, &f));
  assert_true(safetensors_has(f, "t"));
  assert_false(safetensors_has(f, "u"));
  assert_false(safetensors_has(f, "__metadata__"));
  assert_fails(safetensors_floats(f, "u", &out, 1, (size_t)6), ERR_MODEL, "no tensor \"u\"");
  assert_message_names("\"u\"");
  assert_fails(safetensors_shape(f, "__metadata__", &shape), ERR_MODEL, "no tensor \"__metadata__\"");
  assert_ok(safetensors_shape(f, "t", &shape));
  assert_int_equal(shape.n_dims, 1);
  assert_int_equal(shape.dim[0], 6);
}

static void a_number_that_is_not_finite_is_refused_with_its_place(void **state)
{
  static const struct {
    const char *dtype;
    uint64_t bits;
    size_t size;
  } rows[] = {
    { "F32", 0x7fc00000, 4 },         { "F32", 0x7f800000, 4 }, { "F32", 0xff800000, 4 }, { "F32", 0x7f800001, 4 },
    { "F64", 0x7ff8000000000000, 8 }, { "F64", 0x7ff0000000000000, 8 },
    { "F64", 0x7fe0000000000000, 8 }, /* finite as F64, infinite as f32 */
    { "F32", 0x49742401, 4 },         /* just above 10^6 */
    { "F16", 0x7c00, 2 },             { "F16", 0xfe00, 2 },     { "BF16", 0x7f80, 2 },    { "BF16", 0xffc0, 2 },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (size_t at = 0; at < 3; at++) {
      AUTO(safetensors_close) struct safetensors *f = NULL;
      float *out;
      uint8_t data[24] = { 0 };
      char header[256], where[32];
      memcpy(data + at * rows[i].size, &rows[i].bits, rows[i].size);
      snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
               rows[i].dtype, 3 * rows[i].size);
      snprintf(where, sizeof where, "number %zu is ", at);
      model_file_write(path, header, data, sizeof data);
      assert_ok(safetensors_open(path, &f));
      assert_fails(safetensors_floats(f, "w", &out, 1, (size_t)3), ERR_MODEL, where);
      assert_message_names("\"w\"");
    }
  }
}

static void metadata_numbers_are_whole_texts_within_bounds(void **state)
{
  static const struct {
    const char *text;
    bool is_integer, is_real; /* readable as a number within [-1, 100] */
  } rows[] = {
    { "5", true, true },     { "-1", true, true },   { "100", true, true }, { "1e2", true, true },
    { "5.0", true, true },
    { "0.5", false, true },  { "101", false, false }, { "-2", false, false }, { "", false, false },
    { "x", false, false },
    { "5x", false, false },  { "5 ", false, false }, { "nan", false, false }, { "inf", false, false },
    { "-inf", false, false },
    { "1e999", false, false }, { "100.0001", false, false }, { "99999999999999999999", false, false },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    char header[256];
    int64_t integer = 77;
    double real = 77;
    snprintf(header, sizeof header, "{\"__metadata__\":{\"mol.k\":\"%s\",\"n\":5}}", rows[i].text);
    model_file_write(path, header, NULL, 0);
    assert_ok(safetensors_open(path, &f));
    assert_int_equal(safetensors_integer(f, "mol.k", -1, 100, &integer) == ERR_OK, rows[i].is_integer);
    if (rows[i].is_integer)
      assert_true((double)integer == strtod(rows[i].text, NULL));
    else
      assert_message_names("\"mol.k\"");
    assert_int_equal(safetensors_real(f, "mol.k", -1.0, 100.0, &real) == ERR_OK, rows[i].is_real);
    if (rows[i].is_real)
      assert_true(real == strtod(rows[i].text, NULL));
    else
      assert_message_names("\"mol.k\"");
    assert_string_equal(safetensors_text(f, "mol.k"), rows[i].text);
    assert_null(safetensors_text(f, "n")); /* metadata values must be text */
    assert_null(safetensors_text(f, "absent"));
    assert_fails(safetensors_integer(f, "absent", 0, 1, &integer), ERR_MODEL, "\"absent\"");
  }
}

static void tensors_of_any_type_are_seen_where_they_lie(void **state)
{
  static const char header[] =
      "{\"ids\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[3,19]},"
      "\"codes\":{\"dtype\":\"U8\",\"shape\":[1,3],\"data_offsets\":[0,3]},"
      "\"big\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[19,35]},"
      "\"i32\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  const int64_t ids[2] = { INT64_MIN, -1 };
  const double big[2] = { 1e300, -0.5 };
  uint8_t data[35] = { 7, 0, 255 };
  float floats[2];

  (void)state;
  memcpy(data + 3, ids, sizeof ids);
  memcpy(data + 19, big, sizeof big);
  model_file_write(path, header, data, sizeof data);
  for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    struct tensor tensor;
    assert_ok(is_mapped ? safetensors_map(path, &f) : safetensors_open(path, &f));
    assert_ok(safetensors_tensor(f, "ids", TENSOR_TYPE_BIT(TENSOR_I64), &tensor));
    assert_int_equal(tensor.type, TENSOR_I64);
    assert_int_equal(tensor.shape.n_dims, 1);
    assert_int_equal(tensor.bytes.n, 16);
    assert_true(tensor_i64(&tensor, 0) == INT64_MIN && tensor_i64(&tensor, 1) == -1);
    assert_ok(safetensors_tensor(f, "codes", TENSOR_TYPE_BIT(TENSOR_U8) | TENSOR_FLOATS, &tensor));
    assert_true(span_equal(tensor.bytes, span_of(data, 3)));
    assert_ok(safetensors_tensor(f, "big", TENSOR_FLOATS, &tensor));
    tensor_floats(&tensor, 0, 2, floats);
    assert_true(isinf(floats[0]) && floats[1] == -0.5f);
    tensor_floats(&tensor, 1, 1, floats);
    assert_true(floats[0] == -0.5f);
    assert_fails(safetensors_tensor(f, "ids", TENSOR_FLOATS, &tensor), ERR_MODEL,
                 "\"ids\" has type I64; F32, F64, F16 or BF16 can be used");
    assert_fails(safetensors_tensor(f, "big", TENSOR_TYPE_BIT(TENSOR_U8), &tensor), ERR_MODEL,
                 "type F64; U8 can be used");
    assert_fails(safetensors_tensor(f, "i32", TENSOR_TYPE_BIT(TENSOR_I64), &tensor), ERR_MODEL, "type I32; I64 can be");
    assert_fails(safetensors_tensor(f, "absent", TENSOR_FLOATS, &tensor), ERR_MODEL, "no tensor \"absent\"");
    assert_fails(safetensors_floats(f, "codes", &(float *){ NULL }, 2, (size_t)1, (size_t)3), ERR_MODEL, "type U8");
  }
}

static void shapes_beyond_all_files_are_refused(void **state)
{
  static const char *const shapes[] = { "[4294967295,4294967295,4294967295]", "[4294967295,4294967295,2]",
                                        "[4294967295,4294967295]", "[4294967295,4294967295,4294967295,0]" };

  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    struct tensor tensor;
    char header[256];
    snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"F64\",\"shape\":%s,\"data_offsets\":[0,8]}}", shapes[i]);
    model_file_write(path, header, numbers, 8);
    assert_ok(safetensors_open(path, &f));
    assert_int_equal(safetensors_tensor(f, "t", TENSOR_FLOATS, &tensor), ERR_MODEL);
    assert_message_names("\"t\"");
  }
}

static void a_file_of_metadata_alone_opens(void **state)
{
  (void)state;
  model_file_write(path, "{\"__metadata__\":{\"sluice.similarity\":\"dot\"}}", NULL, 0);
  for (int is_mapped = 0; is_mapped < 2; is_mapped++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    assert_ok(is_mapped ? safetensors_map(path, &f) : safetensors_open(path, &f));
    assert_string_equal(safetensors_text(f, "sluice.similarity"), "dot");
    assert_false(safetensors_has(f, "__metadata__"));
  }
}

static void what_cannot_be_mapped_is_refused_as_what_cannot_be_read(void **state)
{
  struct safetensors *f = NULL;

  (void)state;
  write_bytes("", 0);
  assert_fails(safetensors_map(path, &f), ERR_MODEL, "only 0 bytes");
  write_bytes("1234567", 7);
  assert_fails(safetensors_map(path, &f), ERR_MODEL, "only 7 bytes");
  assert_fails(safetensors_map(dir.path, &f), ERR_MODEL, "is not a regular file");
  assert_fails(safetensors_map("/dev/null", &f), ERR_MODEL, "is not a regular file");
  assert_null(f);
}

static void a_pipe_that_nobody_writes_is_refused_at_once(void **state)
{
  struct safetensors *f = NULL;

  (void)state;
  remove(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(10); /* opening a pipe would otherwise block for ever */
  assert_fails(safetensors_map(path, &f), ERR_MODEL, "is not a regular file");
  alarm(0);
  assert_null(f);
  remove(path);
}

/* Call every function that reads from a file. */
static void ask_all(void)
{
  static const char *const names[] = { "t", "u", "__metadata__", "" };
  AUTO(safetensors_close) struct safetensors *f = NULL;
  struct tensor_shape shape;
  struct tensor tensor;
  int64_t integer;
  double real;

  if (safetensors_open(path, &f) != ERR_OK) {
    assert_message_names("");
    return;
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    AUTO(mem_free) float *out = NULL;
    safetensors_has(f, names[i]);
    safetensors_text(f, names[i]);
    if (safetensors_shape(f, names[i], &shape) != ERR_OK)
      assert_message_names(names[i]);
    if (safetensors_floats(f, names[i], &out, 2, (size_t)2, (size_t)3) != ERR_OK)
      assert_message_names(names[i]);
    for (size_t j = 0; out && j < 6; j++)
      assert_true(isfinite(out[j]));
    if (safetensors_tensor(f, names[i], (1u << N_TENSOR_TYPES) - 1, &tensor) != ERR_OK)
      assert_message_names(names[i]);
    else if (tensor.bytes.n) /* the bytes must be inside the file */
      assert_true(tensor.bytes.p[0] + tensor.bytes.p[tensor.bytes.n - 1] >= 0);
    if (safetensors_integer(f, "n", 0, 1000, &integer) == ERR_OK)
      assert_in_range(integer, 0, 1000);
    if (safetensors_real(f, "n", 0.0, 1000.0, &real) == ERR_OK)
      assert_true(real >= 0.0 && real <= 1000.0);
  }
}

static void mutated_files_are_read_or_refused(void **state)
{
  static const char header[] =
      "{\"__metadata__\":{\"n\":\"12\"},"
      "\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
      "\"u\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[24,36]}}";
  static const char alphabet[] = "{}[]\",:0123456789-.eFB \\tun";
  struct dice dice = { seed };
  uint8_t whole[512], bytes[512], data[36] = { 0 };

  (void)state;
  memcpy(data, numbers, sizeof numbers);
  size_t n_whole = compose(header, data, sizeof data, whole);
  for (int round = 0; round < 1500; round++) {
    size_t n = n_whole;
    memcpy(bytes, whole, n);
    for (size_t i = 0, n_changes = 1 + dice_below(&dice, 4); i < n_changes; i++) {
      size_t at = dice_below(&dice, n);
      if (at >= 8 && dice_below(&dice, 4))
        bytes[at] = (uint8_t)alphabet[dice_below(&dice, sizeof alphabet - 1)];
      else
        bytes[at] ^= (uint8_t)(1u << dice_below(&dice, 8));
    }
    if (dice_below(&dice, 4) == 0)
      n = dice_below(&dice, n);
    write_bytes(bytes, n);
    ask_all();
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_of_every_type_come_out_as_f32),
    cmocka_unit_test(a_file_cut_short_anywhere_is_refused),
    cmocka_unit_test(what_is_no_file_is_refused_by_name),
    cmocka_unit_test(a_header_that_is_no_json_object_is_refused),
    cmocka_unit_test(a_header_nested_too_deep_is_refused),
    cmocka_unit_test(a_header_length_beyond_the_file_is_refused),
    cmocka_unit_test(a_tensor_that_does_not_fit_is_refused_by_name),
    cmocka_unit_test(a_tensor_that_is_absent_is_named),
    cmocka_unit_test(a_number_that_is_not_finite_is_refused_with_its_place),
    cmocka_unit_test(metadata_numbers_are_whole_texts_within_bounds),
    cmocka_unit_test(tensors_of_any_type_are_seen_where_they_lie),
    cmocka_unit_test(shapes_beyond_all_files_are_refused),
    cmocka_unit_test(a_file_of_metadata_alone_opens),
    cmocka_unit_test(what_cannot_be_mapped_is_refused_as_what_cannot_be_read),
    cmocka_unit_test(a_pipe_that_nobody_writes_is_refused_at_once),
    cmocka_unit_test(mutated_files_are_read_or_refused),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/m.safetensors", dir.path);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
