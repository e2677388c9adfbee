/* SPDX-License-Identifier: Apache-2.0 */
/* A full disk: a failed write is an error to retry, committed data stays, and the store opens without writing.
 *
 * The tests make writes fail in two ways. They fill a small file system, where one may be mounted. And this program
 * replaces the C library's calls that LMDB uses with ones that fail on demand.
 */
#include "base/parallel.h"
#include "store/lmdb/env.h"

#include "tests/support/store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { SKIPPED = 77 };

static uint64_t seed;

/* ---- Calls that fail ---- */

enum which { ANY_CALL, HEADER_WRITES };

static struct {
  bool is_armed;
  enum which which;
  int n_before;   /* number of calls that succeed first */
  int n_failures; /* number of calls that then fail */
  int error;
  bool keeps_first; /* the first failing call does write */
  bool does_write;  /* the current call writes */
  int n_calls;
} plan;

/* Must this call fail? LMDB writes whole pages, but only parts of its header pages. */
static bool must_fail(size_t n_bytes)
{
  if (!plan.is_armed || (plan.which == HEADER_WRITES && n_bytes % 4096 == 0))
    return false;
  int call = plan.n_calls++;
  plan.does_write = plan.keeps_first && call == plan.n_before;
  return call >= plan.n_before && call < plan.n_before + plan.n_failures;
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t writev(int fd, const struct iovec *from, int n);
int fdatasync(int fd);

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
  bool fails = must_fail(n);
  ssize_t done = fails && !plan.does_write ? 0 : syscall(SYS_pwrite64, fd, from, n, at);

  if (!fails)
    return done;
  errno = plan.error;
  return -1;
}

ssize_t writev(int fd, const struct iovec *from, int n)
{
  bool fails = must_fail(0);
  ssize_t done = fails && !plan.does_write ? 0 : syscall(SYS_writev, fd, from, n);

  if (!fails)
    return done;
  errno = plan.error;
  return -1;
}

int fdatasync(int fd)
{
  if (!must_fail(0))
    return (int)syscall(SYS_fdatasync, fd);
  errno = plan.error;
  return -1;
}

static void arm(enum which which, int n_before, int n_failures, int error)
{
  plan.is_armed = true;
  plan.which = which;
  plan.n_before = n_before;
  plan.n_failures = n_failures;
  plan.error = error;
  plan.n_calls = 0;
}

enum { BATCH = 20 };

static void make_batch(struct oracle_item *items, uint32_t round)
{
  for (uint32_t i = 0; i < BATCH; i++)
    items[i] = (struct oracle_item){ .id = round * 7 % 50 + i, .seeds = { round + i + 1, 0, i + 5 }, .offset = round };
}

static err_code_t try_batch(struct fixture *f, const struct oracle_item *items, const struct store_position *position)
{
  struct region region = { 0 };
  struct item_change changes[BATCH];

  for (size_t i = 0; i < BATCH; i++)
    changes[i] = oracle_change(&items[i], &region);
  err_code_t err = store_apply(f->store, changes, BATCH, position, 1, NULL);
  region_fini(&region);
  return err;
}

static bool is_lost(const struct fixture *f)
{
  return !f->store->env->mdb;
}

/* Each call of a commit fails in turn, alone or with all later ones. */
static void every_write_that_fails_leaves_the_store_as_it_was_and_usable(void **state)
{
  const int errors[] = { ENOSPC, EDQUOT, EIO, EFBIG };
  struct fixture *f = *state;
  struct oracle o = { 0 };
  uint32_t round = 0;

  fill(f, &o, 30);
  for (int n_failures = 1; n_failures <= 1000; n_failures *= 1000) {
    for (int n_before = 0;; n_before++, round++) {
      struct oracle_item items[BATCH];
      const struct store_position position = position_of(0, 100 + round);
      make_batch(items, round + 1000);
      arm(ANY_CALL, n_before, n_failures, errors[round % 4]);
      err_code_t err = try_batch(f, items, &position);
      plan.is_armed = false;
      if (plan.n_calls <= n_before) { /* the commit needed no more calls */
        assert_ok(err);
        for (size_t i = 0; i < BATCH; i++)
          oracle_apply(&o, &items[i]);
        break;
      }
      assert_int_equal(err, ERR_STORE_FULL);
      assert_int_equal(err_class(err), ERR_CLASS_RETRY);
      assert_says(f->path);
      oracle_compare(&o, f->store);
      if (n_before % 2)
        oracle_apply_both(&o, f->store, items, BATCH, &position, 1); /* repeat the same batch */
      oracle_compare(&o, f->store);
    }
  }
  reopen(f);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* LMDB gives its environment up when a header page cannot be written. The store reopens it and continues, whether the
 * old page could be written back or not. */
static void the_store_survives_a_header_page_that_cannot_be_written(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };

  fill(f, &o, 30);
  for (uint32_t round = 0; round < 6; round++) {
    struct oracle_item items[BATCH];
    const struct store_position position = position_of(0, 100 + round);
    make_batch(items, round + 1000);
    arm(HEADER_WRITES, 0, 1 + (int)round % 2, round % 3 ? EIO : ENOSPC);
    err_code_t err = try_batch(f, items, &position);
    plan.is_armed = false;
    assert_int_equal(plan.n_calls, 2);
    assert_int_equal(err, ERR_STORE_FULL);
    assert_true(is_lost(f));
    if (round >= 2)
      oracle_compare(&o, f->store);
    if (round == 5)
      reopen(f);
    oracle_apply_both(&o, f->store, items, BATCH, &position, 1);
    assert_false(is_lost(f));
    oracle_compare(&o, f->store);
  }
  oracle_fini(&o);
}

