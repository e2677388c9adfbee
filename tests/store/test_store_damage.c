/* SPDX-License-Identifier: Apache-2.0 */
/* Damage of every kind: an error that says what and where, never a crash or a wrong item. */
#include "store/store.h"

#include "daemon/exit_status.h"
#include "store/lmdb/seal.h"
#include "store/store_backup.h"
#include "tests/support/store_fixture.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/wait.h>

static uint64_t seed;

static size_t read_data(const struct fixture *f, uint8_t **bytes)
{
  char path[PATH_MAX + 16];
  struct stat info;

  snprintf(path, sizeof path, "%s/data.mdb", f->path);
  int fd = open(path, O_RDONLY);
  assert_true(fd >= 0 && fstat(fd, &info) == 0);
  *bytes = malloc((size_t)info.st_size);
  assert_non_null(*bytes);
  assert_int_equal(read(fd, *bytes, (size_t)info.st_size), info.st_size);
  close(fd);
  return (size_t)info.st_size;
}

static void write_data(const struct fixture *f, const uint8_t *bytes, size_t n)
{
  char path[PATH_MAX + 16];

  snprintf(path, sizeof path, "%s/data.mdb", f->path);
  int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0640);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), (ssize_t)n);
  close(fd);
}

/* Flip one bit in every copy of some bytes in data.mdb, while the store is closed. Returns the number of copies. */
static size_t flip_in_data(struct fixture *f, struct span needle)
{
  uint8_t *bytes;
  size_t n_found = 0;

  store_close(&f->store);
  size_t n = read_data(f, &bytes);
  for (size_t at = 0; at + needle.n <= n; at++) {
    if (memcmp(bytes + at, needle.p, needle.n) == 0) {
      bytes[at + needle.n / 2] ^= 4;
      n_found++;
    }
  }
  write_data(f, bytes, n);
  free(bytes);
  assert_ok(open_store(f->path, &f->store));
  return n_found;
}

/* A small map, because these tests read and write the whole file. */
static void open_small_with_items(struct fixture *f, struct oracle *o)
{
  store_close(&f->store);
  temp_dir_fini(&f->dir);
  open_sized(f, 1 << 20);
  fill(f, o, 40);
}

static void damaged_record_is_an_error_that_names_key_and_slot(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct region region = { 0 };
  struct oracle_item change = { .id = 22, .seeds = { 0, 0, 0, 1 }, .offset = 1000 };

  open_small_with_items(f, &o);
  struct part part = oracle_part(1, o.items[22].seeds[1], &region);
  const char *key = log_quote(oracle_key(22, &region));
  assert_true(part.codes.n > 8);
  assert_true(flip_in_data(f, part.codes) > 0);

  assert_int_equal(store_visit_all(f->store, 7, ignore_items, NULL), ERR_STORE_CORRUPT);
  assert_says(key);
  assert_says("slot 22");
  assert_says("checksum");
  assert_says(f->path);

  struct item_change changes[] = { oracle_change(&change, &region) };
  assert_int_equal(store_apply(f->store, changes, 1, NULL, 0, NULL), ERR_STORE_CORRUPT);
  assert_says(key);
  assert_says("slot 22");
  region_fini(&region);
  oracle_fini(&o);
}

static void damaged_record_aside_is_an_error_that_names_the_key(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct region region = { 0 };
  const struct oracle_item older = { .id = 22, .seeds = { 0, 1000 }, .partition = 1, .offset = 5, .timestamp_ms = 1 };
  const struct oracle_item newer = { .id = 22, .seeds = { 1 }, .partition = 1, .offset = 6, .timestamp_ms = 9999 };

  open_small_with_items(f, &o);
  oracle_apply_both(&o, f->store, &older, 1, NULL, 0);
  struct part part = oracle_part(1, 1000, &region);
  assert_true(part.codes.n > 8);
  assert_true(flip_in_data(f, part.codes) > 0);
  struct item_change change = oracle_change(&newer, &region);
  assert_int_equal(store_apply(f->store, &change, 1, NULL, 0, NULL), ERR_STORE_CORRUPT);
  assert_says(log_quote(change.key));
  assert_says("checksum");
  assert_says(f->path);
  region_fini(&region);
  oracle_fini(&o);
}

static void damaged_key_table_is_found_by_a_scan(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct region region = { 0 };
  uint8_t slot[8];

  open_small_with_items(f, &o);
  /* In a leaf page a row of `keys` is a key and then a slot. In a record the name of a space follows the key. */
  struct span key = oracle_key(6, &region);
  uint8_t row[ITEM_KEY_MAX + sizeof slot];
  slot_number_encode(6, slot);
  memcpy(row, key.p, key.n);
  memcpy(row + key.n, slot, sizeof slot);
  assert_true(flip_in_data(f, span_of(row, key.n + sizeof slot)) > 0);
  assert_int_equal(store_visit_all(f->store, 7, ignore_items, NULL), ERR_STORE_CORRUPT);
  assert_says("keys");
  region_fini(&region);
  oracle_fini(&o);
}

