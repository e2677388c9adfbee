/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that read while an environment is lost and reopened: a read succeeds, or says that the store cannot be used.
 * Apart from the other tests of the environment, because the thread sanitizer runs this one too. */
#include "store/lmdb/env.h"

#include <pthread.h>
#include <sched.h>

#include "store/seen/seen_private.h"
#include "tests/support/store_fixture.h"

enum { ROUNDS = 60, READERS = 3 };

struct reader {
  err_code_t (*read)(void *store);
  void *store;
  _Atomic bool is_stopping;
  _Atomic unsigned n_right, n_wrong;
  char wrong[256];
  pthread_t thread;
};

static void *read_often(void *context)
{
  struct reader *r = context;

  while (!atomic_load(&r->is_stopping)) {
    err_code_t err = r->read(r->store);
    atomic_fetch_add(&r->n_right, err == ERR_OK);
    if (err == ERR_OK || strstr(err_message(), "cannot be used after an earlier failure"))
      continue;
    snprintf(r->wrong, sizeof r->wrong, "%s", err_message());
    atomic_fetch_add(&r->n_wrong, 1);
  }
  return NULL;
}

/* Lose the environment as env_write() does when LMDB is in panic. */
static void lose(struct env *env)
{
  pthread_rwlock_wrlock(&env->map_lock);
  mdb_env_close(env->mdb);
  env->mdb = NULL;
  pthread_rwlock_unlock(&env->map_lock);
}

/* Wait until each reader has read once more. */
static void await_reads(struct reader *readers)
{
  for (size_t i = 0; i < READERS; i++) {
    unsigned n = atomic_load(&readers[i].n_right);
    while (atomic_load(&readers[i].n_right) == n && atomic_load(&readers[i].n_wrong) == 0)
      sched_yield();
  }
}

/* Write again and again, each time after the environment was lost. */
static void write_while_others_read(struct env *env, void *store, err_code_t (*read)(void *store),
                                    err_code_t (*write)(void *store))
{
  struct reader readers[READERS];

  for (size_t i = 0; i < READERS; i++) {
    readers[i] = (struct reader){ .read = read, .store = store };
    assert_int_equal(pthread_create(&readers[i].thread, NULL, read_often, &readers[i]), 0);
  }
  for (int round = 0; round < ROUNDS; round++) {
    await_reads(readers);
    lose(env);
    assert_ok(write(store));
  }
  for (size_t i = 0; i < READERS; i++) {
    atomic_store(&readers[i].is_stopping, true);
    pthread_join(readers[i].thread, NULL);
    if (readers[i].n_wrong)
      fail_msg("%u reads failed: %s", readers[i].n_wrong, readers[i].wrong);
  }
}

/* ---- The store of items ---- */

static err_code_t read_item(void *store)
{
  AUTO(region_fini) struct region region = { 0 };
  struct item_change item;
  bool is_found;

  TRY(store_read_item(store, span_of_str("key"), SIZE_MAX, &region, &is_found, &item));
  if (!is_found)
    FAIL(ERR_STORE, "the item is gone");
  return ERR_OK;
}

static err_code_t put_item(void *store)
{
  static int64_t offset;
  const struct item_change change = { .key = span_of_str("key"), .offset = offset++ };

  return store_apply(store, &change, 1, NULL, 0, NULL);
}

static void items_are_read_while_their_environment_is_reopened(void **state)
{
  struct fixture *f = *state;

  assert_ok(put_item(f->store));
  write_while_others_read(f->store->env, f->store, read_item, put_item);
}

/* ---- The seen store ---- */

static err_code_t read_seen(void *store)
{
  AUTO(region_fini) struct region region = { 0 };
  struct seen_keys read;

  TRY(seen_store_read(store, span_of_str("user"), SEEN_WHOLE_LOG, &region, &read));
  if (read.n != 1)
    FAIL(ERR_STORE, "%zu items instead of one", read.n);
  return ERR_OK;
}

static err_code_t put_seen(void *store)
{
  const struct span item = span_of_str("key");
  const struct seen_change change = { .user = span_of_str("user"), .items = &item, .n_items = 1 };

  return seen_store_apply(store, &change, 1, NULL, 0);
}

static void what_users_have_seen_is_read_while_its_environment_is_reopened(void **state)
{
  struct fixture *f = *state;
  struct seen_store *seen;
  char path[PATH_MAX + 8];

  snprintf(path, sizeof path, "%s/seen", f->path);
  assert_ok(seen_store_open(path, &(struct seen_store_limits){ .max_per_user = 10 }, &seen));
  assert_ok(put_seen(seen));
  write_while_others_read(seen->env, seen, read_seen, put_seen);
  seen_store_close(&seen);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(items_are_read_while_their_environment_is_reopened),
    STORE_TEST(what_users_have_seen_is_read_while_its_environment_is_reopened),
  };

  log_set_level(LOG_LEVEL_ERROR);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
