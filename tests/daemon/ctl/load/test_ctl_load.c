/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what sluicectl load does without a daemon: .npy files, keys of rows, and the file of --resume.
 * tests/e2e/test_load.py runs the command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/ctl/array/ctl_keys.h"
#include "daemon/ctl/array/ctl_npy.h"
#include "daemon/ctl/ctl_pace.h"
#include "daemon/ctl/writer/ctl_resume.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"

enum { PATH_BYTES = PATH_MAX, FUZZ_ROUNDS = 500 };

static uint64_t seed;
static struct temp_dir dir;

static void name_file(const char *name, char out[PATH_BYTES])
{
  snprintf(out, PATH_BYTES, "%s/%s", dir.path, name);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
  FILE *file = fopen(path, "wb");

  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

/* Make the bytes of a .npy file. Returns their number. */
static size_t make_npy(unsigned version, const char *dictionary, const void *data, size_t n_data, uint8_t *out)
{
  uint32_t n = (uint32_t)strlen(dictionary);
  size_t n_length = version == 1 ? 2 : 4;

  memcpy(out, "\x93NUMPY", 6);
  out[6] = (uint8_t)version;
  out[7] = 0;
  memcpy(out + 8, &n, n_length);
  memcpy(out + 8 + n_length, dictionary, n);
  memcpy(out + 8 + n_length + n, data, n_data);
  return 8 + n_length + n + n_data;
}

static void write_npy(const char *path, unsigned version, const char *dictionary, const void *data, size_t n_data)
{
  uint8_t bytes[1024];

  write_file(path, bytes, make_npy(version, dictionary, data, n_data, bytes));
}

static void arrays_of_every_version_are_read(void **state)
{
  const float numbers[6] = { 1, -2, 3, 4, 5, 6.5f };
  char path[PATH_BYTES];

  (void)state;
  name_file("a.npy", path);
  for (unsigned version = 1; version <= 3; version++) {
    AUTO(ctl_npy_close) struct ctl_npy *f = NULL;
    float read[6];
    write_npy(path, version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", numbers,
              sizeof numbers);
    assert_ok(ctl_npy_map(path, &f));
    const struct tensor *tensor = ctl_npy_tensor(f);
    assert_int_equal(tensor->type, TENSOR_F32);
    assert_int_equal(tensor->shape.n_dims, 2);
    assert_int_equal(tensor->shape.dim[0], 2);
    assert_int_equal(tensor->shape.dim[1], 3);
    tensor_floats(tensor, 0, 6, read);
    assert_memory_equal(read, numbers, sizeof numbers);
  }
}

static void integers_of_every_type_keep_their_value(void **state)
{
  static const struct {
    const char *type;
    size_t bytes;
    int64_t smallest, largest;
  } rows[] = {
    { "|u1", 1, 0, UINT8_MAX },  { "|i1", 1, INT8_MIN, INT8_MAX },   { "<i2", 2, INT16_MIN, INT16_MAX },
    { "<u2", 2, 0, UINT16_MAX }, { "<i4", 4, INT32_MIN, INT32_MAX }, { "<u4", 4, 0, UINT32_MAX },
    { "<u8", 8, 0, -1 },         { "<i8", 8, INT64_MIN, INT64_MAX },
  };
  char path[PATH_BYTES], dictionary[128];

  (void)state;
  name_file("i.npy", path);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    AUTO(ctl_npy_close) struct ctl_npy *f = NULL;
    uint8_t data[16];
    memcpy(data, &rows[i].smallest, rows[i].bytes);
    memcpy(data + rows[i].bytes, &rows[i].largest, rows[i].bytes);
    snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n", rows[i].type);
    write_npy(path, 1, dictionary, data, 2 * rows[i].bytes);
    assert_ok(ctl_npy_map(path, &f));
    assert_true(tensor_integer(ctl_npy_tensor(f), 0) == rows[i].smallest);
    assert_true(tensor_integer(ctl_npy_tensor(f), 1) == rows[i].largest);
  }
}

