/* SPDX-License-Identifier: Apache-2.0 */
/* Control records: what each kind says, every record that makes no sense, and that the two directions agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/region.h"
#include "ingest/wire/model_record.h"
#include "tests/support/assert_ok.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct region region;

static err_code_t decode(const char *key, const char *value, struct model_change *out)
{
  region_reset(&region);
  return model_record_decode(span_of_str(key), value != NULL, value ? span_of_str(value) : span_of(NULL, 0), &region,
                             out);
}

static void each_kind_of_record_is_read(void **state)
{
  struct model_change change;

  (void)state;
  assert_ok(decode("books@2", "{\"add\":{\"path\":\"/m/2\",\"sha256\":\"" DIGEST "\"},\"time\":\"now\"}", &change));
  assert_int_equal(change.kind, MODEL_ADD);
  assert_int_equal(change.generation, 2);
  assert_true(span_equal(change.space, span_of_str("books")));
  assert_true(span_equal(change.path, span_of_str("/m/2")));
  assert_true(span_equal(change.digest, span_of_str(DIGEST)));
  assert_float_equal(change.shadow, 0, 0);

  assert_ok(decode("books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"shadow\":1}}", &change));
  assert_float_equal(change.shadow, 1, 0);

  assert_int_equal(change.derives_from, 0);

  assert_ok(decode("books@3", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"derive\":2}}", &change));
  assert_int_equal(change.kind, MODEL_ADD);
  assert_int_equal(change.derives_from, 2);

  assert_ok(decode("books@1", "{\"retire\":true}", &change));
  assert_int_equal(change.kind, MODEL_RETIRE);
  assert_int_equal(change.generation, 1);
  assert_int_equal(change.derives_from, 0);

  assert_ok(decode("books@3", "{\"retire\":true,\"derive\":1}", &change));
  assert_int_equal(change.kind, MODEL_RETIRE);
  assert_int_equal(change.derives_from, 1);

  assert_ok(decode("books", "{\"switches\":[{\"to\":2,\"at_ms\":5},{\"to\":1,\"at_ms\":5}]}", &change));
  assert_int_equal(change.kind, MODEL_SWITCHES);
  assert_int_equal(change.generation, 0);
  assert_int_equal(change.n_switches, 2);
  assert_int_equal(change.switches[0].to, 2);
  assert_int_equal(change.switches[1].to, 1);
  assert_int_equal(change.switches[1].at_ms, 5);

  assert_ok(decode("books@7", NULL, &change));
  assert_int_equal(change.kind, MODEL_FORGET);
}

static void a_file_may_be_in_the_topic(void **state)
{
  struct model_change change;

  (void)state;
  assert_ok(decode("books@2", "{\"add\":{\"topic\":true,\"bytes\":1048577,\"sha256\":\"" DIGEST "\"}}", &change));
  assert_int_equal(change.kind, MODEL_ADD);
  assert_true(change.is_in_topic);
  assert_int_equal(change.n_bytes, 1048577);
  assert_int_equal(change.path.n, 0);
  assert_true(span_equal(change.digest, span_of_str(DIGEST)));
}

static void a_record_that_makes_no_sense_is_refused_with_the_place(void **state)
{
  static const struct {
    const char *key, *value, *says;
  } rows[] = {
    { "", "{}", "the key is" },
    { "books@", "{}", "the key is" },
    { "books@0", "{}", "the key is" },
    { "@2", "{}", "the key is" },
    { "!books@2", "{\"retire\":true}", "the key is" },
    { "boo ks", NULL, "the key is" },
    { "sixty-four-bytes-are-too-many-for-a-generation-more-to-come-here", NULL, NULL },
    { "sixty-four-bytes-are-too-many-for-a-generation-more-to-come-here@2", NULL, "more than 64 bytes" },
    { "books@2", "", "not JSON" },
    { "books@2", "{\"add\"", "not JSON" },
    { "books@2", "[]", "a JSON object" },
    { "books@2", "\"x\"", "a JSON object" },
    { "books@2", "{}", "either add or retire" },
    { "books@2", "{\"add\":{},\"retire\":true}", "either add or retire" },
    { "books@2", "{\"retire\":false}", "retire: expects true" },
    { "books@2", "{\"retired\":true}", "no member \"retired\"" },
    { "books@2", "{\"retire\":true,\"retire\":true}", "not JSON" },
    { "books@2", "{\"switches\":[{\"to\":2,\"at_ms\":1}]}", "no member \"switches\"" },
    { "books@2", "{\"add\":3}", "add: expects an object" },
    { "books@1", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\"}}", "generation 1" },
    { "books@2", "{\"add\":{\"sha256\":\"" DIGEST "\"}}", "add.path: expects a text" },
    { "books@2", "{\"add\":{\"path\":\"m\",\"sha256\":\"" DIGEST "\"}}", "add.path: expects an absolute path" },
    { "books@2", "{\"add\":{\"path\":\"/m\\u0000x\",\"sha256\":\"" DIGEST "\"}}", "add.path: expects an absolute" },
    { "books@2", "{\"add\":{\"path\":\"/m\"}}", "add.sha256: expects a text" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "0\"}}", "add.sha256: expects 64" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"g123\"}}", "add.sha256: expects 64" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"parts\":1}}", "no member \"parts\"" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"derive\":2}}", "derive: expects" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"derive\":0}}", "derive: expects" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"derive\":true}}", "derive: expects" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\"},\"derive\":1}", "derive: is a member of add" },
    { "books@2", "{\"retire\":true,\"derive\":2}", "derive: expects" },
    { "books@1", "{\"retire\":true,\"derive\":1}", "derive: expects" },
    { "books", "{\"switches\":[{\"to\":2,\"at_ms\":1}],\"derive\":1}", "no member \"derive\"" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"bytes\":1,\"sha256\":\"" DIGEST "\"}}", "add.bytes: belongs" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"topic\":true,\"sha256\":\"" DIGEST "\"}}", "either path or topic" },
    { "books@2", "{\"add\":{\"topic\":1,\"bytes\":1,\"sha256\":\"" DIGEST "\"}}", "add.topic: expects true" },
    { "books@2", "{\"add\":{\"topic\":true,\"sha256\":\"" DIGEST "\"}}", "add.bytes: expects the size" },
    { "books@2", "{\"add\":{\"topic\":true,\"bytes\":0,\"sha256\":\"" DIGEST "\"}}", "add.bytes: expects" },
    { "books@2", "{\"add\":{\"topic\":true,\"bytes\":1099511627777,\"sha256\":\"" DIGEST "\"}}", "add.bytes" },
    { "books@2", "{\"add\":{\"topic\":true,\"bytes\":1}}", "add.sha256: expects a text" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"shadow\":1.5}}", "add.shadow: expects" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"shadow\":-0.1}}", "add.shadow: expects" },
    { "books@2", "{\"add\":{\"path\":\"/m\",\"sha256\":\"" DIGEST "\",\"shadow\":\"1\"}}", "add.shadow: expects" },
    { "books", "{}", "switches: expects a list" },
    { "books", "{\"switches\":[]}", "switches: expects a list" },
    { "books", "{\"switches\":[2]}", "switches[0]: expects an object" },
    { "books", "{\"switches\":[{\"to\":0,\"at_ms\":1}]}", "switches[0].to" },
    { "books", "{\"switches\":[{\"to\":1000000000,\"at_ms\":1}]}", "switches[0].to" },
    { "books", "{\"switches\":[{\"to\":99999999999999999999,\"at_ms\":1}]}", "switches[0].to" },
    { "books", "{\"switches\":[{\"to\":2.5,\"at_ms\":1}]}", "switches[0].to" },
    { "books", "{\"switches\":[{\"to\":2}]}", "switches[0].at_ms" },
    { "books", "{\"switches\":[{\"to\":2,\"at_ms\":-1}]}", "switches[0].at_ms" },
    { "books", "{\"switches\":[{\"to\":2,\"at_ms\":2},{\"to\":1,\"at_ms\":1}]}", "switches[1].at_ms: is before" },
    { "books", "{\"switches\":[{\"to\":2,\"at_ms\":2,\"by\":\"me\"}]}", "no member \"by\"" },
    { "books", "{\"retire\":true}", "no member \"retire\"" },
  };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct model_change change = { .generation = 77 };
    err_code_t err = decode(rows[i].key, rows[i].value, &change);
    if (!rows[i].says) {
      assert_ok(err);
      continue;
    }
    if (err_class(err) != ERR_CLASS_REJECT || !strstr(err_message(), rows[i].says))
      fail_msg("%s %s: \"%s\", not \"%s\"", rows[i].key, rows[i].value, err == ERR_OK ? "accepted" : err_message(),
               rows[i].says);
    assert_int_equal(change.generation, 77);
  }
}

static void a_history_has_at_most_64_switches(void **state)
{
  static char value[MODEL_SWITCHES_MAX * 32 + 64];
  struct model_change change;

  (void)state;
  for (size_t n = MODEL_SWITCHES_MAX; n <= MODEL_SWITCHES_MAX + 1; n++) {
    size_t used = (size_t)snprintf(value, sizeof value, "{\"switches\":[");
    for (size_t i = 0; i < n; i++)
      used += (size_t)snprintf(value + used, sizeof value - used, "%s{\"to\":2,\"at_ms\":1}", i ? "," : "");
    snprintf(value + used, sizeof value - used, "]}");
    assert_int_equal(decode("books", value, &change), n <= MODEL_SWITCHES_MAX ? ERR_OK : ERR_ITEM);
  }
}

static void what_is_written_is_read_again(void **state)
{
  static const struct model_switch switches[] = { { 2, 1700000000000 }, { 1, INT64_MAX } };
  struct model_change change = { .kind = MODEL_SWITCHES, .switches = switches, .n_switches = 2 }, again;
  struct span text;

  (void)state;
  region_reset(&region);
  assert_ok(model_record_encode(&change, &region, &text));
  assert_ok(model_record_decode(span_of_str("books"), true, text, &region, &again));
  assert_int_equal(again.n_switches, 2);
  assert_memory_equal(again.switches, switches, sizeof switches);

  change = (struct model_change){ .kind = MODEL_ADD,
                                  .path = span_of_str("/a \"b\"/\xc3\xa9"),
                                  .digest = span_of_str(DIGEST),
                                  .derives_from = 2,
                                  .shadow = 0.05 };
  assert_ok(model_record_encode(&change, &region, &text));
  assert_ok(model_record_decode(span_of_str("books@3"), true, text, &region, &again));
  assert_true(span_equal(again.path, change.path));
  assert_true(span_equal(again.digest, change.digest));
  assert_int_equal(again.derives_from, 2);
  assert_float_equal(again.shadow, 0.05, 1e-12);
  assert_non_null(memmem(text.p, text.n, "\"shadow\": 0.05", 14));

  change = (struct model_change){
    .kind = MODEL_ADD, .is_in_topic = true, .n_bytes = MODEL_FILE_BYTES_MAX, .digest = span_of_str(DIGEST)
  };
  assert_ok(model_record_encode(&change, &region, &text));
  assert_ok(model_record_decode(span_of_str("books@3"), true, text, &region, &again));
  assert_true(again.is_in_topic);
  assert_int_equal(again.n_bytes, MODEL_FILE_BYTES_MAX);
  assert_true(span_equal(again.digest, change.digest));

  change = (struct model_change){ .kind = MODEL_RETIRE, .derives_from = 2 };
  assert_ok(model_record_encode(&change, &region, &text));
  assert_ok(model_record_decode(span_of_str("books@3"), true, text, &region, &again));
  assert_int_equal(again.kind, MODEL_RETIRE);
  assert_int_equal(again.derives_from, 2);
  region_fini(&region);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_kind_of_record_is_read),
    cmocka_unit_test(a_file_may_be_in_the_topic),
    cmocka_unit_test(a_record_that_makes_no_sense_is_refused_with_the_place),
    cmocka_unit_test(a_history_has_at_most_64_switches),
    cmocka_unit_test(what_is_written_is_read_again),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
