/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a store: a map that fills up, a second process, and directories and disks that refuse writes. */
#include "store/lmdb/env.h"

#include "tests/support/store_fixture.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* gcc and clang announce the address sanitizer in different ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#define HAS_SANITIZER (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define HAS_SANITIZER 0
#endif

static uint64_t seed;

/* It never grows but when it was due before the batch: no batch fills it. */
static void map_is_doubled_between_batches_when_it_fills(void **state)
{
  struct fixture *f = *state;
  const struct env *env;
  struct oracle o = { 0 };
  struct store_stats stats;

  store_close(&f->store);
  temp_dir_fini(&f->dir);
  open_sized(f, 1 << 20);
  env = f->store->env;
  for (uint32_t id = 0; id < 700; id++) {
    size_t map_bytes = env->map_bytes;
    bool is_due = env->used_bytes >= map_bytes / 100 * 80;
    fill_one(f, &o, id);
    assert_int_equal(env->map_bytes, is_due ? 2 * map_bytes : map_bytes);
  }
  store_stats(f->store, &stats);
  assert_true(stats.map_bytes >= 2 << 20 && stats.used_bytes > (1 << 20) * 8 / 10);
  assert_true(stats.used_bytes < stats.map_bytes);
  oracle_compare(&o, f->store);
  store_close(&f->store);
  assert_ok(open_store_sized(f->path, 1 << 20, &f->store)); /* a larger old map keeps its size */
  assert_int_equal(f->store->env->map_bytes, stats.map_bytes);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static void batch_that_fills_the_map_is_redone_in_a_larger_one(void **state)
{
  enum { N = 3000 };
  struct fixture *f = *state;
  struct dice dice = { seed };
  struct oracle o = { 0 };
  struct oracle_item *batch = calloc(N, sizeof *batch);
  const struct store_position position = position_of(0, N);
  const int64_t next = N;

  assert_non_null(batch);
  store_close(&f->store);
  temp_dir_fini(&f->dir);
  open_sized(f, 256 * 1024);
  fill(f, &o, 40);
  size_t map_bytes = f->store->env->map_bytes;
  for (size_t i = 0; i < N; i++)
    batch[i] = random_change(&dice, 900, (int64_t)i);
  oracle_apply_both(&o, f->store, batch, N, &position, 1);
  assert_true(f->store->env->map_bytes >= 8 * map_bytes); /* it is doubled once before a batch, else to redo it */
  oracle_compare(&o, f->store);
  assert_same_positions(f, &next, 1);
  reopen(f);
  oracle_compare(&o, f->store);
  assert_same_positions(f, &next, 1);
  free(batch);
  oracle_fini(&o);
}

static void smallest_map_grows_until_the_tables_fit(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };

  store_close(&f->store);
  temp_dir_fini(&f->dir);
  open_sized(f, 4 * 4096);
  fill(f, &o, 10);
  oracle_compare(&o, f->store);
  oracle_fini(&o);
}

static int open_is_refused(struct fixture *f)
{
  struct store *second = NULL;
  char holder[32];

  snprintf(holder, sizeof holder, "(%ld)", (long)getppid());
  if (open_store(f->path, &second) != ERR_STORE_IN_USE || second)
    return 1;
  return strstr(err_message(), f->path) && strstr(err_message(), "another process") &&
         strstr(err_message(), holder) ? 0 : 2;
}

static int open_succeeds(struct fixture *f)
{
  struct store *second = NULL;
  err_code_t err = open_store(f->path, &second);

  store_close(&second);
  return err == ERR_OK ? 0 : 1;
}

static void second_opener_is_refused_while_the_first_has_it(void **state)
{
  struct fixture *f = *state;
  struct store *second = NULL;

  assert_int_equal(in_child(open_is_refused, f), 0);
  assert_int_equal(open_store(f->path, &second), ERR_STORE_IN_USE); /* also in the same process */
  assert_null(second);
  store_close(&f->store);
  assert_int_equal(in_child(open_succeeds, f), 0);
  assert_ok(open_store(f->path, &f->store));
}

static int open_is_refused_without_a_holder(struct fixture *f)
{
  struct store *second = NULL;

  if (open_store(f->path, &second) != ERR_STORE_IN_USE || second)
    return 1;
  return strstr(err_message(), f->path) && strstr(err_message(), "another process") ? 0 : 2;
}