static void wrong_arrays_are_refused_with_a_remedy(void **state)
{
  static const struct {
    const char *dictionary, *says;
  } rows[] = {
    { "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "byte order" },
    { "{'descr': '|V2', 'fortran_order': False, 'shape': (2, 3), }", "for BF16 use .safetensors" },
    { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "its type [('a'" },
    { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "numpy.ascontiguousarray" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }", "needs 36: is it cut short?" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", "needs 16: there is something behind" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2, 1, 3), }", "more than 4 dimensions" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2), }", "more numbers than" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }", "beyond any file" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", "does not say the shape" },
    { "{'descr': '<f4', 'fortran_order': False}", "does not say the shape" },
    { "{'fortran_order': False, 'shape': (2, 3)}", "does not say the type" },
  };
  const float numbers[6] = { 0 };
  char path[PATH_BYTES];
  struct ctl_npy *f;

  (void)state;
  name_file("w.npy", path);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    write_npy(path, 1, rows[i].dictionary, numbers, sizeof numbers);
    assert_fails(ctl_npy_map(path, &f), ERR_ITEM, rows[i].says);
    assert_non_null(strstr(err_message(), path));
  }
  write_file(path, "text", 4);
  assert_fails(ctl_npy_map(path, &f), ERR_ITEM, "not a .npy file");
  assert_fails(ctl_npy_map(dir.path, &f), ERR_ITEM, "is it a file");
}

/* A wrong size must not lead a read out of the file: the address sanitizer would see it. */
static void mutated_arrays_are_read_or_refused(void **state)
{
  const uint8_t data[24] = { 1, 2, 3 };
  struct dice dice = { seed };
  uint8_t good[256], bytes[256];
  size_t n = make_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data, sizeof data, good);
  char path[PATH_BYTES];

  (void)state;
  name_file("m.npy", path);
  for (int round = 0; round < FUZZ_ROUNDS; round++) {
    AUTO(ctl_npy_close) struct ctl_npy *f = NULL;
    memcpy(bytes, good, n);
    for (size_t k = dice_below(&dice, 3); k < 3; k++)
      bytes[dice_below(&dice, n)] = (uint8_t)dice_u64(&dice);
    write_file(path, bytes, dice_below(&dice, 4) ? n : dice_below(&dice, n + 1));
    if (ctl_npy_map(path, &f) != ERR_OK)
      continue;
    const struct tensor *tensor = ctl_npy_tensor(f);
    assert_true(tensor->bytes.n == 0 || tensor->bytes.p[0] + tensor->bytes.p[tensor->bytes.n - 1] >= 0);
  }
}

static void assert_key(const struct ctl_keys *k, size_t row, const char *expected)
{
  char buffer[ITEM_KEY_MAX + 1];

  assert_true(span_equal(ctl_keys_get(k, row, buffer), span_of_str(expected)));
}

static void keys_are_lines_integers_or_row_numbers(void **state)
{
  const uint64_t large[2] = { 7, UINT64_MAX };
  AUTO(ctl_keys_fini) struct ctl_keys rows = { 0 }, lines = { 0 }, numbers = { 0 };
  char text[PATH_BYTES], array[PATH_BYTES];

  (void)state;
  name_file("keys.txt", text);
  name_file("keys.npy", array);
  write_file(text, "gimp\n a b \nlast", strlen("gimp\n a b \nlast"));
  write_npy(array, 1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,), }", large, sizeof large);
  assert_ok(ctl_keys_open(NULL, "row-", 12, &rows));
  assert_key(&rows, 11, "row-11");
  assert_ok(ctl_keys_open(text, "", 3, &lines));
  assert_key(&lines, 1, " a b ");
  assert_key(&lines, 2, "last");
  assert_ok(ctl_keys_open(array, "n", 2, &numbers));
  assert_key(&numbers, 1, "n18446744073709551615");
}

