/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of safetensors files: our reader reads what it writes, and a file is either complete or unchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/ctl/eval/safetensors_write.h"
#include "engine/model/safetensors.h"
#include "tests/support/assert_ok.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"

static uint64_t seed;
static struct temp_dir dir;
static char path[sizeof dir.path + 32];

static size_t count_files(void)
{
  char command[sizeof dir.path + 32];
  size_t n;

  snprintf(command, sizeof command, "ls -A %s | wc -l", dir.path);
  FILE *pipe = popen(command, "r");
  assert_int_equal(fscanf(pipe, "%zu", &n), 1);
  pclose(pipe);
  return n;
}

static void assert_same(const struct safetensors *f, const struct tensor *tensor)
{
  struct tensor read;

  assert_ok(safetensors_tensor(f, tensor->name, TENSOR_TYPE_BIT(tensor->type), &read));
  assert_int_equal(read.shape.n_dims, tensor->shape.n_dims);
  for (size_t i = 0; i < read.shape.n_dims; i++)
    assert_int_equal(read.shape.dim[i], tensor->shape.dim[i]);
  assert_true(span_equal(read.bytes, tensor->bytes));
  if (read.bytes.n) /* the file is mapped, and the start of a page is aligned for every type */
    assert_int_equal((uintptr_t)read.bytes.p % tensor_type_bytes(read.type), 0);
}

static void what_is_written_is_read(void **state)
{
  struct dice dice = { seed };
  uint8_t data[512];

  (void)state;
  for (int round = 0; round < 200; round++) {
    AUTO(safetensors_close) struct safetensors *f = NULL;
    char names[6][16], value[8];
    struct tensor tensors[6];
    size_t n = dice_below(&dice, 7);
    for (size_t i = 0; i < sizeof data; i++)
      data[i] = (uint8_t)dice_u64(&dice);
    for (size_t i = 0; i < n; i++) {
      enum tensor_type type = (enum tensor_type)dice_below(&dice, N_TENSOR_TYPES);
      struct tensor_shape shape = { .n_dims = dice_below(&dice, 4), .dim = { 0 } };
      size_t count;
      for (size_t d = 0; d < shape.n_dims; d++)
        shape.dim[d] = dice_below(&dice, 5);
      assert_true(tensor_shape_count(&shape, &count));
      snprintf(names[i], sizeof names[i], "t\"%zu", i);
      tensors[i] = (struct tensor){ names[i], type, shape, span_of(data, count * tensor_type_bytes(type)) };
    }
    snprintf(value, sizeof value, "%d\n\"", round);
    const struct safetensors_entry metadata[] = { { "k", value }, { "f\xc3\xbcr", "\xe2\x82\xac" } };
    assert_ok(safetensors_write(path, metadata, 2, tensors, n));
    assert_ok(safetensors_map(path, &f));
    assert_string_equal(safetensors_text(f, "k"), value);
    assert_string_equal(safetensors_text(f, "f\xc3\xbcr"), "\xe2\x82\xac");
    for (size_t i = 0; i < n; i++)
      assert_same(f, &tensors[i]);
    assert_int_equal(count_files(), 1);
  }
}

static void a_file_that_cannot_be_written_is_named_and_leaves_nothing(void **state)
{
  char bad[sizeof path + 32];

  (void)state;
  snprintf(bad, sizeof bad, "%s/absent/o.safetensors", dir.path);
  assert_fails(safetensors_write(bad, NULL, 0, NULL, 0), ERR_SYSTEM, bad);
  assert_fails(safetensors_verify_writable(bad), ERR_SYSTEM, "No such file");
  assert_fails(safetensors_write(dir.path, NULL, 0, NULL, 0), ERR_SYSTEM, "not a regular file");
  assert_fails(safetensors_write("/dev/null", NULL, 0, NULL, 0), ERR_SYSTEM, "/dev/null");
  struct stat status;
  assert_int_equal(stat("/dev/null", &status), 0);
  assert_true(S_ISCHR(status.st_mode));
}

static void a_check_leaves_the_file_as_it_is(void **state)
{
  AUTO(safetensors_close) struct safetensors *f = NULL;
  const struct safetensors_entry metadata = { "a", "b" };

  (void)state;
  assert_ok(safetensors_write(path, &metadata, 1, NULL, 0));
  assert_ok(safetensors_verify_writable(path));
  assert_ok(safetensors_open(path, &f));
  assert_string_equal(safetensors_text(f, "a"), "b");
  assert_int_equal(count_files(), 1);
  assert_int_equal(unlink(path), 0);
  assert_ok(safetensors_verify_writable(path));
  assert_int_equal(count_files(), 0);
}

static void a_failed_write_keeps_the_former_file(void **state)
{
  AUTO(safetensors_close) struct safetensors *f = NULL;
  const struct safetensors_entry good = { "a", "b" }, bad = { "a", "\xff" };

  (void)state;
  assert_ok(safetensors_write(path, &good, 1, NULL, 0));
  assert_fails(safetensors_write(path, &bad, 1, NULL, 0), ERR_SYSTEM, "UTF-8");
  assert_ok(safetensors_open(path, &f));
  assert_string_equal(safetensors_text(f, "a"), "b");
  assert_int_equal(count_files(), 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(a_file_that_cannot_be_written_is_named_and_leaves_nothing),
    cmocka_unit_test(a_check_leaves_the_file_as_it_is),
    cmocka_unit_test(a_failed_write_keeps_the_former_file),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/o.safetensors", dir.path);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
