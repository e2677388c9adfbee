/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes in the store: changes of the configuration, and removed values. */
#include "store/store_private.h"

#include "store/record/record_attributes.h"
#include "tests/support/store_fixture.h"

static struct region region;

static struct attribute of(const char *name, enum attribute_type type)
{
  return (struct attribute){ span_of_str(name), type };
}

static err_code_t reopen_with(struct fixture *f, const struct attribute *v, size_t n)
{
  store_close(&f->store);
  assert_ok(store_open(f->path, &f->store));
  return store_set_attributes(f->store, &(struct attributes){ v, n });
}

static void put(struct fixture *f, const char *key, int64_t offset, const struct attribute_value *v, size_t n)
{
  struct item_change change = {
    .key = span_of_str(key), .attributes = (struct attribute_value *)v, .n_attributes = n, .offset = offset
  };
  struct store_effects effects;

  assert_ok(store_apply(f->store, &change, 1, NULL, 0, &effects));
  assert_int_equal(effects.kinds[0], STORE_APPLIED);
}

static struct attribute_value text(const char *name, const char *value)
{
  return (struct attribute_value){ span_of_str(name), { .kind = VALUE_TEXT, .text = span_of_str(value) } };
}

static struct attribute_value integer(const char *name, int64_t value)
{
  return (struct attribute_value){ span_of_str(name), { .kind = VALUE_INTEGER, .integer = value } };
}

static struct attribute_value null(const char *name)
{
  return (struct attribute_value){ span_of_str(name), { .kind = VALUE_NULL } };
}

/* Copy the one item of the store. */
static err_code_t copy_item(void *context, struct item_change *changes, size_t n)
{
  struct item_change *out = context;

  assert_int_equal(n, 1);
  *out = changes[0];
  assert_ok(region_array(&region, out->n_attributes, sizeof *out->attributes, &out->attributes));
  for (size_t i = 0; i < out->n_attributes; i++) {
    out->attributes[i] = changes[0].attributes[i];
    assert_ok(region_copy(&region, out->attributes[i].name, &out->attributes[i].name));
    if (out->attributes[i].value.kind == VALUE_TEXT)
      assert_ok(region_copy(&region, out->attributes[i].value.text, &out->attributes[i].value.text));
  }
  return ERR_OK;
}

/* Assert that the one item has exactly these attributes. */
static void assert_has(struct fixture *f, const struct attribute_value *v, size_t n)
{
  struct item_change want = { .attributes = (struct attribute_value *)v, .n_attributes = n };
  struct item_change got;

  region_reset(&region);
  assert_ok(store_visit_all(f->store, 10, copy_item, &got));
  assert_true(oracle_has_same_attributes(&want, &got));
}

static void values_stay_until_they_are_named(void **state)
{
  struct fixture *f = *state;
  const struct attribute_value first[] = { text("country", "de"), integer("year", 1999) };
  const struct attribute_value second[] = { text("country", ""), null("price") };
  const struct attribute_value both[] = { text("country", ""), integer("year", 1999) };
  const struct attribute_value third[] = { null("country"), null("year"), null("expires") };

  put(f, "k", 0, first, 2); /* attributes alone make an item */
  assert_has(f, first, 2);
  put(f, "k", 1, second, 2);
  assert_has(f, both, 2);
  reopen(f);
  assert_has(f, both, 2);
  put(f, "k", 2, third, 3);
  assert_has(f, NULL, 0);
}

static void an_attribute_that_is_not_configured_is_not_stored(void **state)
{
  struct fixture *f = *state;
  const struct attribute_value v[] = { text("colour", "red"), text("country", "at") };

  put(f, "k", 0, v, 2);
  assert_has(f, v + 1, 1);
}

static void an_added_attribute_starts_absent(void **state)
{
  struct fixture *f = *state;
  const struct attribute one[] = { of("country", ATTRIBUTE_KEYWORD) };
  const struct attribute two[] = { of("year", ATTRIBUTE_INTEGER), of("country", ATTRIBUTE_KEYWORD) };
  const struct attribute_value v[] = { text("country", "de"), integer("year", 7) };

  assert_ok(reopen_with(f, one, 1));
  put(f, "k", 0, v, 2);
  assert_ok(reopen_with(f, two, 2));
  assert_has(f, v, 1);
  put(f, "k", 1, v + 1, 1);
  assert_has(f, v, 2);
}

static void a_removed_attribute_is_dropped_and_comes_back_absent(void **state)
{
  struct fixture *f = *state;
  const struct attribute both[] = { of("country", ATTRIBUTE_KEYWORD), of("year", ATTRIBUTE_INTEGER) };
  const struct attribute changed[] = { of("country", ATTRIBUTE_KEYWORD), of("year", ATTRIBUTE_KEYWORD) };
  const struct attribute_value v[] = { text("country", "de"), integer("year", 7) };
  const struct attribute_value as_text[] = { text("year", "MCM"), text("country", "de") };

  assert_ok(reopen_with(f, both, 2));
  put(f, "k", 0, v, 2);
  assert_ok(reopen_with(f, both, 1)); /* without year */
  assert_has(f, v, 1);
  assert_ok(reopen_with(f, changed, 2)); /* with another type */
  assert_has(f, v, 1);
  put(f, "k", 1, as_text, 1);
  assert_has(f, as_text, 2);
}