/* A row to write directly, without the store's functions. */
struct forgery {
  struct store *store;
  MDB_dbi table;
  struct span key;
  struct span value; /* n = 0: delete the row */
};

static err_code_t forge(void *context, MDB_txn *txn)
{
  struct forgery *forgery = context;
  MDB_val key = env_value(forgery->key);
  MDB_val value = env_value(forgery->value);

  if (value.mv_size)
    return env_verify(forgery->store->env, mdb_put(txn, forgery->table, &key, &value, 0), "forge");
  return env_verify(forgery->store->env, mdb_del(txn, forgery->table, &key, NULL), "forge");
}

static void forge_row(struct fixture *f, MDB_dbi table, struct span key, struct span value)
{
  struct forgery forgery = { f->store, table, key, value };

  assert_ok(env_write(f->store->env, forge, &forgery));
}

static void forge_number(struct fixture *f, const char *name, uint64_t number)
{
  uint8_t value[16];

  memcpy(value + SEAL_BYTES, &number, sizeof number);
  seal_put(value, sizeof value);
  forge_row(f, f->store->meta_table, span_of_str(name), span_of(value, sizeof value));
}

static void forge_meta(struct fixture *f, const struct meta *meta)
{
  uint8_t value[SEAL_BYTES + sizeof *meta];

  memcpy(value + SEAL_BYTES, meta, sizeof *meta);
  seal_put(value, sizeof value);
  forge_row(f, f->store->meta_table, span_of_str("state"), span_of(value, sizeof value));
}

static void assert_open_fails(struct fixture *f, const char *says)
{
  store_close(&f->store);
  assert_int_equal(open_store(f->path, &f->store), ERR_STORE_CORRUPT);
  assert_null(f->store);
  assert_says(says);
  assert_says(f->path);
}

static void another_schema_is_refused_with_the_remedy(void **state)
{
  struct fixture *f = *state;

  forge_number(f, "schema", META_SCHEMA - 1);
  assert_open_fails(f, "schema 2, this version reads 3");
  assert_says("run the version that wrote it");
  assert_says("move the directory away");
}

static void damaged_meta_value_is_refused_by_name(void **state)
{
  struct fixture *f = *state;

  forge_row(f, f->store->meta_table, span_of_str("state"), span_of("0123456789abcdef", 16));
  assert_open_fails(f, "state");
}

static void missing_meta_value_is_refused_by_name(void **state)
{
  struct fixture *f = *state;

  forge_row(f, f->store->meta_table, span_of_str("state"), (struct span){ 0 });
  assert_open_fails(f, "state");
}

static void wrong_item_count_is_refused(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };

  fill(f, &o, 3);
  struct meta meta = f->store->meta;
  meta.sides[meta.live].n_items = 4;
  forge_meta(f, &meta);
  assert_open_fails(f, "4 items and has 3");
  oracle_fini(&o);
}

static void impossible_sides_are_refused(void **state)
{
  struct fixture *f = *state;
  struct meta meta = f->store->meta;

  meta.rebuilt = meta.live;
  forge_meta(f, &meta);
  assert_open_fails(f, "sides");
}

static void damaged_position_is_refused_by_partition(void **state)
{
  struct fixture *f = *state;
  const struct store_position position = position_of(5, 100);
  const int64_t partition = 5;
  uint8_t row[48] = { 0 };

  memcpy(row + 40, &partition, sizeof partition); /* only the seal is wrong */
  assert_ok(store_apply(f->store, NULL, 0, &position, 1, NULL));
  forge_row(f, store_current(f->store)->tables.positions, span_of("\0\0\0\5", 4), span_of(row, sizeof row));
  assert_open_fails(f, "partition 5");
}

static void position_of_another_partition_is_refused(void **state)
{
  struct fixture *f = *state;
  const struct store_position position = position_of(5, 100);
  uint8_t row[48] = { 0 };

  seal_put(row, sizeof row);
  assert_ok(store_apply(f->store, NULL, 0, &position, 1, NULL));
  forge_row(f, store_current(f->store)->tables.positions, span_of("\0\0\0\5", 4), span_of(row, sizeof row));
  assert_open_fails(f, "partition 5");
}

static void hole_in_the_slots_is_found_by_a_scan(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  uint8_t slot[8];

  fill(f, &o, 10);
  slot_number_encode(4, slot);
  forge_row(f, store_current(f->store)->tables.items, span_of(slot, 8), (struct span){ 0 });
  assert_int_equal(store_visit_all(f->store, 3, ignore_items, NULL), ERR_STORE_CORRUPT);
  assert_says("slot 4");
  assert_says("missing");
  oracle_fini(&o);
}

