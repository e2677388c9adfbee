/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of stores, and the check that reads every record. */
#include "store/store_backup.h"

#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/lmdb/directory_lock.h"
#include "store/models/model_file.h"
#include "store/models/model_files.h"
#include "store/seen/seen_store.h"
#include "tests/support/store_fixture.h"

enum { ITEMS = 200 };

static const float marker = 12345.678f; /* bytes that are in the file once for each item */

static void put_items(struct fixture *f)
{
  struct part part = { .space = span_of_str("s"), .vector = { &marker, 1 } };
  struct store_position position = position_of(2, ITEMS);
  struct item_change changes[ITEMS];
  char keys[ITEMS][8];

  for (int i = 0; i < ITEMS; i++) {
    snprintf(keys[i], sizeof keys[i], "%d", i);
    changes[i] = (struct item_change){
      .key = span_of_str(keys[i]), .parts = &part, .n_parts = 1, .partition = 2, .offset = i, .timestamp_ms = i
    };
  }
  assert_ok(store_apply(f->store, changes, ITEMS, &position, 1, NULL));
}

static void put_seen(const char *path)
{
  static const struct seen_store_limits limits = { .max_per_user = 100 };
  struct span items[] = { span_of_str("a"), span_of_str("b"), span_of_str("c") };
  struct seen_change change = { .user = span_of_str("7"), .items = items, .n_items = 3, .time_unix_ms = 1 };
  struct seen_store *s = NULL;

  assert_ok(seen_store_open(path, &limits, &s));
  assert_ok(seen_store_apply(s, &change, 1, NULL, 0));
  seen_store_close(&s);
}

/* Fill the fixture's store and close it: LMDB opens an environment once in a process. */
static void fill_and_close(struct fixture *f, char store[PATH_MAX], char copy[PATH_MAX])
{
  char seen[PATH_MAX];

  put_items(f);
  snprintf(store, PATH_MAX, "%s", f->store->env->path);
  snprintf(copy, PATH_MAX, "%.4000s-copy", store);
  snprintf(seen, sizeof seen, "%.4000s/seen", store);
  store_close(&f->store);
  put_seen(seen);
}

static void assert_contents(const char *path)
{
  struct store_contents found;

  assert_ok(store_backup_verify(path, &found));
  assert_int_equal(found.n_items, ITEMS);
  assert_int_equal(found.n_partitions, 1);
  assert_true(found.has_seen);
  assert_int_equal(found.n_seen_items, 3);
}

static void a_copy_has_everything(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX];
  size_t n;

  fill_and_close(f, store, copy);
  assert_contents(store);
  assert_ok(store_backup_copy(store, copy));
  assert_contents(copy);
  assert_ok(store_open(copy, &f->store));
  const struct store_position *positions = store_positions(f->store, &n);
  assert_int_equal(n, 1);
  assert_int_equal(positions[0].at.partition, 2);
  assert_int_equal(positions[0].at.next, ITEMS);
  assert_int_equal(store_backup_verify(copy, &(struct store_contents){ 0 }), ERR_STORE_IN_USE);
}

/* Put a model file into a store that is closed. */
static void put_model_file(const char *store, char digest[SHA256_HEX_BYTES])
{
  struct span bytes = span_of_str("a model");
  struct model_file *file = NULL;

  assert_ok(sha256_hex(bytes, digest));
  assert_ok(model_file_open(store, digest, bytes.n, &file));
  assert_ok(model_file_write(file, 0, bytes));
  assert_ok(model_file_commit(file));
  model_file_close(&file);
}

static void a_copy_has_the_model_files(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], seen[PATH_MAX], digest[SHA256_HEX_BYTES];
  struct store_contents found;
  bool is_there;

  fill_and_close(f, store, copy);
  put_model_file(store, digest);
  assert_ok(store_backup_copy(store, copy));
  assert_ok(store_backup_verify(copy, &found));
  assert_int_equal(found.n_model_files, 1);
  assert_ok(model_files_find(copy, digest, &is_there));
  assert_true(is_there);
  temp_dir_remove(copy);

  snprintf(seen, sizeof seen, "%.4000s/data.mdb", store); /* it is copied last */
  assert_int_equal(truncate(seen, 100), 0);
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE);
  assert_int_equal(access(copy, F_OK), -1);
}

static void nothing_is_overwritten(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX];

  fill_and_close(f, store, copy);
  assert_ok(store_backup_copy(store, copy));
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE);
  assert_says("something is in it");
  assert_contents(copy);
  assert_int_equal(store_backup_copy("/nowhere", copy), ERR_STORE);
  assert_says("there is no store");
  assert_int_equal(store_backup_verify("/nowhere", &(struct store_contents){ 0 }), ERR_STORE);
}

