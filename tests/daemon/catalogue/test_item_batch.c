/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of changes: their memory after they were emptied, and the parts that they keep, count or leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/catalogue/item_batch.h"
#include "ingest/wire/wire.h"
#include "tests/support/assert_ok.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

enum { ROOM = 100 };

/* Two batches take turns in a first fill. The second one is emptied at its end, and a rebuild uses it again. */
static void an_emptied_batch_can_be_filled_again(void **state)
{
  struct item_batch batch = { 0 }, other = { 0 };

  (void)state;
  for (int round = 0; round < 3; round++) {
    assert_ok(item_batch_reserve(&batch, ROOM));
    assert_non_null(batch.changes);
    batch.changes[ROOM - 1] = (struct item_change){ .offset = round };
    item_batch_swap(&batch, &other);
    assert_int_equal(other.changes[ROOM - 1].offset, round);
    item_batch_fini(&other);
    item_batch_fini(&batch);
  }
}

static void open_engine(const char *directory, struct engine **out)
{
  static const float centroids[2 * 8] = { 0 };
  char path[4096];

  snprintf(path, sizeof path, "%s/pq.safetensors", directory);
  model_file_write_recjpq(path, centroids, 2, 8, 1);
  struct engine_space space = { .name = "pq", .model_path = path };
  struct engine_config config = { &space, 1, 100, 100, 4, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
  assert_ok(engine_open(&config, out));
}

static err_code_t add(struct item_batch *b, const struct item_batch_rules *rules, const char *value)
{
  static const struct item_format format = { 0 };
  const struct topic_record record = {
    .has_key = true,
    .key = span_of_str("a"),
    .has_value = true,
    .value = span_of_str(value),
    .content_type = span_of_str(wire_content_type(WIRE_JSON)),
  };

  return item_batch_add(b, &format, rules, &record);
}

/* A daemon that starts with an empty store reads parts of generations that were retired long ago. */
static void parts_of_a_retired_generation_are_dropped_but_not_unknown(void **state)
{
  static const enum config_unknown policies[] = { CONFIG_UNKNOWN_KEEP, CONFIG_UNKNOWN_SKIP, CONFIG_UNKNOWN_REFUSE };
  const struct model_change retire = { .kind = MODEL_RETIRE, .space = span_of_str("old"), .generation = 1 };
  struct model_state models = { 0 };
  struct temp_dir dir;
  struct engine *engine = NULL;

  (void)state;
  temp_dir_init(&dir);
  open_engine(dir.path, &engine);
  assert_ok(model_state_apply(&models, &retire));
  for (size_t i = 0; i < 3; i++) {
    struct item_batch batch;
    struct item_batch_rules rules = { engine, policies[i], &models };
    assert_ok(item_batch_init(ROOM, &batch));
    assert_ok(add(&batch, &rules, "{\"parts\":{\"old\":{\"codes\":[1,2]},\"pq\":{\"codes\":[1,2]}}}"));
    assert_int_equal(batch.n, 1);
    assert_int_equal(batch.changes[0].n_parts, 1);
    assert_int_equal(batch.unknown_spaces.n, 0);
    err_code_t err = add(&batch, &rules, "{\"parts\":{\"no\":{\"codes\":[1,2]}}}");
    assert_int_equal(err, policies[i] == CONFIG_UNKNOWN_REFUSE ? ERR_SPACE : ERR_OK);
    assert_int_equal(batch.unknown_spaces.n, policies[i] == CONFIG_UNKNOWN_REFUSE ? 0 : 1);
    item_batch_fini(&batch);
  }
  model_state_fini(&models);
  engine_close(&engine);
  temp_dir_fini(&dir);
}

static void an_error_about_a_part_says_about_which(void **state)
{
  struct item_batch batch;
  struct temp_dir dir;
  struct engine *engine = NULL;

  (void)state;
  temp_dir_init(&dir);
  open_engine(dir.path, &engine);
  assert_ok(item_batch_init(ROOM, &batch));
  const struct item_batch_rules rules = { .engine = engine, .unknown_spaces = CONFIG_UNKNOWN_SKIP };
  assert_int_equal(add(&batch, &rules, "{\"parts\":{\"pq\":{\"codes\":[1]}}}"), ERR_ITEM);
  assert_true(span_equal(batch.refused_part, span_of_str("pq")));
  assert_int_equal(add(&batch, &rules, "{\"parts\":1}"), ERR_ITEM);
  assert_int_equal(batch.refused_part.n, 0);
  assert_int_equal(add(&batch, &rules, "{\"parts\":{\"pq\":{\"codes\":[1]}}}"), ERR_ITEM);
  assert_ok(add(&batch, &rules, "{\"parts\":{\"pq\":{\"codes\":[1,2]}}}"));
  assert_int_equal(batch.refused_part.n, 0);
  item_batch_fini(&batch);
  engine_close(&engine);
  temp_dir_fini(&dir);
}

/* A daemon that read such a record before the retirement has the item, without the part: whichever older records of the
 * key it replaced. */
static void a_record_with_nothing_but_parts_of_a_retired_generation_is_still_a_change(void **state)
{
  const struct model_change retire = { .kind = MODEL_RETIRE, .space = span_of_str("old"), .generation = 1 };
  struct model_state models = { 0 };
  struct item_batch batch;
  struct temp_dir dir;
  struct engine *engine = NULL;

  (void)state;
  temp_dir_init(&dir);
  open_engine(dir.path, &engine);
  assert_ok(model_state_apply(&models, &retire));
  assert_ok(item_batch_init(ROOM, &batch));
  struct item_batch_rules rules = { engine, CONFIG_UNKNOWN_SKIP, &models };
  assert_ok(add(&batch, &rules, "{\"parts\":{\"old\":{\"codes\":[1,2]}}}"));
  assert_int_equal(batch.n, 1);
  assert_int_equal(batch.changes[0].n_parts, 0);
  assert_false(batch.changes[0].is_delete);
  size_t taken_bytes = batch.region.taken_bytes;
  assert_ok(add(&batch, &rules, "{\"parts\":{\"no\":{\"codes\":[1,2]}}}"));
  assert_int_equal(batch.n, 1);
  assert_int_equal(batch.region.taken_bytes, taken_bytes); /* many of them take no memory */
  item_batch_fini(&batch);
  model_state_fini(&models);
  engine_close(&engine);
  temp_dir_fini(&dir);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_emptied_batch_can_be_filled_again),
    cmocka_unit_test(parts_of_a_retired_generation_are_dropped_but_not_unknown),
    cmocka_unit_test(an_error_about_a_part_says_about_which),
    cmocka_unit_test(a_record_with_nothing_but_parts_of_a_retired_generation_is_still_a_change),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