static void two_rows_with_one_key_are_refused(void **state)
{
  const int64_t same[4] = { INT64_MIN, 5, INT64_MAX, INT64_MIN };
  AUTO(ctl_keys_fini) struct ctl_keys rows = { 0 }, lines = { 0 }, numbers = { 0 };
  char text[PATH_BYTES], array[PATH_BYTES];

  (void)state;
  name_file("same.txt", text);
  name_file("same.npy", array);
  assert_ok(ctl_keys_open(NULL, "", 12, &rows));
  assert_ok(ctl_keys_verify_distinct(&rows, NULL));
  write_file(text, "b\nab\na\nab", strlen("b\nab\na\nab"));
  assert_ok(ctl_keys_open(text, "film-", 4, &lines));
  assert_fails(ctl_keys_verify_distinct(&lines, text), ERR_ITEM, "lines 2 and 4 have the same key \"film-ab\"");
  lines.n_lines = 3;
  assert_ok(ctl_keys_verify_distinct(&lines, text));
  write_npy(array, 1, "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }", same, sizeof same);
  assert_ok(ctl_keys_open(array, "", 4, &numbers));
  assert_fails(ctl_keys_verify_distinct(&numbers, array), ERR_ITEM,
               "rows 0 and 3 have the same key \"-9223372036854775808\"");
}

static void wrong_keys_are_refused_before_use(void **state)
{
  char text[PATH_BYTES], prefix[ITEM_KEY_MAX + 1];
  struct ctl_keys k;

  (void)state;
  name_file("wrong.txt", text);
  write_file(text, "a\n\nb\n", 5);
  assert_fails(ctl_keys_open(text, "", 3, &k), ERR_ITEM, "line 2: the key has 0 bytes");
  ctl_keys_fini(&k);
  write_file(text, "a\nb\n", 4);
  assert_fails(ctl_keys_open(text, "", 3, &k), ERR_ITEM, "has 2 keys, but the array has 3 rows");
  ctl_keys_fini(&k);
  memset(prefix, 'p', sizeof prefix - 1);
  prefix[sizeof prefix - 1] = '\0';
  assert_fails(ctl_keys_open(NULL, prefix, 3, &k), ERR_USAGE, "--key-prefix has 256 bytes");
  ctl_keys_fini(&k);
}

static void a_resumed_load_knows_what_kafka_has(void **state)
{
  enum { N = 1000 };
  AUTO(ctl_resume_close) struct ctl_resume *r = NULL;
  struct dice dice = { seed };
  bool has[N] = { false };
  char path[PATH_BYTES];
  uint64_t n = 0;

  (void)state;
  name_file("resume", path);
  for (int round = 0; round < 4; round++) { /* opened again and again, as by one load after the other */
    assert_ok(ctl_resume_open(path, "load\nrows a\n", N, "row", &r));
    assert_int_equal(ctl_resume_count(r), n);
    for (size_t i = 0; i < N; i++) {
      assert_int_equal(ctl_resume_has(r, i), has[i]);
      if (has[i] || dice_below(&dice, 4))
        continue;
      ctl_resume_mark(r, i);
      has[i] = true;
      n++;
    }
    ctl_resume_close(&r);
  }
}