static void a_copy_into_the_store_itself_is_refused(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], path[PATH_MAX];

  fill_and_close(f, store, copy);
  static const char *const within[] = { "", "/.", "/copy", "/copy/", "/seen", "/seen/copy" };
  for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
    snprintf(path, sizeof path, "%.4000s%s", store, within[i]);
    assert_int_equal(store_backup_copy(store, path), ERR_STORE);
    assert_says("is within the store");
  }
  assert_int_equal(symlink(store, copy), 0); /* another name of the store */
  snprintf(path, sizeof path, "%.4000s/copy", copy);
  assert_int_equal(store_backup_copy(store, path), ERR_STORE);
  assert_says("name one outside it");
  assert_int_equal(unlink(copy), 0);
  assert_contents(store);
  assert_ok(store_backup_copy(store, copy)); /* its path only begins like that of the store */
}

static void assert_private(const char *directory, const char *name)
{
  char path[PATH_MAX];
  struct stat found;

  snprintf(path, sizeof path, "%.4000s/%s", directory, name);
  assert_int_equal(stat(path, &found), 0);
  assert_int_equal(found.st_mode & 0777, 0640);
}

static void others_may_not_read_a_copy(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX];
  mode_t former = umask(0);

  fill_and_close(f, store, copy);
  assert_ok(store_backup_copy(store, copy));
  umask(former);
  assert_private(copy, "data.mdb");
  assert_private(copy, "seen/data.mdb");
}

static void a_directory_that_a_daemon_opens_is_left_alone(void **state)
{
  AUTO(directory_lock_release) struct directory_lock lock = DIRECTORY_LOCK_NONE;
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], lock_file[PATH_MAX];

  fill_and_close(f, store, copy);
  assert_int_equal(mkdir(copy, 0750), 0);
  assert_ok(directory_lock_acquire(copy, &lock));
  snprintf(lock_file, sizeof lock_file, "%.4000s/sluice.lock", copy);
  assert_int_equal(unlink(lock_file), 0); /* so far the daemon has made no file */
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE_IN_USE);
  assert_int_equal(rmdir(copy), 0);
}

static void a_directory_that_cannot_be_locked_does_not_stay(void **state)
{
  struct fixture *f = *state;
  struct rlimit former, none = { .rlim_cur = 0 };
  char store[PATH_MAX], copy[PATH_MAX];

  fill_and_close(f, store, copy);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &former), 0);
  none.rlim_max = former.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  err_code_t err = store_backup_copy(store, copy);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &former), 0);
  assert_int_equal(err, ERR_STORE);
  assert_says("cannot be read");
  assert_int_equal(access(copy, F_OK), -1);
}

static void a_copy_that_fails_leaves_what_was_there(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], seen[PATH_MAX];

  fill_and_close(f, store, copy);
  snprintf(seen, sizeof seen, "%.4000s/seen/data.mdb", store);
  assert_int_equal(truncate(seen, 100), 0);
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE);
  assert_int_equal(access(copy, F_OK), -1);
  assert_int_equal(mkdir(copy, 0750), 0);
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE);
  assert_int_equal(rmdir(copy), 0); /* it is there, and empty */
}

/* Root may enter every directory, so be somebody else for a moment. */
static void a_directory_that_may_not_be_entered_is_named(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX];
  struct store_contents found;
  uid_t user = geteuid();

  fill_and_close(f, store, copy);
  assert_int_equal(chmod(store, 0), 0);
  assert_int_equal(user == 0 ? seteuid(65534) : 0, 0);
  err_code_t verified = store_backup_verify(store, &found);
  char said[PATH_MAX];
  snprintf(said, sizeof said, "%s", err_message());
  err_code_t copied = store_backup_copy(store, copy);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(chmod(store, 0700), 0);
  assert_int_equal(verified, ERR_STORE);
  assert_non_null(strstr(said, store));
  assert_non_null(strstr(said, "Permission denied"));
  assert_int_equal(copied, ERR_STORE);
  assert_says("Permission denied");
  assert_int_equal(store_backup_verify(copy, &found), ERR_STORE);
  assert_says("there is no store in");
}

/* Let nobody write a folder and its files, and leave no lock files in it, as on a read-only mount. */
static void seal_folder(const char *folder)
{
  static const char *const locks[] = { "lock.mdb", "sluice.lock" };
  char path[PATH_MAX];

  for (size_t i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%.4000s/%s", folder, locks[i]);
    unlink(path);
  }
  snprintf(path, sizeof path, "%.4000s/data.mdb", folder);
  assert_int_equal(chmod(path, 0444), 0);
  assert_int_equal(chmod(folder, 0555), 0);
}