static void key_that_leads_to_another_item_is_found_by_a_change(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct region region = { 0 };
  struct oracle_item item = { .id = 3, .seeds = { 1 }, .offset = 99 };
  uint8_t slot[8];

  fill(f, &o, 10);
  slot_number_encode(4, slot);
  struct item_change change = oracle_change(&item, &region);
  forge_row(f, store_current(f->store)->tables.keys, change.key, span_of(slot, 8));
  assert_int_equal(store_apply(f->store, &change, 1, NULL, 0, NULL), ERR_STORE_CORRUPT);
  assert_says("slot 4");
  slot_number_encode(1000, slot);
  forge_row(f, store_current(f->store)->tables.keys, change.key, span_of(slot, 8));
  assert_int_equal(store_apply(f->store, &change, 1, NULL, 0, NULL), ERR_STORE_CORRUPT);
  assert_says("slot 1000");
  forge_row(f, store_current(f->store)->tables.keys, change.key, span_of(slot, 3));
  assert_int_equal(store_apply(f->store, &change, 1, NULL, 0, NULL), ERR_STORE_CORRUPT);
  region_fini(&region);
  oracle_fini(&o);
}

static void cut_data_file_is_refused_at_every_length(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  uint8_t *bytes;

  open_small_with_items(f, &o);
  size_t used = f->store->env->used_bytes;
  store_close(&f->store);
  size_t n = read_data(f, &bytes);
  assert_true(used < n);
  for (size_t cut = 1; cut < used; cut += cut < 4096 * 3 ? 509 : 4093) {
    write_data(f, bytes, cut);
    assert_int_equal(open_store(f->path, &f->store), ERR_STORE_CORRUPT);
    assert_null(f->store);
    assert_says(f->path);
    assert_says("move the directory away");
  }
  write_data(f, bytes, used); /* no page in use lies after that */
  assert_ok(open_store(f->path, &f->store));
  oracle_compare(&o, f->store);
  free(bytes);
  oracle_fini(&o);
}

static void empty_data_file_is_a_new_store(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  size_t n;

  store_close(&f->store);
  write_data(f, NULL, 0);
  assert_ok(open_store(f->path, &f->store));
  oracle_compare(&o, f->store);
  store_positions(f->store, &n);
  assert_int_equal(n, 0);
}

static void file_of_something_else_is_refused(void **state)
{
  struct fixture *f = *state;
  uint8_t noise[3 * 4096];
  struct dice dice = { seed };

  for (size_t i = 0; i < sizeof noise; i++)
    noise[i] = (uint8_t)dice_u64(&dice);
  store_close(&f->store);
  write_data(f, noise, sizeof noise);
  assert_open_fails(f, "not a store");
}

static err_code_t make_foreign_table(void *context, MDB_txn *txn)
{
  MDB_dbi table;

  return env_verify(context, mdb_dbi_open(txn, "theirs", MDB_CREATE, &table), "make a table");
}

static void environment_of_someone_else_is_refused(void **state)
{
  struct fixture *f = *state;
  struct env *env = NULL;
  char path[PATH_MAX + 16];

  store_close(&f->store);
  snprintf(path, sizeof path, "%s/data.mdb", f->path);
  assert_int_equal(unlink(path), 0);
  assert_ok(env_open(f->path, 1 << 20, &env));
  assert_ok(env_write(env, make_foreign_table, env));
  env_close(&env);
  assert_open_fails(f, "has no table `meta`");
}

/* ---- Pages ---- */

enum { PAGE_BYTES = 4096, DAMAGES = 200 };

/* Make a store of many pages, close it, and read its file. */
static size_t read_many_pages(struct fixture *f, struct oracle *o, uint8_t **bytes)
{
  open_small_with_items(f, o);
  fill(f, o, 300);
  store_close(&f->store);
  return read_data(f, bytes);
}

/* Lose, overwrite or spoil a page. */
static void damage_page(struct dice *dice, uint8_t *page)
{
  size_t first = dice_below(dice, PAGE_BYTES), n = dice_below(dice, PAGE_BYTES - first);

  switch (dice_below(dice, 4)) {
  case 0:
    memset(page, 0, PAGE_BYTES);
    return;
  case 1:
    first = 0;
    n = PAGE_BYTES;
    break;
  case 2:
    first = 0; /* the header, and where nodes begin */
    n = 1 + dice_below(dice, 64);
    break;
  }
  for (size_t i = first; i < first + n; i++)
    page[i] = (uint8_t)dice_u64(dice);
}

