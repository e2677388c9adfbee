/* SPDX-License-Identifier: Apache-2.0 */
/* What a fetch means for its entry: it goes on to be loaded, waits with a problem, or is given up. */
#include "daemon/models/model_fetching.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/errand.h"
#include "base/sha256.h"
#include "daemon/models/model_entries.h"
#include "ingest/wire/model_chunk.h"
#include "store/models/model_files.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/temp_dir.h"

static const char content[] = "not a model, but a file of one chunk";

struct fixture {
  struct kafka_fixture kafka;
  struct temp_dir dir;
  struct config config;
  struct model_fetching fetching;
  struct model_entry entry;
};

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  kafka_fixture_init(&f->kafka);
  temp_dir_init(&f->dir);
  assert_ok(embedded_broker_create_topic(f->kafka.broker, "files", 2));
  f->config.models.files_topic = "files";
  f->config.models.max_file_bytes = 1000;
  f->config.store_path = f->dir.path;
  const struct kafka_layers layers = kafka_fixture_layers(&f->kafka, true);
  model_fetching_init(&f->config, &layers, &f->fetching);
  f->entry = (struct model_entry){ .name = "books@2", .is_in_topic = true, .n_bytes = sizeof content };
  assert_ok(sha256_hex(span_of(content, sizeof content), f->entry.digest));
  *state = f;
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;

  model_fetching_drop(&f->fetching);
  while (errand_n_left() > 0)
    clock_sleep_ns(CLOCK_NS_PER_MS);
  kafka_fixture_fini(&f->kafka);
  temp_dir_fini(&f->dir);
  free(f);
  return 0;
}

static void upload(const struct fixture *f)
{
  const struct kafka_layers layers = kafka_fixture_layers(&f->kafka, false);
  char key[MODEL_CHUNK_KEY_BYTES];
  const struct sender_message message = {
    .topic = "files",
    .has_key = true,
    .key = model_chunk_key(f->entry.digest, 0, key),
    .has_value = true,
    .value = span_of(content, sizeof content),
  };
  struct sender *sender;

  assert_ok(sender_open(&layers, NULL, NULL, &sender));
  assert_ok(sender_send(sender, &message));
  assert_ok(sender_flush(sender, KAFKA_TIMEOUT_MS));
  sender_close(&sender);
}

/* Fetch until that has ended, well or not. */
static void fetch(struct fixture *f)
{
  int64_t end_ns = kafka_deadline_ns();

  model_fetching_begin(&f->fetching, &f->entry);
  while (f->fetching.errand && clock_now_ns() < end_ns) {
    assert_true(model_fetching_is_of(&f->fetching, &f->entry));
    model_fetching_step(&f->fetching);
    clock_sleep_ns(CLOCK_NS_PER_MS);
  }
  assert_null(f->fetching.errand);
  assert_false(model_fetching_is_of(&f->fetching, &f->entry));
  assert_int_equal(f->entry.phase, MODEL_WAITING);
}

static void assert_waits(const struct fixture *f, const char *words)
{
  if (!strstr(f->entry.problem, words))
    fail_msg("\"%s\" has no \"%s\"", f->entry.problem, words);
  assert_true(model_fetching_is_needed(&f->entry));
  assert_false(model_fetching_is_due(&f->entry));
}

static void a_fetched_file_can_be_loaded(void **state)
{
  struct fixture *f = *state;

  assert_true(model_fetching_is_due(&f->entry));
  upload(f);
  fetch(f);
  assert_false(model_fetching_is_needed(&f->entry));
  assert_int_equal(f->entry.n_fetched, sizeof content);
  assert_string_equal(f->entry.problem, "");
}