static void removed_lock_file_lets_nobody_in(void **state)
{
  struct fixture *f = *state;
  char path[PATH_MAX + 16];

  snprintf(path, sizeof path, "%s/sluice.lock", f->path);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(in_child(open_is_refused_without_a_holder, f), 0);
  assert_int_equal(access(path, F_OK), -1); /* the refused open does not create the file again */
  store_close(&f->store);
  assert_int_equal(in_child(open_succeeds, f), 0);
  assert_ok(open_store(f->path, &f->store));
}

static void lock_ends_with_a_killed_process(void **state)
{
  struct fixture *f = *state;
  int ready[2];
  char byte;

  store_close(&f->store);
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct store *mine = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this test fails, nobody else ends the child */
    if (open_store(f->path, &mine) != ERR_OK || write(ready[1], "x", 1) != 1)
      _exit(1);
    for (;;)
      pause();
  }
  close(ready[1]); /* then a child that fails is an end of file here */
  assert_int_equal(read(ready[0], &byte, 1), 1);
  err_code_t err = open_store(f->path, &f->store);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_int_equal(err, ERR_STORE_IN_USE);
  assert_ok(open_store(f->path, &f->store));
  close(ready[0]);
}

static void path_that_is_a_file_is_refused(void **state)
{
  struct fixture *f = *state;
  struct store *s = NULL;
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/file", f->dir.path);
  close(open(path, O_CREAT | O_WRONLY, 0640));
  assert_int_equal(open_store(path, &s), ERR_STORE);
  assert_null(s);
  assert_says(path);
  assert_says("names a directory");
}

static void missing_parent_is_refused(void **state)
{
  struct fixture *f = *state;
  struct store *s = NULL;
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s/no/store", f->dir.path);
  assert_int_equal(open_store(path, &s), ERR_STORE);
  assert_says(path);
  assert_says("parent must exist");
}

static void place_that_cannot_be_written_is_refused(void **state)
{
  struct store *s = NULL;

  (void)state;
  assert_int_equal(store_open("/proc", &s), ERR_STORE);
  assert_null(s);
  assert_says("/proc");
}

/* Give up root's right to write everywhere. It cannot be undone, so call it only in a child. */
static bool become_nobody(void)
{
  return geteuid() != 0 || (setgroups(0, NULL) == 0 && setregid(65534, 65534) == 0 && setreuid(65534, 65534) == 0);
}

static int directory_is_refused_to_nobody(struct fixture *f)
{
  struct store *s = NULL;

  if (!become_nobody() || open_store(f->path, &s) != ERR_STORE || s)
    return 1;
  return strstr(err_message(), f->path) && strstr(err_message(), "Permission denied") &&
         strstr(err_message(), "must be able to write") ? 0 : 2;
}

static void missing_permissions_are_refused_with_the_remedy(void **state)
{
  struct fixture *f = *state;
  char path[PATH_MAX + 16];

  store_close(&f->store);
  assert_int_equal(chmod(f->path, 0555), 0);
  snprintf(path, sizeof path, "%s/sluice.lock", f->path);
  assert_int_equal(chmod(path, 0444), 0);
  assert_int_equal(in_child(directory_is_refused_to_nobody, f), 0); /* refused at the lock */
  assert_int_equal(chmod(path, 0666), 0);
  assert_int_equal(in_child(directory_is_refused_to_nobody, f), 0); /* refused at the data */
  snprintf(f->path + strlen(f->path), sizeof f->path - strlen(f->path), "/below");
  assert_int_equal(in_child(directory_is_refused_to_nobody, f), 0); /* refused at the directory */
}