static void a_store_that_cannot_be_written_is_verified_and_copied(void **state)
{
  AUTO(directory_lock_release) struct directory_lock daemon = DIRECTORY_LOCK_NONE;
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], seen[PATH_MAX];
  struct store_contents found;
  uid_t user = geteuid();

  fill_and_close(f, store, copy);
  snprintf(seen, sizeof seen, "%.4000s/seen", store);
  seal_folder(seen);
  seal_folder(store);
  assert_int_equal(chmod(f->dir.path, 0777), 0);
  assert_int_equal(user == 0 ? seteuid(65534) : 0, 0); /* root may write there */
  assert_contents(store);
  assert_ok(store_backup_copy(store, copy));
  assert_contents(copy);
  assert_ok(directory_lock_acquire_to_read(store, &daemon));
  err_code_t verified = store_backup_verify(store, &found);
  temp_dir_remove(copy);
  err_code_t copied = store_backup_copy(store, copy);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(verified, ERR_STORE_IN_USE);
  assert_int_equal(copied, ERR_STORE);
  assert_says("Permission denied: run it as the daemon's user");
  assert_int_equal(chmod(seen, 0755), 0);
  assert_int_equal(chmod(store, 0755), 0);
}

static void a_verified_store_is_not_written(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], path[PATH_MAX];
  struct stat before, after;

  fill_and_close(f, store, copy);
  assert_ok(store_backup_copy(store, copy));
  snprintf(path, sizeof path, "%.4000s/data.mdb", copy);
  assert_int_equal(stat(path, &before), 0);
  assert_contents(copy);
  assert_int_equal(stat(path, &after), 0);
  assert_int_equal(after.st_size, before.st_size);
  assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof before.st_mtim);
}

static void what_users_have_seen_is_not_left_out_because_it_cannot_be_opened(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX], seen[PATH_MAX], away[PATH_MAX];
  struct store_contents found;

  fill_and_close(f, store, copy);
  snprintf(seen, sizeof seen, "%.4000s/seen", store);
  snprintf(away, sizeof away, "%.4000s/away", store);
  assert_int_equal(rename(seen, away), 0);
  assert_int_equal(symlink("seen", seen), 0); /* to itself */
  assert_int_equal(store_backup_copy(store, copy), ERR_STORE);
  assert_says("Too many levels of symbolic links");
  assert_int_equal(access(copy, F_OK), -1);
  assert_int_equal(store_backup_verify(store, &found), ERR_STORE);
  assert_says(seen);
}

/* Change a byte of the `nth` marker in a file. */
static void damage(const char *directory, size_t nth)
{
  char path[PATH_MAX];
  uint8_t window[sizeof marker] = { 0 };
  int c;

  snprintf(path, sizeof path, "%.4000s/data.mdb", directory);
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  while (nth > 0 && (c = fgetc(file)) != EOF) {
    memmove(window, window + 1, sizeof window - 1);
    window[sizeof window - 1] = (uint8_t)c;
    nth -= memcmp(window, &marker, sizeof marker) == 0;
  }
  assert_int_equal(nth, 0);
  fseek(file, -1, SEEK_CUR);
  fputc(window[sizeof window - 1] ^ 1, file);
  assert_int_equal(fclose(file), 0);
}

static void a_damaged_record_is_found(void **state)
{
  struct fixture *f = *state;
  char store[PATH_MAX], copy[PATH_MAX];
  struct store_contents found;

  fill_and_close(f, store, copy);
  assert_ok(store_backup_copy(store, copy));
  damage(copy, ITEMS / 2);
  assert_int_equal(store_backup_verify(copy, &found), ERR_STORE_CORRUPT);
  assert_says("is damaged: the record of item");
  assert_contents(store);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(a_copy_has_everything),
    STORE_TEST(a_copy_has_the_model_files),
    STORE_TEST(nothing_is_overwritten),
    STORE_TEST(a_copy_into_the_store_itself_is_refused),
    STORE_TEST(others_may_not_read_a_copy),
    STORE_TEST(a_directory_that_a_daemon_opens_is_left_alone),
    STORE_TEST(a_directory_that_cannot_be_locked_does_not_stay),
    STORE_TEST(a_copy_that_fails_leaves_what_was_there),
    STORE_TEST(a_directory_that_may_not_be_entered_is_named),
    STORE_TEST(a_store_that_cannot_be_written_is_verified_and_copied),
    STORE_TEST(a_verified_store_is_not_written),
    STORE_TEST(what_users_have_seen_is_not_left_out_because_it_cannot_be_opened),
    STORE_TEST(a_damaged_record_is_found),
  };

  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