static void a_changed_type_is_refused_with_the_remedies(void **state)
{
  struct fixture *f = *state;
  const struct attribute was[] = { of("cost", ATTRIBUTE_INTEGER) };
  const struct attribute is[] = { of("year", ATTRIBUTE_INTEGER), of("cost", ATTRIBUTE_NUMBER) };
  const struct attribute_value v = integer("cost", 3);

  assert_ok(reopen_with(f, was, 1));
  put(f, "k", 0, &v, 1);
  assert_fails(reopen_with(f, is, 2), ERR_CONFIG,
               "attributes.cost is integer in the store and number in the configuration: give the attribute a new "
               "name; or start once without it");
  assert_ok(store_set_attributes(f->store, &(struct attributes){ was, 1 })); /* nothing has changed */
  assert_has(f, &v, 1);
}

static void another_order_keeps_the_values_and_writes_nothing(void **state)
{
  struct fixture *f = *state;
  const struct attribute one_way[] = { of("a", ATTRIBUTE_INTEGER), of("b", ATTRIBUTE_INTEGER) };
  const struct attribute other_way[] = { of("b", ATTRIBUTE_INTEGER), of("a", ATTRIBUTE_INTEGER) };
  const struct attribute_value v[] = { integer("a", 1), integer("b", 2) };
  MDB_envinfo before, after;

  assert_ok(reopen_with(f, one_way, 2));
  put(f, "k", 0, v, 2);
  assert_int_equal(mdb_env_info(f->store->env->mdb, &before), MDB_SUCCESS);
  assert_ok(reopen_with(f, other_way, 2));
  assert_int_equal(mdb_env_info(f->store->env->mdb, &after), MDB_SUCCESS);
  assert_int_equal(after.me_last_txnid, before.me_last_txnid);
  assert_has(f, v, 2);
}

static void random_configurations_keep_what_they_share(void **state)
{
  struct fixture *f = *state;
  struct dice dice = { dice_seed() };
  static const char *const names[] = { "a", "b", "c", "d", "e" };
  bool is_there[5] = { false }, has_value[5] = { false };
  int64_t values[5];

  skip_syncs(f);
  for (int64_t round = 0; round < 300; round++) {
    struct attribute v[5];
    struct attribute_value changed[5], want[5];
    size_t n = 0, n_changed = 0, n_want = 0;
    for (size_t i = 0; i < 5; i++) {
      is_there[i] = dice_below(&dice, 4) > 0;
      has_value[i] &= is_there[i];
      if (is_there[i])
        v[n++] = of(names[i], ATTRIBUTE_INTEGER);
    }
    assert_ok(reopen_with(f, v, n));
    skip_syncs(f);
    for (size_t i = 0; i < 5; i++) {
      if (dice_below(&dice, 2))
        continue;
      bool is_null = dice_below(&dice, 4) == 0;
      int64_t value = (int64_t)dice_u64(&dice);
      changed[n_changed++] = is_null ? null(names[i]) : integer(names[i], value);
      if (!is_there[i])
        continue;
      has_value[i] = !is_null;
      values[i] = value;
    }
    put(f, "k", round, changed, n_changed);
    for (size_t i = 0; i < 5; i++)
      if (has_value[i])
        want[n_want++] = integer(names[i], values[i]);
    assert_has(f, want, n_want);
  }
}

static void damaged_lists_of_attributes_are_refused(void **state)
{
  struct attribute_ids ids = { 0 };
  struct span bytes;

  (void)state;
  region_reset(&region);
  assert_ok(attribute_ids_encode(&oracle_ids, &region, &bytes));
  assert_ok(attribute_ids_decode(bytes, &ids));
  assert_int_equal(ids.next, 65536);
  assert_int_equal(ids.attributes.n, ORACLE_ATTRIBUTES);
  attribute_ids_fini(&ids);
  for (size_t n = 0; n < bytes.n; n++) {
    uint8_t *cut = malloc(n ? n : 1); /* the sanitizer sees a read past the end */
    assert_non_null(cut);
    memcpy(cut, bytes.p, n);
    if (attribute_ids_decode(span_of(cut, n), &ids) == ERR_OK) { /* cut between two attributes */
      assert_true(ids.attributes.n < ORACLE_ATTRIBUTES);
      attribute_ids_fini(&ids);
    }
    free(cut);
  }
}

static void ids_run_out_with_an_error(void **state)
{
  struct attribute_ids ids = { .next = UINT16_MAX }, next = { 0 }, last = { 0 };
  const struct attribute v[] = { of("a", ATTRIBUTE_BOOL), of("b", ATTRIBUTE_BOOL) };

  (void)state;
  assert_ok(attribute_ids_assign(&ids, &(struct attributes){ v, 1 }, &next));
  assert_int_equal(next.ids[0], UINT16_MAX);
  assert_fails(attribute_ids_assign(&next, &(struct attributes){ v, 2 }, &last), ERR_STORE, "no id left");
  attribute_ids_fini(&next);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    STORE_TEST(values_stay_until_they_are_named),
    STORE_TEST(an_attribute_that_is_not_configured_is_not_stored),
    STORE_TEST(an_added_attribute_starts_absent),
    STORE_TEST(a_removed_attribute_is_dropped_and_comes_back_absent),
    STORE_TEST(a_changed_type_is_refused_with_the_remedies),
    STORE_TEST(another_order_keeps_the_values_and_writes_nothing),
    STORE_TEST(random_configurations_keep_what_they_share),
    cmocka_unit_test(damaged_lists_of_attributes_are_refused),
    cmocka_unit_test(ids_run_out_with_an_error),
  };

  log_set_level(LOG_LEVEL_WARN);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  region_fini(&region);
  return failed;
}