/* A limit on the size of files acts like a full disk: the same calls fail, with another errno. */
static void failed_commit_leaves_the_store_as_it_was_and_usable(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct oracle_item items[500];
  struct region region = { 0 };
  struct item_change changes[500];
  struct rlimit limit;
  struct rlimit low;

  fill(f, &o, 30);
  for (uint32_t i = 0; i < 500; i++) {
    items[i] = (struct oracle_item){ .id = 10 + i, .seeds = { i + 77, 0, i + 78, 0 }, .offset = 100 + i };
    changes[i] = oracle_change(&items[i], &region);
  }
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  low = limit;
  for (int round = 0; round < 5; round++) {
    low.rlim_cur = f->store->env->used_bytes + 4096 * 10;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    err_code_t err = store_apply(f->store, changes, 500, NULL, 0, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(err, ERR_STORE_FULL);
    assert_int_equal(err_class(err), ERR_CLASS_RETRY);
    assert_says(f->path);
    assert_says("commit");
    oracle_compare(&o, f->store);
  }
  reopen(f);
  oracle_compare(&o, f->store);
  oracle_apply_both(&o, f->store, items, 500, NULL, 0);
  oracle_compare(&o, f->store);
  region_fini(&region);
  oracle_fini(&o);
}

#if !HAS_SANITIZER
static size_t address_space_in_use(void)
{
  size_t n_pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");

  if (!statm || fscanf(statm, "%zu", &n_pages) != 1)
    return 0;
  fclose(statm);
  return n_pages * (size_t)sysconf(_SC_PAGESIZE);
}

enum { LARGE_ITEMS = 50 };

/* Put items with a large part each, *id being the first one, and count it up if they were put. */
static err_t put_large(struct store *s, struct region *region, uint32_t *id)
{
  struct item_change changes[LARGE_ITEMS];

  region_reset(region);
  for (uint32_t i = 0; i < LARGE_ITEMS; i++) {
    struct oracle_item item = { .id = *id + i, .seeds = { 13 * 5 } };
    changes[i] = oracle_change(&item, region);
  }
  TRY(store_apply(s, changes, LARGE_ITEMS, NULL, 0, NULL));
  *id += LARGE_ITEMS;
  return ERR_OK;
}

/* If address space runs out before the map can be doubled, what is left of the map is used. Then putting items is an
 * error, deleting is none, and the store stays usable. */
static int growing_without_address_space(struct fixture *f)
{
  enum { MAP_BYTES = 8 << 20, HEADROOM_BYTES = 4 << 20, EARLY_BYTES = MAP_BYTES / 100 * 80 };
  struct store *s = NULL;
  struct region region = { 0 };
  uint32_t id = 0;

  if (open_store_sized(f->path, MAP_BYTES, &s) != ERR_OK)
    return 1;
  while (s->env->used_bytes < EARLY_BYTES) {
    if (put_large(s, &region, &id) != ERR_OK)
      return 2;
  }
  const struct rlimit low = { address_space_in_use() + HEADROOM_BYTES, RLIM_INFINITY };
  const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
  uint32_t n_early = id;
  err_code_t err;
  if (setrlimit(RLIMIT_AS, &low) != 0)
    return 3;
  while ((err = put_large(s, &region, &id)) == ERR_OK) {
  }
  if (err != ERR_STORE || !strstr(err_message(), "address space") || id == n_early)
    return 4;
  struct oracle_item first = { .id = 0, .is_delete = true, .offset = 1 };
  struct item_change change = oracle_change(&first, &region);
  if (store_apply(s, &change, 1, NULL, 0, NULL) != ERR_OK)
    return 5;
  if (setrlimit(RLIMIT_AS, &none) != 0 || s->env->map_bytes != MAP_BYTES || !s->env->is_cramped)
    return 6;
  if (s->meta.sides[s->meta.live].n_items != id - 1 ||
      store_visit_all(s, 10, ignore_items, NULL) != ERR_OK)
    return 7;
  if (put_large(s, &region, &id) != ERR_OK || s->env->map_bytes == MAP_BYTES || s->env->is_cramped)
    return 8;
  store_close(&s);
  region_fini(&region);
  return 0;
}
#endif

static void map_that_cannot_grow_is_an_error_and_the_store_goes_on(void **state)
{
#if HAS_SANITIZER
  (void)state;
  skip(); /* the sanitizers need more address space than the limit */
#else
  struct fixture *f = *state;

  store_close(&f->store);
  temp_dir_fini(&f->dir);
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/store", f->dir.path);
  assert_int_equal(in_child(growing_without_address_space, f), 0);
#endif
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(map_is_doubled_between_batches_when_it_fills),
    STORE_TEST(batch_that_fills_the_map_is_redone_in_a_larger_one),
    STORE_TEST(smallest_map_grows_until_the_tables_fit),
    STORE_TEST(second_opener_is_refused_while_the_first_has_it),
    STORE_TEST(removed_lock_file_lets_nobody_in),
    STORE_TEST(lock_ends_with_a_killed_process),
    STORE_TEST(path_that_is_a_file_is_refused),
    STORE_TEST(missing_parent_is_refused),
    STORE_TEST(place_that_cannot_be_written_is_refused),
    STORE_TEST(missing_permissions_are_refused_with_the_remedy),
    STORE_TEST(failed_commit_leaves_the_store_as_it_was_and_usable),
    STORE_TEST(map_that_cannot_grow_is_an_error_and_the_store_goes_on),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
