/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching a model file from a topic of the embedded broker: what the topic has decides what becomes of it. */
#include "daemon/models/model_fetch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sha256.h"
#include "ingest/wire/model_chunk.h"
#include "store/models/model_files.h"
#include "tests/support/kafka_fixture.h"
#include "tests/support/temp_dir.h"

/* Three chunks, the last one short. */
enum { FILE_BYTES = 2 * MODEL_CHUNK_BYTES + 100 };

struct fixture {
  struct kafka_fixture kafka;
  struct temp_dir dir;
  struct sender *sender;
  uint8_t *content;
  struct model_fetch fetch;
};

static int setup(void **state)
{
  struct fixture *f = calloc(1, sizeof *f);

  assert_non_null(f);
  kafka_fixture_init(&f->kafka);
  temp_dir_init(&f->dir);
  assert_ok(embedded_broker_create_topic(f->kafka.broker, "files", 3));
  const struct kafka_layers layers = kafka_fixture_layers(&f->kafka, false);
  assert_ok(sender_open(&layers, NULL, NULL, &f->sender));
  f->content = malloc(FILE_BYTES);
  assert_non_null(f->content);
  for (size_t i = 0; i < FILE_BYTES; i++)
    f->content[i] = (uint8_t)(i * 7 + i / 251);
  f->fetch.layers = kafka_fixture_layers(&f->kafka, true);
  f->fetch.topic = "files";
  f->fetch.n_bytes = FILE_BYTES;
  snprintf(f->fetch.directory, sizeof f->fetch.directory, "%s", f->dir.path);
  assert_ok(sha256_hex(span_of(f->content, FILE_BYTES), f->fetch.digest));
  *state = f;
  return 0;
}

static int teardown(void **state)
{
  struct fixture *f = *state;

  sender_close(&f->sender);
  kafka_fixture_fini(&f->kafka);
  temp_dir_fini(&f->dir);
  free(f->content);
  free(f);
  return 0;
}

static void write_record(struct fixture *f, const char *digest, uint64_t index, bool has_value, struct span value)
{
  char key[MODEL_CHUNK_KEY_BYTES];
  const struct sender_message message = { .topic = "files",
                                          .has_key = true,
                                          .key = model_chunk_key(digest, index, key),
                                          .has_value = has_value,
                                          .value = value };

  assert_ok(sender_send(f->sender, &message));
  assert_ok(sender_flush(f->sender, KAFKA_TIMEOUT_MS));
}

static void write_chunk(struct fixture *f, uint64_t index)
{
  write_record(f, f->fetch.digest, index, true,
               span_of(f->content + index * MODEL_CHUNK_BYTES, model_chunk_size(FILE_BYTES, index)));
}

static void write_all(struct fixture *f)
{
  for (uint64_t i = 0; i < model_chunk_count(FILE_BYTES); i++)
    write_chunk(f, i);
}

/* The fetch fails with these words, and leaves nothing behind. */
static void assert_refused(struct fixture *f, err_code_t err, const char *words)
{
  char path[PATH_MAX];

  assert_int_equal(model_fetch_run(&f->fetch), err);
  if (!strstr(err_message(), words))
    fail_msg("\"%s\" has no \"%s\"", err_message(), words);
  for (int i = 0; i < 2; i++) {
    assert_ok(model_files_path(f->dir.path, f->fetch.digest, i ? ".part" : "", path));
    assert_int_equal(access(path, F_OK), -1);
  }
}

static void assert_fetched(struct fixture *f)
{
  bool is_there;

  assert_ok(model_fetch_run(&f->fetch));
  assert_ok(model_files_find(f->dir.path, f->fetch.digest, &is_there));
  assert_true(is_there);
}

static void the_chunks_of_one_file_are_put_together(void **state)
{
  struct fixture *f = *state;
  static const char other[] = "00000000000000000000000000000000000000000000000000000000000000ff";

  write_record(f, other, 0, true, span_of_str("of another file"));
  for (uint64_t i = model_chunk_count(FILE_BYTES); i-- > 0;) /* any order will do */
    write_chunk(f, i);
  write_record(f, f->fetch.digest, 3, true, span_of_str("beyond the end"));
  assert_fetched(f);
  assert_int_equal(atomic_load(&f->fetch.n_fetched), FILE_BYTES);
}

static void a_file_that_is_there_needs_no_topic(void **state)
{
  struct fixture *f = *state;

  write_all(f);
  assert_fetched(f);
  f->fetch.topic = "no-such-topic";
  assert_fetched(f);
}

static void the_newest_chunk_counts(void **state)
{
  struct fixture *f = *state;

  write_all(f);
  write_record(f, f->fetch.digest, 1, true, span_of(f->content, MODEL_CHUNK_BYTES));
  assert_refused(f, ERR_MODEL, "make a file with the SHA-256");
  write_record(f, f->fetch.digest, 1, true, span_of(f->content, 5));
  assert_refused(f, ERR_MODEL, "has not the 524288 bytes");
  write_record(f, f->fetch.digest, 1, false, span_of(NULL, 0));
  assert_refused(f, ERR_MODEL, "1 of 3 chunks are missing, the first is 1");
  assert_int_equal(atomic_load(&f->fetch.n_fetched), FILE_BYTES - MODEL_CHUNK_BYTES);
  write_chunk(f, 1);
  assert_fetched(f);
}

static void an_empty_topic_lacks_all_chunks(void **state)
{
  assert_refused(*state, ERR_MODEL, "3 of 3 chunks are missing, the first is 0");
}

static void a_topic_that_has_not_changed_is_not_read_again(void **state)
{
  struct fixture *f = *state;

  write_chunk(f, 0);
  assert_refused(f, ERR_MODEL, "2 of 3 chunks are missing");
  assert_false(f->fetch.is_unchanged);
  assert_refused(f, ERR_MODEL, "no more of model file");
  assert_true(f->fetch.is_unchanged);
  assert_int_equal(atomic_load(&f->fetch.n_fetched), MODEL_CHUNK_BYTES);
  write_chunk(f, 1);
  assert_refused(f, ERR_MODEL, "1 of 3 chunks are missing");
  assert_false(f->fetch.is_unchanged);
  write_chunk(f, 2);
  assert_fetched(f);
}

static void one_that_is_cancelled_ends(void **state)
{
  struct fixture *f = *state;

  atomic_store(&f->fetch.is_cancelled, true);
  assert_refused(f, ERR_STOPPING, "not wanted");
  assert_false(atomic_load(&f->fetch.uses_kafka));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    CASE(the_chunks_of_one_file_are_put_together),
    CASE(a_file_that_is_there_needs_no_topic),
    CASE(the_newest_chunk_counts),
    CASE(an_empty_topic_lacks_all_chunks),
    CASE(a_topic_that_has_not_changed_is_not_read_again),
    CASE(one_that_is_cancelled_ends),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
