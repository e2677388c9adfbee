/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the table of settings: its default, its bounds, and values that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/config_fixture.h"

/* Make a valid file in which one setting has this value. */
static void file_with(const struct setting *s, const char *value, char *out)
{
  char word[SETTING_PATH_BYTES];
  char *dot;

  snprintf(word, sizeof word, "%s", s->path);
  dot = strchr(word, '.');
  if (strcmp(s->path, "store.path") == 0) {
    sprintf(out, "store: {path: %s}\n" KAFKA SPACES, value);
  } else if (strcmp(s->path, "spaces.NAME.model") == 0) {
    sprintf(out, "spaces: {books: {model: %s}}\n" KAFKA STORE, value);
  } else if (strcmp(s->path, "catalogue.shard.index") == 0) {
    sprintf(out, "catalogue: {shard: {index: %s, of: 1024}}\n" KAFKA STORE SPACES, value);
  } else if (strcmp(s->path, "catalogue.delete_expired_after_s") == 0) {
    sprintf(out, "catalogue: {expires: ends, delete_expired_after_s: %s}\nattributes: {ends: time}\n" REST, value);
  } else if (setting_is_in_space(s)) {
    sprintf(out, "spaces: {books: {model: m.safetensors, %s: %s}}\n" KAFKA STORE, strrchr(s->path, '.') + 1, value);
  } else {
    *dot = '\0';
    sprintf(out, "%s: {%s: %s}\n" REST, word, dot + 1, value);
  }
}

static void an_absent_setting_has_its_default(void **state)
{
  struct config *c = open_text(REST);

  (void)state;
  assert_string_equal(c->path, path);
  assert_string_equal(c->catalogue.topic, "sluice.catalogue");
  assert_string_equal(c->catalogue.dead_letter_topic, "sluice.dead-letters");
  assert_int_equal(c->catalogue.max_items, 1000000);
  assert_int_equal(c->catalogue.publish_interval_ms, 10);
  assert_int_equal(c->catalogue.batch_items, 10000);
  assert_false(c->catalogue.stops_on_discontinuity);
  assert_int_equal(c->catalogue.partitions_refresh_ms, 30000);
  assert_int_equal(c->catalogue.kafka.n, 0);
  assert_string_equal(c->query.topic, "sluice.queries");
  assert_string_equal(c->query.group, "sluice");
  assert_string_equal(c->query.answer_topic, "sluice.answers");
  assert_int_equal(c->query.batch_size, 32);
  assert_int_equal(c->query.batch_time_ms, 50);
  assert_int_equal(c->query.memory_bytes, 256 << 20);
  assert_int_equal(c->query.max_k, 10000);
  assert_int_equal(c->query.workers, 0);
  assert_int_equal(c->query.threads_per_search, 0);
  assert_int_equal(c->query.at_least_timeout_ms, 5000);
  assert_int_equal(c->spaces[0].dim, 0);
  assert_true(c->spaces[0].has_cells);
  assert_int_equal(c->spaces[0].weight, 1);
  assert_int_equal(c->query.kafka.n, 0);
  assert_int_equal(c->query.answer_kafka.n, 0);
  assert_int_equal(c->isa, N_ISAS);
  assert_string_equal(c->http.listen, "127.0.0.1:8321");
  assert_false(c->embedded_broker.is_enabled);
  assert_int_equal(c->embedded_broker.partitions, 4);
  assert_int_equal(c->log_level, LOG_LEVEL_INFO);
  config_close(&c);
  assert_null(c);
}

static void empty_sections_are_the_same_as_absent_ones(void **state)
{
  struct config *c = open_text("catalogue:\nquery: {}\nlog: ~\nembedded_broker: null\n" REST);

  (void)state;
  assert_int_equal(c->query.batch_size, 32);
  config_close(&c);
}

static void numbers_are_taken_at_their_bounds_and_refused_beyond(void **state)
{
  char text[TEXT_BYTES], value[32], range[64];
  int n_tried = 0;

  (void)state;
  for (size_t i = 0; i < n_settings; i++) {
    const struct setting *s = &settings[i];
    if (s->type != SETTING_NUMBER)
      continue;
    char shown[128];
    snprintf(shown, sizeof shown, "%s%s", setting_is_in_space(s) ? "spaces.books." : "",
             setting_is_in_space(s) ? s->path + strlen("spaces.NAME.") : s->path);
    const uint64_t good[] = { s->min, s->max };
    for (size_t j = 0; j < 2; j++) {
      snprintf(value, sizeof value, "%llu", (unsigned long long)good[j]);
      file_with(s, value, text);
      struct config *c = open_text(text);
      assert_int_equal(*(uint64_t *)field_of(c, s), good[j]);
      config_close(&c);
    }
    snprintf(range, sizeof range, "%llu to %llu", (unsigned long long)s->min, (unsigned long long)s->max);
    snprintf(value, sizeof value, "%llu", (unsigned long long)s->max + 1);
    const char *bad[] = { value, "-1", "0x10", "1.5", "ten", "18446744073709551616", "1e3", "' 7'", "true" };
    for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
      file_with(s, bad[j], text);
      assert_refused(text, 1, shown, range);
    }
    if (s->min > 0) {
      snprintf(value, sizeof value, "%llu", (unsigned long long)s->min - 1);
      file_with(s, value, text);
      assert_refused(text, 1, shown, range);
    }
    n_tried++;
  }
  assert_true(n_tried >= 15); /* else the loop has tested nothing */
}