static void what_is_missing_is_the_entrys_problem_until_it_comes(void **state)
{
  struct fixture *f = *state;

  fetch(f);
  assert_waits(f, "chunks are missing");
  assert_int_equal(f->entry.n_fetch_failures, 1);
  int64_t first_pause_ns = f->entry.fetch_due_ns - clock_now_ns();
  fetch(f);
  assert_waits(f, "chunks are missing");
  assert_int_equal(f->entry.n_fetch_failures, 2);
  assert_true(f->entry.fetch_due_ns - clock_now_ns() > first_pause_ns);
  upload(f);
  fetch(f);
  assert_false(model_fetching_is_needed(&f->entry));
  assert_string_equal(f->entry.problem, "");
  assert_int_equal(f->entry.n_fetch_failures, 0);
}

static void a_full_disk_is_waited_for(void **state)
{
  struct fixture *f = *state;
  struct rlimit former, none = { .rlim_cur = 0 };

  upload(f);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &former), 0);
  none.rlim_max = former.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  fetch(f);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &former), 0);
  assert_waits(f, "make room on the disk");
  fetch(f);
  assert_false(model_fetching_is_needed(&f->entry));
}

static void what_is_not_allowed_is_not_begun(void **state)
{
  struct fixture *f = *state;

  f->entry.n_bytes = 1001;
  model_fetching_begin(&f->fetching, &f->entry);
  assert_null(f->fetching.errand);
  assert_waits(f, "models.max_file_bytes");
  f->entry.n_bytes = 1000;
  f->config.models.files_topic = "";
  model_fetching_begin(&f->fetching, &f->entry);
  assert_null(f->fetching.errand);
  assert_waits(f, "models.files_topic names none");
}

/* Begin to fetch while the disk hangs: the file is a pipe that nobody writes. */
static void begin_beside_hanging_disk(struct fixture *f, char pipe[PATH_MAX])
{
  assert_ok(model_files_make_folder(f->dir.path));
  assert_ok(model_files_path(f->dir.path, f->entry.digest, "", pipe));
  assert_int_equal(mkfifo(pipe, 0600), 0);
  model_fetching_begin(&f->fetching, &f->entry);
  assert_non_null(f->fetching.errand);
}

/* Waits until the fetch has begun to read. */
static void end_hanging(const char *pipe)
{
  int fd = open(pipe, O_WRONLY | O_CLOEXEC);

  assert_true(fd >= 0);
  close(fd);
}

static void a_file_that_nobody_needs_any_more_is_no_failure(void **state)
{
  struct fixture *f = *state;
  int64_t end_ns = kafka_deadline_ns();
  char pipe[PATH_MAX];

  begin_beside_hanging_disk(f, pipe);
  model_fetching_cancel(&f->fetching);
  end_hanging(pipe);
  while (f->fetching.errand && clock_now_ns() < end_ns)
    model_fetching_step(&f->fetching);
  assert_null(f->fetching.errand);
  assert_int_equal(f->entry.n_fetch_failures, 0);
  assert_string_equal(f->entry.problem, "");
  assert_true(model_fetching_is_due(&f->entry));
}

static void a_stop_does_not_wait_for_the_file(void **state)
{
  struct fixture *f = *state;

  model_fetching_begin(&f->fetching, &f->entry);
  model_fetching_drop(&f->fetching);
  assert_null(f->fetching.errand);
}

static void a_stop_leaves_a_disk_behind_that_hangs(void **state)
{
  struct fixture *f = *state;
  char pipe[PATH_MAX];

  begin_beside_hanging_disk(f, pipe);
  model_fetching_drop(&f->fetching);
  assert_null(f->fetching.errand);
  assert_int_equal(errand_n_left(), 1);
  end_hanging(pipe);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    CASE(a_fetched_file_can_be_loaded),
    CASE(what_is_missing_is_the_entrys_problem_until_it_comes),
    CASE(a_full_disk_is_waited_for),
    CASE(what_is_not_allowed_is_not_begun),
    CASE(a_file_that_nobody_needs_any_more_is_no_failure),
    CASE(a_stop_does_not_wait_for_the_file),
    CASE(a_stop_leaves_a_disk_behind_that_hangs),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