/* Read everything. If nothing fails, all items must be there. */
static bool is_found_damaged(const struct fixture *f, const struct oracle *o)
{
  struct store_contents contents;
  struct store *s;
  err_code_t err = store_backup_verify(f->path, &contents);

  if (err == ERR_OK) {
    assert_int_equal(contents.n_items, o->n);
    assert_ok(open_store(f->path, &s));
    store_close(&s);
  }
  assert_true(err == ERR_OK || err == ERR_STORE_CORRUPT);
  return err != ERR_OK;
}

/* LMDB would abort, loop or read outside the file for some of these. */
static void any_damaged_page_is_an_error_or_not_in_use(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  struct dice dice = { seed };
  uint8_t *bytes, was[PAGE_BYTES];
  size_t n_found = 0;

  size_t n = read_many_pages(f, &o, &bytes);
  assert_false(is_found_damaged(f, &o));
  for (size_t i = 0; i < DAMAGES; i++) {
    uint8_t *page = bytes + (2 + dice_below(&dice, n / PAGE_BYTES - 2)) * PAGE_BYTES;
    memcpy(was, page, sizeof was);
    damage_page(&dice, page);
    write_data(f, bytes, n);
    n_found += is_found_damaged(f, &o);
    memcpy(page, was, sizeof was);
  }
  assert_true(n_found > DAMAGES / 20);
  write_data(f, bytes, n);
  assert_false(is_found_damaged(f, &o));
  free(bytes);
  oracle_fini(&o);
}

static err_code_t walk_main(void *context, MDB_txn *txn)
{
  AUTO(env_close_cursor) MDB_cursor *cursor = NULL;
  MDB_val key, value;
  MDB_dbi table;
  int rc;

  TRY(env_verify(context, mdb_dbi_open(txn, "keys", 0, &table), "open"));
  TRY(env_verify(context, mdb_cursor_open(txn, table, &cursor), "read"));
  while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS)
    ;
  return rc == MDB_NOTFOUND ? ERR_OK : env_verify(context, rc, "read");
}

/* Read a table without looking at its pages first, in another process. Return its exit status. */
static int status_of_reading(const struct fixture *f)
{
  pid_t child = fork();
  int status;

  assert_true(child >= 0);
  if (child == 0) {
    struct env *env;
    log_set_level(LOG_LEVEL_ERROR);
    err_code_t err = env_open(f->path, 1 << 20, &env);
    if (err == ERR_OK)
      err = env_read(env, walk_main, env);
    _exit(err == ERR_OK ? 0 : err == ERR_STORE_CORRUPT ? 1 : 2);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void damage_that_lmdb_cannot_return_ends_the_process_with_a_status(void **state)
{
  struct fixture *f = *state;
  struct oracle o = { 0 };
  uint8_t *bytes, was[PAGE_BYTES];
  size_t n_ended = 0;

  size_t n = read_many_pages(f, &o, &bytes);
  for (size_t at = 2 * PAGE_BYTES; at + PAGE_BYTES <= n; at += PAGE_BYTES) {
    memcpy(was, bytes + at, sizeof was);
    memset(bytes + at, 0, sizeof was);
    write_data(f, bytes, n);
    int status = status_of_reading(f);
    assert_true(status == 0 || status == 1 || status == ENV_DAMAGED_STATUS);
    n_ended += status == ENV_DAMAGED_STATUS;
    memcpy(bytes + at, was, sizeof was);
  }
  assert_true(n_ended > 0);
  write_data(f, bytes, n);
  free(bytes);
  oracle_fini(&o);
}

static_assert((int)ENV_DAMAGED_STATUS == (int)EXIT_STATUS_STORE_CORRUPT, "systemd does not restart the daemon after it");

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(any_damaged_page_is_an_error_or_not_in_use),
    STORE_TEST(damage_that_lmdb_cannot_return_ends_the_process_with_a_status),
    STORE_TEST(damaged_record_is_an_error_that_names_key_and_slot),
    STORE_TEST(damaged_key_table_is_found_by_a_scan),
    STORE_TEST(another_schema_is_refused_with_the_remedy),
    STORE_TEST(damaged_meta_value_is_refused_by_name),
    STORE_TEST(missing_meta_value_is_refused_by_name),
    STORE_TEST(wrong_item_count_is_refused),
    STORE_TEST(impossible_sides_are_refused),
    STORE_TEST(damaged_record_aside_is_an_error_that_names_the_key),
    STORE_TEST(damaged_position_is_refused_by_partition),
    STORE_TEST(position_of_another_partition_is_refused),
    STORE_TEST(hole_in_the_slots_is_found_by_a_scan),
    STORE_TEST(key_that_leads_to_another_item_is_found_by_a_change),
    STORE_TEST(cut_data_file_is_refused_at_every_length),
    STORE_TEST(empty_data_file_is_a_new_store),
    STORE_TEST(file_of_something_else_is_refused),
    STORE_TEST(environment_of_someone_else_is_refused),
  };

  seed = dice_seed();
  log_set_level(LOG_LEVEL_WARN);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