static void strings_are_taken_at_their_longest_and_refused_beyond(void **state)
{
  char text[TEXT_BYTES], value[TEXT_BYTES / 2 + 16];
  const struct {
    const char *path;
    size_t max;
  } rows[] = { { "catalogue.topic", 249 },    { "catalogue.dead_letter_topic", 249 }, { "query.topic", 249 },
               { "query.answer_topic", 249 }, { "query.group", 255 },                 { "store.path", 4000 },
               { "spaces.NAME.model", 4000 } };

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct setting *s = &settings[settings_find(rows[i].path)];
    memset(value, 'a', rows[i].max);
    value[0] = '/'; /* an absolute path is kept as it is */
    if (s->type == SETTING_TOPIC)
      value[0] = 'a';
    value[rows[i].max] = '\0';
    file_with(s, value, text);
    struct config *c = open_text(text);
    assert_string_equal(*(char **)field_of(c, s), value);
    config_close(&c);
    strcpy(value + rows[i].max, "a");
    file_with(s, value, text);
    assert_refused(text, 1, s->type == SETTING_PATH ? "expects a string" : s->path, "expects");
    file_with(s, "''", text);
    assert_refused(text, 1, "expects", "");
    file_with(s, "\"a\\u0001b\"", text);
    assert_refused(text, 1, "expects", "");
    file_with(s, "\"a\\0b\"", text);
    assert_refused(text, 1, "expects", "");
  }
}

static void topics_have_the_characters_that_kafka_allows(void **state)
{
  (void)state;
  struct config *c = open_text("query: {topic: A.z_0-9}\n" REST);
  assert_string_equal(c->query.topic, "A.z_0-9");
  config_close(&c);
  assert_refused("query: {topic: .}\n" REST, 1, "query.topic", "topic");
  assert_refused("query: {topic: ..}\n" REST, 1, "query.topic", "topic");
  assert_refused("query: {topic: a b}\n" REST, 1, "query.topic", "A-Z a-z 0-9 . _ -");
  assert_refused("query: {topic: a/b}\n" REST, 1, "query.topic", "\"a/b\"");
  assert_refused("query: {topic: \xc3\xa4}\n" REST, 1, "query.topic", "\\xc3\\xa4");
}

static void no_two_roles_share_a_topic(void **state)
{
  (void)state;
  assert_refused("query:\n  topic: a\n  answer_topic: a\n" REST, 3, "query.topic", "query.answer_topic");
  assert_refused("query:\n  topic: sluice.catalogue\n" REST, 2, "catalogue.topic", "query.topic");
  assert_refused("query:\n  answer_topic: x\ncatalogue:\n  dead_letter_topic: x\n" REST, 4, "same topic", "x");
  assert_refused("seen:\n  topic: sluice.queries\n" REST, 2, "seen.topic", "query.topic");
  assert_refused("models:\n  topic: m\n  shadow_topic: m\n" REST, 3, "models.topic", "models.shadow_topic");
  assert_refused("seen:\n  topic: a b\n" REST, 2, "seen.topic", "A-Z a-z 0-9 . _ -");
}

static void the_two_groups_are_not_the_same(void **state)
{
  (void)state;
  assert_refused("query:\n  group: sluice-catalogue\n" REST, 2, "catalogue.group and query.group", "sluice-catalogue");
  assert_refused("query:\n  group: g\ncatalogue:\n  group: g\n" REST, 4, "catalogue.group and query.group", "");
  assert_refused("catalogue:\n  group: g\nquery:\n  group: g\n" REST, 4, "catalogue.group and query.group", "");
  struct config *c = open_text("catalogue: {group: g, commit_interval_ms: 0}\nquery: {group: g}\n" REST);
  config_close(&c);
}

