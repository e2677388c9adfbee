/* SPDX-License-Identifier: Apache-2.0 */
/* Walks beside writes: no item is missed, though items change their slots; and removing the parts of one space leaves
 * everything else as it was. */
#include "store/store_walk.h"

#include "tests/support/store_fixture.h"

enum { KEYS = 200, STEP = 7 };

static struct region region;
static struct dice dice;
static int64_t next_offset;

/* What the store should hold. */
struct model {
  bool is_there[KEYS];
  float value[KEYS];
  bool has_new_part[KEYS];
};

static void write_one(struct store *s, struct model *m, size_t id, bool is_delete)
{
  char key[16];
  float value = (float)next_offset;
  struct part parts[] = { { .space = span_of_str("books"), .vector = { &value, 1 } },
                          { .space = span_of_str("books@2"), .vector = { &value, 1 } } };
  bool has_new_part = dice_below(&dice, 3) > 0;
  struct item_change change = {
    .key = span_of(key, (size_t)snprintf(key, sizeof key, "%zu", id)),
    .is_delete = is_delete,
    .is_whole = true,
    .parts = parts,
    .n_parts = has_new_part ? 2 : 1,
    .partition = (int32_t)(id % 2 + dice_below(&dice, 2)), /* some keys get states aside */
    .offset = next_offset,
    .timestamp_ms = next_offset,
  };

  assert_ok(store_apply(s, &change, 1, NULL, 0, NULL));
  m->is_there[id] = !is_delete;
  m->value[id] = value;
  m->has_new_part[id] = has_new_part;
  next_offset++;
}

static void fill_store(struct store *s, struct model *m)
{
  *m = (struct model){ .value = { 0 } };
  for (size_t id = 0; id < KEYS; id++)
    write_one(s, m, id, false);
}

static size_t id_of(const struct item_change *item)
{
  char text[16] = "";

  assert_true(item->key.n < sizeof text);
  memcpy(text, item->key.p, item->key.n);
  return strtoul(text, NULL, 10);
}

static void assert_item(const struct model *m, const struct item_change *item, bool has_new_part)
{
  size_t id = id_of(item);

  assert_true(id < KEYS && m->is_there[id]);
  assert_int_equal(item->n_parts, has_new_part ? 2 : 1);
  assert_true(span_equal(item->parts[0].space, span_of_str("books")));
  assert_true(item->parts[0].vector.v[0] == m->value[id]);
  assert_int_equal(item->offset, (int64_t)m->value[id]);
}

static void a_walk_visits_each_item_that_stays_once_beside_writes(void **state)
{
  struct fixture *f = *state;
  struct model m;
  struct item_change *changes;
  size_t n, n_visits[KEYS] = { 0 };
  bool is_touched[KEYS] = { 0 };
  struct store_walk walk = { 0 };

  fill_store(f->store, &m);
  while (!walk.is_over) {
    region_reset(&region);
    assert_ok(store_walk_read(f->store, &walk, 1 + dice_below(&dice, STEP), &region, &changes, &n));
    for (size_t i = 0; i < n; i++) {
      assert_item(&m, &changes[i], m.has_new_part[id_of(&changes[i])]);
      n_visits[id_of(&changes[i])]++;
    }
    for (size_t i = 0; i < 3; i++) { /* deletes move the last items into holes before the walk */
      size_t id = dice_below(&dice, KEYS);
      is_touched[id] |= m.is_there[id];
      write_one(f->store, &m, id, m.is_there[id]);
    }
  }
  for (size_t id = 0; id < KEYS; id++) {
    assert_true(n_visits[id] <= 1);
    if (!is_touched[id] && m.is_there[id])
      assert_int_equal(n_visits[id], 1);
  }
}

static err_code_t check_items(void *context, struct item_change *changes, size_t n)
{
  const struct model *m = context;

  for (size_t i = 0; i < n; i++)
    assert_item(m, &changes[i], false);
  return ERR_OK;
}

static void removing_the_parts_of_a_space_leaves_the_others(void **state)
{
  struct fixture *f = *state;
  struct model m;
  size_t n_due = 0, n_total = 0, n_walked = 0, n, n_removed;
  struct store_walk walk = { 0 };
  struct store_stats before, after;

  fill_store(f->store, &m);
  for (size_t id = 0; id < KEYS; id++)
    n_due += m.has_new_part[id];
  assert_true(n_due > 0);
  store_stats(f->store, &before);
  while (!walk.is_over) {
    assert_ok(store_walk_remove(f->store, &walk, STEP, span_of_str("books@2"), &n, &n_removed));
    n_walked += n;
    n_total += n_removed;
  }
  assert_int_equal(n_walked, before.n_items);
  assert_int_equal(n_total, n_due);
  reopen(f);
  assert_ok(store_visit_all(f->store, 7, check_items, &m));
  store_stats(f->store, &after);
  assert_int_equal(after.n_items, before.n_items);
  assert_int_equal(after.n_aside, before.n_aside);
  walk = (struct store_walk){ 0 };
  assert_ok(store_walk_remove(f->store, &walk, KEYS + 1, span_of_str("books@2"), &n, &n_removed));
  assert_true(walk.is_over);
  assert_int_equal(n_removed, 0);
}

/* A key with a state aside keeps the mark of it: a delete of its newest state brings the other one back. */
static void an_item_with_a_state_aside_keeps_it(void **state)
{
  struct fixture *f = *state;
  float value = 1;
  struct part parts[] = { { .space = span_of_str("books"), .vector = { &value, 1 } },
                          { .space = span_of_str("books@2"), .vector = { &value, 1 } } };
  struct item_change change = { .key = span_of_str("k"), .parts = parts, .n_parts = 2, .timestamp_ms = 1 };
  struct store_effects effects;
  struct store_walk walk = { 0 };
  size_t n, n_removed;

  assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  change.partition = 1;
  change.timestamp_ms = 2;
  assert_ok(store_apply(f->store, &change, 1, NULL, 0, NULL));
  assert_ok(store_walk_remove(f->store, &walk, 10, span_of_str("books@2"), &n, &n_removed));
  assert_int_equal(n_removed, 1);
  change.is_delete = true;
  change.offset = 1;
  change.timestamp_ms = 0; /* older than the other state: that one is the item now */
  assert_ok(store_apply(f->store, &change, 1, NULL, 0, &effects));
  assert_int_equal(effects.n_changes, 1);
  assert_false(effects.changes[0].is_delete);
  assert_int_equal(effects.changes[0].partition, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_walk_visits_each_item_that_stays_once_beside_writes, setup, teardown),
    cmocka_unit_test_setup_teardown(removing_the_parts_of_a_space_leaves_the_others, setup, teardown),
    cmocka_unit_test_setup_teardown(an_item_with_a_state_aside_keeps_it, setup, teardown),
  };

  dice = (struct dice){ dice_seed() };
  int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return n_failed;
}
