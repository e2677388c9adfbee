/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the store share: a store in its own directory, and functions to fill, inspect and reopen it. */
#ifndef TESTS_SUPPORT_STORE_FIXTURE_H
#define TESTS_SUPPORT_STORE_FIXTURE_H

#include "base/log.h"
#include "store/store_private.h"
#include "tests/support/store_oracle.h"
#include "tests/support/temp_dir.h"

#include <sys/wait.h>
#include <unistd.h>

/* A store in its own directory. */
struct fixture {
  struct temp_dir dir;
  char path[PATH_MAX];
  struct store *store;
};

static inline void open_sized(struct fixture *f, size_t map_bytes)
{
  temp_dir_init(&f->dir);
  snprintf(f->path, sizeof f->path, "%s/store", f->dir.path);
  assert_ok(open_store_sized(f->path, map_bytes, &f->store));
}

static inline int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  open_sized(f, STORE_MAP_BYTES);
  *state = f;
  return 0;
}

static inline int teardown(void **state)
{
  struct fixture *f = *state;

  store_close(&f->store);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

static inline void reopen(struct fixture *f)
{
  store_close(&f->store);
  assert_null(f->store);
  assert_ok(open_store(f->path, &f->store));
}

/* Skip waiting for the disk, for tests of many small batches. */
static inline void skip_syncs(struct fixture *f)
{
  assert_int_equal(mdb_env_set_flags(f->store->env->mdb, MDB_NOSYNC, 1), MDB_SUCCESS);
}

static inline void assert_says(const char *text)
{
  if (!strstr(err_message(), text))
    fail_msg("\"%s\" is not in \"%s\"", text, err_message());
}

/* Put an item with all parts and attributes, from partition 0, at the offset of its id. */
static inline void fill_one(struct fixture *f, struct oracle *o, uint32_t id)
{
  struct oracle_item item = { .id = id, .seeds = { id + 1, id + 2, id + 3, id + 4 }, .offset = id };

  for (size_t i = 0; i < ORACLE_ATTRIBUTES; i++)
    item.attributes[i] = id * 100 + 1000 + i;
  oracle_apply_both(o, f->store, &item, 1, NULL, 0);
}

/* Put items 0..n-1. */
static inline void fill(struct fixture *f, struct oracle *o, uint32_t n)
{
  for (uint32_t id = 0; id < n; id++)
    fill_one(f, o, id);
}

static inline struct oracle_item random_change(struct dice *dice, uint32_t n_ids, int64_t offset)
{
  uint32_t id = (uint32_t)dice_below(dice, n_ids);
  struct oracle_item change = {
    .id = id,
    .is_delete = dice_below(dice, 4) == 0,
    .is_whole = dice_below(dice, 10) == 0,
    /* now and then a key moves to another partition, as when the topic gets more of them */
    .partition = (int32_t)(dice_below(dice, 20) ? id % 3 : dice_below(dice, 5)),
    .offset = dice_below(dice, 15) ? offset : (int64_t)dice_below(dice, (size_t)offset + 1),
  };

  for (size_t i = 0; i < ORACLE_SPACES; i++)
    change.seeds[i] = dice_below(dice, 2) ? dice_u64(dice) | 1 : 0;
  oracle_draw_attributes(dice, &change);
  return change;
}

static inline struct store_position position_of(int32_t partition, int64_t next)
{
  return (struct store_position){ { partition, next }, next - 1, (uint64_t)next * 31, next * 7, 0 };
}

static inline void assert_same_positions(const struct fixture *f, const int64_t *next, size_t n_partitions)
{
  size_t n;
  const struct store_position *positions = store_positions(f->store, &n);
  size_t at = 0;

  for (size_t i = 0; i < n_partitions; i++) {
    if (next[i] < 0)
      continue;
    assert_true(at < n);
    assert_int_equal(positions[at].at.partition, i);
    assert_int_equal(positions[at].at.next, next[i]);
    assert_int_equal(positions[at].last_offset, next[i] - 1);
    assert_int_equal(positions[at].last_digest, next[i] * 31);
    assert_int_equal(positions[at].last_timestamp_ms, next[i] * 7);
    at++;
  }
  assert_int_equal(at, n);
}

static inline err_code_t ignore_items(void *context, struct item_change *changes, size_t n)
{
  (void)context;
  (void)changes;
  (void)n;
  return ERR_OK;
}

/* Run `body` in a child process, and return its result, which is the exit status. No store may be open here. */
static inline int in_child(int (*body)(struct fixture *), struct fixture *f)
{
  int status;
  fflush(NULL);
  pid_t child = fork();

  assert_true(child >= 0);
  if (child == 0)
    _exit(body(f));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* A row of the list of tests. Each test gets its own store. */
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
