/* SPDX-License-Identifier: Apache-2.0 */
/* Model files in the directory of a store: made whole or not at all, found by their digest, swept, verified, copied. */
#include "store/models/model_files.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/models/model_file.h"
#include "tests/support/assert_ok.h"
#include "tests/support/temp_dir.h"

static struct temp_dir dir;

static int setup(void **state)
{
  (void)state;
  temp_dir_init(&dir);
  return 0;
}

static int teardown(void **state)
{
  (void)state;
  temp_dir_fini(&dir);
  return 0;
}

static const char *digest_of(const char *text, char hex[SHA256_HEX_BYTES])
{
  assert_ok(sha256_hex(span_of_str(text), hex));
  return hex;
}

/* Make a file of a text, with a name of its own digest. The second half comes first. */
static err_code_t make(const char *text, const char *digest)
{
  AUTO(model_file_close) struct model_file *f = NULL;
  size_t n = strlen(text), half = n / 2;

  TRY(model_file_open(dir.path, digest, n, &f));
  TRY(model_file_write(f, half, span_of(text + half, n - half)));
  TRY(model_file_write(f, 0, span_of(text, half)));
  return model_file_commit(f);
}

static bool is_there(const char *digest, const char *ending)
{
  char path[PATH_MAX];

  assert_ok(model_files_path(dir.path, digest, ending, path));
  return access(path, F_OK) == 0;
}

static bool find(const char *digest)
{
  bool found = false;

  assert_ok(model_files_find(dir.path, digest, &found));
  return found;
}

static void overwrite(const char *digest, const char *text)
{
  char path[PATH_MAX];

  assert_ok(model_files_path(dir.path, digest, "", path));
  FILE *out = fopen(path, "we");
  assert_non_null(out);
  assert_true(fputs(text, out) >= 0);
  assert_int_equal(fclose(out), 0);
}

static void a_whole_file_is_found_by_its_digest(void **state)
{
  char hex[SHA256_HEX_BYTES];

  (void)state;
  digest_of("a model", hex);
  assert_false(find(hex));
  assert_ok(make("a model", hex));
  assert_true(find(hex));
  assert_false(is_there(hex, ".part"));
}

static void wrong_bytes_never_get_the_name(void **state)
{
  char hex[SHA256_HEX_BYTES];

  (void)state;
  digest_of("a model", hex);
  assert_int_equal(make("another", hex), ERR_MODEL);
  assert_non_null(strstr(err_message(), hex));
  assert_false(is_there(hex, ""));
  assert_false(is_there(hex, ".part"));
}

static void a_file_that_was_damaged_is_removed(void **state)
{
  char hex[SHA256_HEX_BYTES];

  (void)state;
  assert_ok(make("a model", digest_of("a model", hex)));
  overwrite(hex, "a modem");
  assert_false(find(hex));
  assert_false(is_there(hex, ""));
}

static void without_room_it_is_said_at_once(void **state)
{
  struct rlimit former, small = { .rlim_cur = 4096 };
  struct model_file *f = NULL;
  char hex[SHA256_HEX_BYTES];

  (void)state;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
  small.rlim_max = former.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_int_equal(model_file_open(dir.path, digest_of("large", hex), 8192, &f), ERR_STORE_FULL);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
  assert_non_null(strstr(err_message(), "make room"));
  assert_false(is_there(hex, ".part"));
}

/* Leave an unfinished file behind, as a crash does. */
static void leave_unfinished(const char *digest)
{
  char path[PATH_MAX];

  assert_ok(model_files_path(dir.path, digest, ".part", path));
  FILE *out = fopen(path, "we");
  assert_non_null(out);
  assert_int_equal(fclose(out), 0);
}

static bool is_this(void *context, const char digest[SHA256_HEX_BYTES])
{
  return strcmp(digest, context) == 0;
}