static void a_file_of_another_load_is_refused_and_kept(void **state)
{
  AUTO(ctl_resume_close) struct ctl_resume *r = NULL, *other = NULL;
  char path[PATH_BYTES];

  (void)state;
  name_file("other", path);
  assert_ok(ctl_resume_open(path, "load\nrows a\nend\n", 10, "row", &r));
  ctl_resume_mark(r, 9);
  assert_fails(ctl_resume_open(path, "load\nrows a\nend\n", 10, "row", &other), ERR_SYSTEM, "is another load running?");
  ctl_resume_close(&r);
  assert_fails(ctl_resume_open(path, "load\nrows b\nend\n", 10, "row", &other), ERR_SYSTEM,
               "it has \"rows a\", not \"rows b\"");
  assert_fails(ctl_resume_open(path, "load\nrows a\nend\n", 99, "row", &other), ERR_SYSTEM, "which has 99 rows");
  assert_fails(ctl_resume_open(path, "load\nrows a\nend\n", 1000, "line", &other), ERR_SYSTEM, "which has 1000 lines");
  assert_ok(ctl_resume_open(path, "load\nrows a\nend\n", 10, "row", &r));
  assert_int_equal(ctl_resume_count(r), 1);
  ctl_resume_close(&r);
  name_file("strange", path);
  write_file(path, "a short text", strlen("a short text"));
  assert_fails(ctl_resume_open(path, "load\n", 10, "row", &r), ERR_SYSTEM, "is not of this load");
}

static void a_file_that_has_changed_since_is_told(void **state)
{
  AUTO(ctl_resume_close) struct ctl_resume *r = NULL;
  char path[PATH_BYTES];

  (void)state;
  name_file("changed", path);
  assert_ok(ctl_resume_open(path, "load\nstate 7 bytes\n", 10, "line", &r));
  ctl_resume_close(&r);
  static const uint64_t lines[] = { 11, 1000 }; /* its file has the same size, and another one */
  for (size_t i = 0; i < 2; i++)
    assert_fails(ctl_resume_open(path, "load\nstate 8 bytes\n", lines[i], "line", &r), ERR_SYSTEM,
                 "(7 bytes then, 8 bytes now): if all was sent then, load what was added as a file of its own");
  assert_fails(ctl_resume_open(path, "load\ntopic a\n", 1000, "line", &r), ERR_SYSTEM,
               "it has \"state 7 bytes\", not \"topic a\"");
}

/* Files of the size that the load needs: one of text, and one that begins with zeros. */
static void a_foreign_file_is_not_written(void **state)
{
  enum { BYTES = 4096 + 2 };
  char path[PATH_BYTES], bytes[BYTES], found[BYTES];
  struct ctl_resume *r = NULL;

  (void)state;
  name_file("foreign", path);
  for (int c = 0; c < 2; c++) {
    memset(bytes, c ? 'x' : 0, sizeof bytes);
    bytes[BYTES - 1] = 'x';
    write_file(path, bytes, sizeof bytes);
    assert_fails(ctl_resume_open(path, "load\n", 10, "row", &r), ERR_SYSTEM, "is not of this load");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, BYTES, file), BYTES);
    fclose(file);
    assert_memory_equal(found, bytes, BYTES);
  }
}

static void a_rate_does_not_drift(void **state)
{
  const struct ctl_pace at_once = { 5, 0 }, pace = { 7, 3 };

  (void)state;
  assert_true(ctl_pace_due_ns(&at_once, 1000000) == 5);
  assert_true(ctl_pace_due_ns(&pace, 0) == 7);
  assert_true(ctl_pace_due_ns(&pace, 3000000) == 7 + 1000000 * CLOCK_NS_PER_S);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arrays_of_every_version_are_read),
    cmocka_unit_test(integers_of_every_type_keep_their_value),
    cmocka_unit_test(wrong_arrays_are_refused_with_a_remedy),
    cmocka_unit_test(mutated_arrays_are_read_or_refused),
    cmocka_unit_test(keys_are_lines_integers_or_row_numbers),
    cmocka_unit_test(two_rows_with_one_key_are_refused),
    cmocka_unit_test(wrong_keys_are_refused_before_use),
    cmocka_unit_test(a_resumed_load_knows_what_kafka_has),
    cmocka_unit_test(a_file_of_another_load_is_refused_and_kept),
    cmocka_unit_test(a_file_that_has_changed_since_is_told),
    cmocka_unit_test(a_foreign_file_is_not_written),
    cmocka_unit_test(a_rate_does_not_drift),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