static void files_and_comparisons_need_the_topic_that_asks_for_them(void **state)
{
  (void)state;
  assert_refused("models:\n  files_topic: f\n" REST, 2, "models.files_topic is set, but models.topic", "");
  assert_refused("models:\n  shadow_topic: c\n" REST, 2, "models.shadow_topic is set, but models.topic", "");
  struct config *c = open_text("models:\n  topic: m\n  shadow_topic: c\n" REST);
  assert_string_equal(c->models.shadow_topic, "c");
  config_close(&c);
}

static void each_of_two_words_has_its_value(void **state)
{
  static const struct {
    const char *before, *no, *yes; /* parts of the file */
    size_t offset;
  } cases[] = {
    { "catalogue: {on_discontinuity: ", "rebuild}\n", "stop}\n",
      offsetof(struct config, catalogue.stops_on_discontinuity) },
    { "catalogue: {on_damage: ", "wait}\n", "stop}\n", offsetof(struct config, catalogue.stops_on_damage) },
    { "catalogue: {framing: ", "none}\n", "confluent}\n", offsetof(struct config, catalogue.is_framed) },
    { "catalogue: {format: json, mapping: {vectors: {books: v}, envelope: ", "none}}\n", "debezium}}\n",
      offsetof(struct config, catalogue.mapping.is_debezium) },
    { "query: {start: ", "earliest}\n", "latest}\n", offsetof(struct config, query.starts_at_latest) },
    { "merge: {delivery: ", "at_least_once}\n", "exactly_once}\n", offsetof(struct config, merge.is_exactly_once) },
  };
  char text[TEXT_BYTES];
  size_t n = 0;

  (void)state;
  for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
    snprintf(text, sizeof text, "%s%s" REST, cases[i / 2].before, i % 2 ? cases[i / 2].yes : cases[i / 2].no);
    struct config *c = open_text(text);
    assert_int_equal(*(const bool *)((const char *)c + cases[i / 2].offset), i % 2);
    config_close(&c);
  }
  for (size_t i = 0; i < n_settings; i++)
    n += settings[i].type == SETTING_EITHER;
  assert_int_equal(n, sizeof cases / sizeof cases[0]);
}

static void choices_are_words_of_their_list(void **state)
{
  char text[TEXT_BYTES];

  (void)state;
  for (int i = 0; i <= N_ISAS; i++) {
    file_with(&settings[settings_find("kernels.isa")], i < N_ISAS ? isa_name((enum isa)i) : "auto", text);
    struct config *c = open_text(text);
    assert_int_equal(c->isa, i);
    config_close(&c);
  }
  const char *backends[] = { "cpu", "cuda", "auto" };
  for (size_t i = 0; i < 3; i++) {
    file_with(&settings[settings_find("engine.backend")], backends[i], text);
    struct config *c = open_text(text);
    assert_int_equal(c->backend, i);
    config_close(&c);
  }
  const char *levels[] = { "error", "warn", "info", "debug" };
  for (size_t i = 0; i < 4; i++) {
    file_with(&settings[settings_find("log.level")], levels[i], text);
    struct config *c = open_text(text);
    assert_int_equal(c->log_level, i);
    config_close(&c);
  }
  assert_refused("kernels: {isa: sse}\n" REST, 1, "kernels.isa", "`avx512`");
  assert_refused("engine: {backend: gpu}\n" REST, 1, "engine.backend", "`cuda`");
  assert_refused("log: {level: Info}\n" REST, 1, "log.level", "`debug`");
  assert_refused("log: {level: warning}\n" REST, 1, "log.level", "`warn`");
  assert_refused("log: {level: inf}\n" REST, 1, "log.level", "`info`");
  assert_refused("catalogue: {on_discontinuity: ''}\n" REST, 1, "on_discontinuity", "`rebuild`");
  assert_refused("log: {level: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}\n" REST, 1, "log.level", "");
}

static void a_listening_address_is_numeric_with_a_port(void **state)
{
  const char *good[] = { "127.0.0.1:1", "0.0.0.0:65535", "'[::1]:8321'", "'[::]:80'" };
  const char *bad[] = { "localhost:80",  "127.0.0.1",     "'127.0.0.1:'", "127.0.0.1:0",  "127.0.0.1:65536", "':80'",
                        "'[::1]'",       "'::1:80'",      "'[]:80'",     "'[:80'",       "256.0.0.1:1",     "'[::1:80'",
                        "'127.0.0.1:+1'", "'[127.0.0.1]:1'", "'x]:1'" };
  char text[TEXT_BYTES];
  const struct setting *s = &settings[settings_find("http.listen")];

  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    file_with(s, good[i], text);
    struct config *c = open_text(text);
    assert_true(strstr(good[i], c->http.listen) != NULL);
    config_close(&c);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    file_with(s, bad[i], text);
    assert_refused(text, 1, "http.listen", "numeric address");
  }
}