static err_code_t take_chunks(void *context)
{
  AUTO(region_fini) struct region region = { 0 };
  struct item_change *changes;
  uint64_t first;
  size_t n = 1;

  while (n > 0) {
    region_reset(&region);
    TRY(store_scan_next(context, &region, &first, &changes, &n));
  }
  return ERR_OK;
}

/* The threads would reopen the environment at the same time, each one for itself. */
static void threads_that_scan_find_a_lost_environment_reopened(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct oracle_item items[BATCH];
  const struct store_position position = position_of(0, 100);
  struct store_scan scan;

  fill(f, &o, 30);
  make_batch(items, 1000);
  arm(HEADER_WRITES, 0, 1, EIO);
  assert_int_equal(try_batch(f, items, &position), ERR_STORE_FULL);
  plan.is_armed = false;
  assert_true(is_lost(f));
  assert_ok(store_scan_begin(f->store, 1, &scan));
  assert_false(is_lost(f));
  assert_ok(parallel_run(4, take_chunks, &scan));
  assert_ok(store_scan_end(&scan));
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

/* A header page reaches the disk although its write fails, and the old page cannot be written back. Only a restart then
 * tells whether the batch is committed. */
static void a_restart_finds_out_about_an_uncertain_commit(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct oracle_item items[BATCH];
  const struct store_position position = position_of(0, 100);
  const int64_t next = 100;

  fill(f, &o, 30);
  make_batch(items, 1000);
  plan.keeps_first = true;
  arm(HEADER_WRITES, 0, 2, EIO);
  err_code_t err = try_batch(f, items, &position);
  plan.is_armed = false;
  plan.keeps_first = false;
  assert_int_equal(err, ERR_STORE_FULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(store_visit_all(f->store, 10, ignore_items, NULL), ERR_STORE);
    assert_says("restart");
    assert_int_equal(try_batch(f, items, &position), ERR_STORE);
  }
  reopen(f);
  assert_same_positions(f, &next, 1);
  for (size_t i = 0; i < BATCH; i++)
    oracle_apply(&o, &items[i]);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void an_existing_store_is_opened_without_writing(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  const struct store_source source = { "c", "t" };

  fill(f, &o, 30);
  assert_ok(store_source_put(f->store, &source));
  assert_ok(store_begin_rebuild(f->store));
  assert_ok(store_source_put(f->store, &source));
  store_close(&f->store);
  arm(ANY_CALL, 0, 1000, ENOSPC);
  assert_ok(open_store(f->path, &f->store));
  assert_ok(store_source_put(f->store, &source)); /* the same source again */
  oracle_compare(&o, f->store);
  assert_true(store_is_rebuilding(f->store));
  assert_int_equal(store_abandon_rebuild(f->store), ERR_STORE_FULL);
  assert_true(store_is_rebuilding(f->store));
  plan.is_armed = false;
  assert_ok(store_abandon_rebuild(f->store));
  assert_false(store_is_rebuilding(f->store));
  oracle_fini(&o);
}

static void a_new_store_on_a_full_disk_is_an_error_to_try_again(void **state)
{
  struct fixture *f = *state;
  char path[PATH_MAX];

  store_close(&f->store);
  snprintf(path, sizeof path, "%s/other", f->dir.path);
  arm(ANY_CALL, 0, 1000, ENOSPC);
  assert_int_equal(open_store(path, &f->store), ERR_STORE_FULL);
  plan.is_armed = false;
  assert_null(f->store);
  assert_says(path);
  assert_says("make room");
  assert_ok(open_store(path, &f->store));
}

/* ---- A small file system ---- */

static bool mount_small(const char *path)
{
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return false;
  return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("tmpfs", path, "tmpfs", 0, "size=600k") == 0;
}

/* Use up all free space. */
static bool fill_disk(const char *path)
{
  static const uint8_t zeros[4096];
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);

  if (fd < 0)
    return false;
  while (write(fd, zeros, sizeof zeros) > 0)
    ;
  bool is_full = errno == ENOSPC;
  close(fd);
  return is_full;
}

/* The exit status says where it failed. */
static int live_on_a_small_disk(struct fixture *f)
{
  struct oracle o = { 0 };
  struct oracle_item items[BATCH];
  char filler[PATH_MAX];
  err_code_t err;
  uint32_t round = 1;

  if (!mount_small(f->dir.path))
    return SKIPPED;
  assert_ok(open_store(f->path, &f->store));
  for (;; round++) { /* until the disk is full */
    const struct store_position position = position_of(0, round);
    for (uint32_t i = 0; i < BATCH; i++)
      items[i] = (struct oracle_item){ .id = round * BATCH + i, .seeds = { 13 * round + i }, .offset = round };
    err = try_batch(f, items, &position);
    if (err != ERR_OK)
      break;
    for (size_t i = 0; i < BATCH; i++)
      oracle_apply(&o, &items[i]);
  }
  assert_int_equal(err, ERR_STORE_FULL);
  assert_true(round > 3);
  oracle_compare(&o, f->store);

  snprintf(filler, sizeof filler, "%s/filler", f->dir.path);
  assert_true(fill_disk(filler));
  store_close(&f->store);
  assert_ok(open_store(f->path, &f->store));
  oracle_compare(&o, f->store);
  assert_int_equal(try_batch(f, items, &(struct store_position){ .at.next = round }), ERR_STORE_FULL);
  oracle_compare(&o, f->store);

  assert_int_equal(unlink(filler), 0);
  assert_int_equal(mount("tmpfs", f->dir.path, "tmpfs", MS_REMOUNT, "size=8m"), 0);
  oracle_apply_both(&o, f->store, items, BATCH, NULL, 0);
  store_close(&f->store);
  assert_ok(open_store(f->path, &f->store));
  oracle_compare(&o, f->store);
  store_close(&f->store);
  oracle_fini(&o);
  return 0;
}

/* Opening a new store on a full disk is an error, not a fatal signal from a map without disk blocks. */
static int begin_on_a_full_disk(struct fixture *f)
{
  char filler[PATH_MAX];

  if (!mount_small(f->dir.path))
    return SKIPPED;
  assert_int_equal(mkdir(f->path, 0750), 0);
  snprintf(filler, sizeof filler, "%s/filler", f->dir.path);
  assert_true(fill_disk(filler));
  assert_int_equal(open_store(f->path, &f->store), ERR_STORE_FULL);
  assert_null(f->store);
  assert_int_equal(unlink(filler), 0);
  assert_ok(open_store(f->path, &f->store));
  store_close(&f->store);
  return 0;
}

static void run_on_a_small_disk(struct fixture *f, int (*body)(struct fixture *))
{
  store_close(&f->store);
  temp_dir_fini(&f->dir);
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/store", f->dir.path);
  int status = in_child(body, f);
  if (status == SKIPPED)
    skip(); /* mounting is not allowed here */
  assert_int_equal(status, 0);
}

static void a_store_outlives_a_full_disk(void **state)
{
  run_on_a_small_disk(*state, live_on_a_small_disk);
}

static void a_store_that_cannot_begin_says_so(void **state)
{
  run_on_a_small_disk(*state, begin_on_a_full_disk);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(every_write_that_fails_leaves_the_store_as_it_was_and_usable),
    STORE_TEST(the_store_survives_a_header_page_that_cannot_be_written),
    STORE_TEST(threads_that_scan_find_a_lost_environment_reopened),
    STORE_TEST(a_restart_finds_out_about_an_uncertain_commit),
    STORE_TEST(an_existing_store_is_opened_without_writing),
    STORE_TEST(a_new_store_on_a_full_disk_is_an_error_to_try_again),
    STORE_TEST(a_store_outlives_a_full_disk),
    STORE_TEST(a_store_that_cannot_begin_says_so),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_ERROR);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