static void a_sweep_removes_what_nobody_needs(void **state)
{
  char needed[SHA256_HEX_BYTES], other[SHA256_HEX_BYTES], foreign[PATH_MAX];
  size_t n = 77;

  (void)state;
  assert_ok(model_files_sweep(dir.path, is_this, "", &n)); /* without a folder */
  assert_int_equal(n, 0);
  assert_ok(make("needed", digest_of("needed", needed)));
  assert_ok(make("other", digest_of("other", other)));
  leave_unfinished(other);
  leave_unfinished(needed);
  snprintf(foreign, sizeof foreign, "%s/models/notes.safetensors", dir.path);
  FILE *out = fopen(foreign, "we");
  assert_non_null(out);
  assert_int_equal(fclose(out), 0);
  assert_ok(model_files_sweep(dir.path, is_this, needed, &n));
  assert_int_equal(n, 3);
  assert_true(find(needed));
  assert_false(is_there(other, "") || is_there(other, ".part") || is_there(needed, ".part"));
  assert_int_equal(access(foreign, F_OK), 0);
}

static void verifying_names_the_damaged_file(void **state)
{
  char a[SHA256_HEX_BYTES], b[SHA256_HEX_BYTES];
  size_t n;

  (void)state;
  assert_ok(make("a", digest_of("a", a)));
  assert_ok(make("b", digest_of("b", b)));
  assert_ok(model_files_verify(dir.path, &n));
  assert_int_equal(n, 2);
  overwrite(b, "x");
  assert_int_equal(model_files_verify(dir.path, &n), ERR_STORE_CORRUPT);
  assert_non_null(strstr(err_message(), b));
  assert_true(is_there(b, "")); /* it only looks */
}

static void a_copy_has_the_whole_files(void **state)
{
  char a[SHA256_HEX_BYTES], b[SHA256_HEX_BYTES];
  struct temp_dir to;
  size_t n;

  (void)state;
  temp_dir_init(&to);
  assert_ok(model_files_copy(dir.path, to.path)); /* there are none */
  assert_ok(make("a", digest_of("a", a)));
  leave_unfinished(digest_of("b", b));
  assert_ok(model_files_copy(dir.path, to.path));
  assert_ok(model_files_verify(to.path, &n));
  assert_int_equal(n, 1);
  assert_int_equal(model_files_copy(dir.path, to.path), ERR_STORE); /* it replaces nothing */
  temp_dir_fini(&to);
}

/* The folder of the copy is there already, so that making it again fails too, for another reason. */
static void a_file_that_cannot_be_opened_is_not_copied_and_says_why(void **state)
{
  char hex[SHA256_HEX_BYTES], path[PATH_MAX], to_path[PATH_MAX];
  struct temp_dir to;

  (void)state;
  temp_dir_init(&to);
  assert_ok(model_files_path(dir.path, digest_of("a model", hex), "", path));
  assert_ok(model_files_path(to.path, hex, "", to_path));
  assert_ok(model_files_make_folder(dir.path));
  assert_ok(model_files_make_folder(to.path));
  assert_int_equal(symlink(path, path), 0); /* names itself */
  assert_int_equal(model_files_copy(dir.path, to.path), ERR_STORE);
  assert_non_null(strstr(err_message(), strerror(ELOOP)));
  assert_int_equal(access(to_path, F_OK), -1);
  temp_dir_fini(&to);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_whole_file_is_found_by_its_digest, setup, teardown),
    cmocka_unit_test_setup_teardown(wrong_bytes_never_get_the_name, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_that_was_damaged_is_removed, setup, teardown),
    cmocka_unit_test_setup_teardown(without_room_it_is_said_at_once, setup, teardown),
    cmocka_unit_test_setup_teardown(a_sweep_removes_what_nobody_needs, setup, teardown),
    cmocka_unit_test_setup_teardown(verifying_names_the_damaged_file, setup, teardown),
    cmocka_unit_test_setup_teardown(a_copy_has_the_whole_files, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_that_cannot_be_opened_is_not_copied_and_says_why, setup, teardown),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