static void a_url_has_a_path_and_no_secrets(void **state)
{
  const char *good[] = { "http://127.0.0.1:4318/v1/traces", "https://collector.example.org/v1/traces",
                         "'http://[::1]:4318/v1/traces'" };
  const char *bad[] = { "ftp://127.0.0.1/v1/traces",
                        "127.0.0.1:4318/v1/traces",
                        "/v1/traces",
                        "http://",
                        "http://127.0.0.1:4318",
                        "http://127.0.0.1:4318/",
                        "http://127.0.0.1:99999/v1/traces",
                        "http://me@127.0.0.1/v1/traces",
                        "http://me:secret@127.0.0.1/v1/traces",
                        "http://127.0.0.1/v1/traces?key=secret",
                        "'http://127.0.0.1/v1/traces#here'",
                        "'http://127.0.0.1/v1/ traces'" };
  char text[TEXT_BYTES];
  const struct setting *s = &settings[settings_find("tracing.endpoint")];

  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    file_with(s, good[i], text);
    struct config *c = open_text(text);
    assert_true(strstr(good[i], c->tracing.endpoint) != NULL);
    config_close(&c);
  }
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    file_with(s, bad[i], text);
    assert_refused(text, 1, "tracing.endpoint", "a URL such as");
  }
}

static void booleans_are_true_or_false(void **state)
{
  (void)state;
  struct config *c = open_text("embedded_broker: {enabled: true, partitions: 7}\n" STORE SPACES);
  assert_true(c->embedded_broker.is_enabled);
  assert_int_equal(c->embedded_broker.partitions, 7);
  config_close(&c);
  assert_refused("embedded_broker: {enabled: yes}\n" REST, 1, "embedded_broker.enabled", "true or false");
  assert_refused("embedded_broker: {enabled: 1}\n" REST, 1, "embedded_broker.enabled", "true or false");
}

static void a_shard_is_one_of_several(void **state)
{
  (void)state;
  struct config *c = open_text("catalogue: {shard: {index: 3, of: 4}}\n" REST);
  assert_int_equal(c->catalogue.shard, 3);
  assert_int_equal(c->catalogue.n_shards, 4);
  config_close(&c);
  assert_refused("catalogue: {shard: {index: 4, of: 4}}\n" REST, 1, "catalogue.shard.index", "the last is 3");
  assert_refused("catalogue: {shard: {index: 1}}\n" REST, 1, "catalogue.shard.index", "how many shards");
  assert_refused("catalogue: {shard: {of: 4}}\ncanary: {interval_ms: 9}\n" REST, 2, "canary.interval_ms", "shard");
}

static void the_role_merge_needs_neither_store_nor_spaces(void **state)
{
  (void)state;
  struct config *c = open_text("role: merge\n" KAFKA);
  assert_int_equal(c->role, CONFIG_ROLE_MERGE);
  assert_true(c->merge.is_exactly_once);
  config_close(&c);
  assert_refused("role: merge\ncatalogue: {shard: {index: 0, of: 4}}\n" KAFKA, 2, "catalogue.shard", "no catalogue");
  assert_refused("role: merge\nembedded_broker: {enabled: true}\n", 2, "embedded broker", "kafka.bootstrap.servers");
  assert_refused("role: merge\nquery: {kafka: {isolation.level: read_uncommitted}}\n" KAFKA, 2, "isolation.level",
                 "committed parts");
  assert_refused("role: both\n" REST, 1, "role", "merge");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_absent_setting_has_its_default),
    cmocka_unit_test(a_shard_is_one_of_several),
    cmocka_unit_test(the_role_merge_needs_neither_store_nor_spaces),
    cmocka_unit_test(empty_sections_are_the_same_as_absent_ones),
    cmocka_unit_test(numbers_are_taken_at_their_bounds_and_refused_beyond),
    cmocka_unit_test(strings_are_taken_at_their_longest_and_refused_beyond),
    cmocka_unit_test(topics_have_the_characters_that_kafka_allows),
    cmocka_unit_test(no_two_roles_share_a_topic),
    cmocka_unit_test(the_two_groups_are_not_the_same),
    cmocka_unit_test(files_and_comparisons_need_the_topic_that_asks_for_them),
    cmocka_unit_test(each_of_two_words_has_its_value),
    cmocka_unit_test(choices_are_words_of_their_list),
    cmocka_unit_test(a_listening_address_is_numeric_with_a_port),
    cmocka_unit_test(a_url_has_a_path_and_no_secrets),
    cmocka_unit_test(booleans_are_true_or_false),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
