/* SPDX-License-Identifier: Apache-2.0 */
/* Generations whose file comes through a topic: the file that is removed, and the one that cannot be fetched. */
#include "tests/support/model_work_fixture.h"

#include <unistd.h>

#include "store/models/model_files.h"

static void add_from_topic(struct fixture *f, uint32_t generation, uint64_t n_bytes)
{
  struct model_change change = { .kind = MODEL_ADD, .space = span_of_str("books"), .generation = generation };

  change.digest = span_of_str(f->digests[1]);
  change.is_in_topic = true;
  change.n_bytes = n_bytes;
  assert_ok(model_state_apply(&f->state, &change));
}

/* Put the file of generation 2 where a fetch would. */
static void have_file(struct fixture *f, char path[PATH_MAX])
{
  assert_ok(model_files_make_folder(f->dir.path));
  assert_ok(model_files_path(f->dir.path, f->digests[1], "", path));
  assert_int_equal(link(f->models[1], path), 0);
}

static void assert_swept(struct fixture *f, const char *path)
{
  const struct model_entry *removed;
  bool is_busy;

  assert_int_equal(access(path, F_OK), 0);
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(access(path, F_OK), -1);
}

static void a_file_is_removed_once_no_record_names_it(void **state)
{
  const struct model_change forget = { .kind = MODEL_FORGET, .space = span_of_str("books"), .generation = 2 };
  const struct kafka_layers layers = { 0 };
  struct fixture *f = *state;
  char path[PATH_MAX];

  f->config.store_path = f->dir.path;
  f->config.models.files_topic = "files";
  f->config.models.max_file_bytes = UINT64_MAX;
  model_work_fetch_from(&f->work, &layers);
  have_file(f, path);
  add_from_topic(f, 2, 100);
  step_to(f, 2, MODEL_READY, true);
  assert_ok(model_state_apply(&f->state, &forget));
  assert_swept(f, path);
  have_file(f, path);
  add_from_topic(f, 2, 100);
  step_to(f, 2, MODEL_READY, true);
  retire(f, 2);
  assert_swept(f, path);
}

/* Nobody fetches files here: so it is as if none could be fetched. */
static void a_file_that_cannot_be_fetched_holds_nothing_up(void **state)
{
  struct fixture *f = *state;
  const struct model_entry *removed;
  bool is_busy;

  f->config.store_path = f->dir.path;
  add_from_topic(f, 2, 100);
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(entry(f, 2)->phase, MODEL_WAITING);
  assert_non_null(strstr(entry(f, 2)->problem, "models.files_topic"));
  assert_non_null(strstr(entry(f, 2)->path, f->digests[1]));
  assert_false(model_work_is_loading(&f->work));
  assert_false(is_busy);
  add_from_topic(f, 2, 101); /* another record: it is tried at once */
  assert_ok(model_work_step(&f->work, true, &is_busy, &removed));
  assert_int_equal(entry(f, 2)->n_bytes, 101);
  assert_int_equal(entry(f, 2)->n_fetch_failures, 1);
  add(f, 2, 1, f->digests[1]); /* now by its path */
  step_to(f, 2, MODEL_READY, true);
  assert_string_equal(entry(f, 2)->problem, "");
  add_from_topic(f, 3, 100);
  retire(f, 3);
  step_to(f, 3, MODEL_REMOVED, true);
  assert_string_equal(entry(f, 3)->problem, "");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    CASE(a_file_is_removed_once_no_record_names_it),
    CASE(a_file_that_cannot_be_fetched_holds_nothing_up),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
