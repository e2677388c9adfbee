/* SPDX-License-Identifier: Apache-2.0 */
/* Control records in the store: the newest value of each key, together with the position, over restarts, in copies, and
 * when they are damaged. */
#include "store/store_models.h"

#include "store/lmdb/seal.h"
#include "store/store_backup.h"
#include "tests/support/store_fixture.h"

static struct region region;
static struct store_model_record *records;
static size_t n_records;
static bool has_position;
static struct store_position position;

static err_code_t get(struct fixture *f)
{
  region_reset(&region);
  return store_models_get(f->store, &region, &records, &n_records, &has_position, &position);
}

static struct store_model_record record(const char *key, const char *value)
{
  return (struct store_model_record){ span_of_str(key), value != NULL, span_of_str(value ? value : "") };
}

static struct store_position at(int64_t next)
{
  return (struct store_position){ { 0, next }, next - 1, (uint64_t)next * 77, next * 1000, next * 1000 + 1 };
}

static void put(struct fixture *f, const struct store_model_record *v, size_t n, int64_t next)
{
  struct store_position p = at(next);

  assert_ok(store_models_put(f->store, v, n, &p));
}

static void assert_record(size_t i, const char *key, const char *value)
{
  assert_true(i < n_records && records[i].has_value);
  assert_true(span_equal(records[i].key, span_of_str(key)));
  assert_true(span_equal(records[i].value, span_of_str(value)));
}

static void the_newest_value_of_each_key_and_the_position_survive_a_restart(void **state)
{
  struct fixture *f = *state;
  struct store_model_record first[] = { record("films", "f"), record("books@2", "old"), record("books", "b") };
  struct store_model_record second[] = { record("books@2", "new"), record("films", NULL), record("gone", NULL) };

  assert_ok(get(f));
  assert_int_equal(n_records, 0);
  assert_false(has_position);
  put(f, first, 3, 3);
  put(f, second, 3, 9);
  reopen(f);
  assert_ok(get(f));
  assert_int_equal(n_records, 2);
  assert_record(0, "books", "b");
  assert_record(1, "books@2", "new");
  assert_true(has_position);
  assert_int_equal(position.at.next, 9);
  assert_int_equal(position.last_offset, 8);
  assert_int_equal(position.last_digest, 9 * 77);
  assert_int_equal(position.last_timestamp_ms, 9000);
  assert_int_equal(position.complete_unix_ms, 9001);
}

static void records_that_do_not_fit_leave_everything_as_it_was(void **state)
{
  struct fixture *f = *state;
  static char large[STORE_MODEL_VALUE_MAX + 2];
  struct store_model_record v[] = { record("a", "2"), record("b", large) };
  struct store_position p = at(2);

  put(f, (struct store_model_record[]){ record("a", "1") }, 1, 1);
  memset(large, 'x', sizeof large - 1);
  v[1].value = span_of(large, STORE_MODEL_VALUE_MAX + 1);
  assert_int_equal(store_models_put(f->store, v, 2, &p), ERR_STORE);
  assert_ok(get(f));
  assert_int_equal(n_records, 1);
  assert_record(0, "a", "1");
  assert_int_equal(position.at.next, 1);
  v[1].value = span_of(large, STORE_MODEL_VALUE_MAX);
  assert_ok(store_models_put(f->store, v, 2, &p));
}

static err_code_t damage(void *context, MDB_txn *txn)
{
  struct store *s = context;
  MDB_val key = env_value(span_of_str("model/books")), data;

  assert_int_equal(mdb_get(txn, s->meta_table, &key, &data), MDB_SUCCESS);
  uint8_t copy[64];
  assert_true(data.mv_size <= sizeof copy);
  memcpy(copy, data.mv_data, data.mv_size);
  copy[SEAL_BYTES] ^= 1;
  data.mv_data = copy;
  assert_int_equal(mdb_put(txn, s->meta_table, &key, &data, 0), MDB_SUCCESS);
  return ERR_OK;
}

static void a_damaged_record_is_an_error_that_names_it_in_the_store_and_in_its_check(void **state)
{
  struct fixture *f = *state;
  struct store_contents contents;
  char path[PATH_MAX];

  snprintf(path, sizeof path, "%s", f->path);
  put(f, (struct store_model_record[]){ record("books", "b"), record("books@2", "c") }, 2, 2);
  store_close(&f->store);
  assert_ok(store_backup_verify(path, &contents));
  assert_ok(open_store(path, &f->store));
  assert_ok(env_write(f->store->env, damage, f->store));
  assert_int_equal(get(f), ERR_STORE_CORRUPT);
  assert_says("model/books");
  store_close(&f->store);
  assert_int_equal(store_backup_verify(path, &contents), ERR_STORE_CORRUPT);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_newest_value_of_each_key_and_the_position_survive_a_restart, setup, teardown),
    cmocka_unit_test_setup_teardown(records_that_do_not_fit_leave_everything_as_it_was, setup, teardown),
    cmocka_unit_test_setup_teardown(a_damaged_record_is_an_error_that_names_it_in_the_store_and_in_its_check, setup,
                                    teardown),
  };

  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return n_failed;
}
