/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the configuration: every row of the table at its bounds, and every kind of mistake with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/item.h"
#include "daemon/config/config.h"
#include "daemon/config/config_settings.h"
#include "tests/support/dice.h"

#ifndef SLUICE_SOURCE_DIR
#define SLUICE_SOURCE_DIR "."
#endif

/* The required settings. A valid file is these, after lines with the settings under test. */
#define KAFKA  "kafka: {bootstrap.servers: 'h:1'}\n"
#define STORE  "store: {path: s}\n"
#define SPACES "spaces: {books: {model: m.safetensors}}\n"
#define REST   KAFKA STORE SPACES

enum { FUZZ_ROUNDS = 1000, TEXT_BYTES = 8192 };

static char directory[] = "/tmp/sluice-config-XXXXXX";
static char path[64];

static void write_bytes(const void *bytes, size_t n)
{
  FILE *file = fopen(path, "w");

  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  fclose(file);
}

static struct config *open_text(const char *text)
{
  struct config *c = NULL;

  write_bytes(text, strlen(text));
  if (config_open(path, &c) != ERR_OK)
    fail_msg("refused: %s\n%s", err_message(), text);
  return c;
}

/* Verify that the file is refused. The message must begin with "path:line:" (line 0: "path:") and have both words. */
static void assert_refused(const char *text, int line, const char *word, const char *other_word)
{
  struct config *c = NULL;
  char prefix[128];

  write_bytes(text, strlen(text));
  if (config_open(path, &c) != ERR_CONFIG)
    fail_msg("not refused:\n%s", text);
  assert_null(c);
  if (line)
    snprintf(prefix, sizeof prefix, "%s:%d: ", path, line);
  else
    snprintf(prefix, sizeof prefix, "%s: ", path);
  if (strncmp(err_message(), prefix, strlen(prefix)) != 0 || !strstr(err_message(), word) ||
      !strstr(err_message(), other_word))
    fail_msg("expected %s...%s...%s, got: %s", prefix, word, other_word, err_message());
}

static void *field_of(struct config *c, const struct setting *s)
{
  return setting_is_in_space(s) ? (char *)&c->spaces[0] + s->offset : (char *)c + s->offset;
}

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
  } else if (setting_is_in_space(s)) {
    sprintf(out, "spaces: {books: {model: m.safetensors, %s: %s}}\n" KAFKA STORE, strrchr(s->path, '.') + 1, value);
  } else {
    *dot = '\0';
    sprintf(out, "%s: {%s: %s}\n" REST, word, dot + 1, value);
  }
}

static void all_mistakes_are_reported_at_once(void **state)
{
  static const char text[] = "catalogue: {max_item: 5, publish_interval_ms: 0, kafka: {enable.auto.commit: true}}\n"
                             "query: {max_k: many}\n"
                             "http: {hosts: [good.example, [bad]]}\n"
                             "kafka: {bootstrap.servers: 'h:1', nonsense: 1}\n"
                             "spaces:\n  a: {}\n  'b b': {model: m}\n  c: {model: c.safetensors}\n";
  static const char *const expected[] = {
    ":1: there is no setting \"catalogue.max_item\"; the nearest is catalogue.max_items",
    ":1: catalogue.publish_interval_ms expects a whole number from 1 to 10000",
    ":1: catalogue.kafka: enable.auto.commit",
    ":2: query.max_k expects a whole number",
    ":3: http.hosts expects a list of strings",
    ":4: kafka: librdkafka has no property \"nonsense\"",
    ":6: spaces.a.model is missing",
    ":7: spaces expects the name of a space",
    ": store.path is missing",
  };
  enum { N_EXPECTED = sizeof expected / sizeof expected[0] };
  struct problems problems = { 0 };
  struct config *c = NULL;

  (void)state;
  write_bytes(text, strlen(text));
  assert_int_equal(config_read(path, &problems, &c), ERR_OK);
  for (size_t i = 0; i < N_EXPECTED && i < problems.n; i++) {
    if (strncmp(problems.items[i], path, strlen(path)) != 0 || !strstr(problems.items[i], expected[i]))
      fail_msg("expected %s...%s, got: %s", path, expected[i], problems.items[i]);
  }
  assert_int_equal(problems.n, N_EXPECTED);
  assert_int_equal(c->n_spaces, 2); /* so that their models can be checked */
  assert_non_null(strstr(c->spaces[1].model_path, "c.safetensors"));
  assert_int_equal(problems_verify(&problems), ERR_CONFIG);
  for (size_t i = 0; i < N_EXPECTED; i++)
    assert_non_null(strstr(err_message(), expected[i]));
  problems_fini(&problems);
  config_close(&c);
}

static void problems_beyond_the_first_twenty_are_counted(void **state)
{
  struct problems problems = { 0 };
  struct config *c = NULL;
  char text[TEXT_BYTES] = REST;

  (void)state;
  for (int i = 0; i < PROBLEMS_MAX + 3; i++)
    sprintf(text + strlen(text), "unknown%d: 1\n", i);
  write_bytes(text, strlen(text));
  assert_int_equal(config_read(path, &problems, &c), ERR_OK);
  assert_int_equal(problems.n, PROBLEMS_MAX);
  assert_int_equal(problems.n_more, 3);
  assert_int_equal(problems_verify(&problems), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "\nand "));
  assert_non_null(strstr(err_message(), " more"));
  problems_fini(&problems);
  config_close(&c);
}

static void a_list_is_kept_in_the_order_of_the_file(void **state)
{
  struct config *c = open_text("http: {hosts: [a.example, \"b\"]}\n" REST);

  (void)state;
  assert_int_equal(c->http.hosts.n, 2);
  assert_string_equal(c->http.hosts.items[0], "a.example");
  assert_string_equal(c->http.hosts.items[1], "b");
  config_close(&c);
  c = open_text("http: {hosts: []}\n" REST);
  assert_int_equal(c->http.hosts.n, 0);
  config_close(&c);
  c = open_text("http: {hosts: }\n" REST);
  assert_int_equal(c->http.hosts.n, 0);
  config_close(&c);
  assert_refused("http: {hosts: a.example}\n" REST, 1, "http.hosts expects a list", "[one, two]");
  assert_refused("http:\n  hosts:\n    - a\n    - ''\n" REST, 4, "http.hosts expects a string of 1 to 253 bytes", "");
  assert_refused("http: {hosts: {a: b}}\n" REST, 1, "http.hosts expects a list", "");
}

static void patterns_of_topics_are_a_list_or_one_string(void **state)
{
  struct config *c = open_text(REST);

  (void)state;
  assert_int_equal(c->query.reply_topics.n, 0); /* none by default */
  config_close(&c);
  c = open_text("query: {reply_topics: [team-a.*, \"replies.?\", one]}\n" REST);
  assert_int_equal(c->query.reply_topics.n, 3);
  assert_string_equal(c->query.reply_topics.items[0], "team-a.*");
  assert_string_equal(c->query.reply_topics.items[1], "replies.?");
  assert_string_equal(c->query.reply_topics.items[2], "one");
  config_close(&c);
  c = open_text("query: {reply_topics: team-a.*}\n" REST);
  assert_int_equal(c->query.reply_topics.n, 1);
  assert_string_equal(c->query.reply_topics.items[0], "team-a.*");
  config_close(&c);
  assert_refused("query:\n  reply_topics:\n    - a\n    - 'b c'\n" REST, 4, "query.reply_topics expects topics", "b c");
  assert_refused("query: {reply_topics: ['']}\n" REST, 1, "query.reply_topics expects topics", "wildcards");
  assert_refused("query: {reply_topics: {a: b}}\n" REST, 1, "query.reply_topics expects a list", "");
}

static void join_name(void *context, const char *setting)
{
  char *text = context;

  sprintf(text + strlen(text), "%s ", setting);
}

static void two_configurations_are_compared_by_value(void **state)
{
  static const char first[] = "log: {level: info}\nquery: {max_k: 1000}\nhttp: {hosts: [a]}\n"
                              "catalogue: {kafka: {fetch.wait.max.ms: 5}}\n" KAFKA STORE
                              "spaces: {one: {model: m}, two: {model: m}, three: {model: m, dim: 3}}\n";
  static const char second[] = "log: {level: debug}\nquery: {max_k: 01000, group: g}\nhttp: {hosts: [a, b]}\n"
                               "catalogue: {kafka: {fetch.wait.max.ms: 6}}\nengine: {backend: auto}\n" KAFKA STORE
                               "spaces: {three: {model: m, dim: 4}, one: {model: m}, four: {model: m}}\n";
  char text[TEXT_BYTES] = "";
  struct config *a = open_text(first), *b = open_text(second);

  (void)state;
  config_compare(a, a, join_name, text);
  assert_string_equal(text, "");
  config_compare(a, b, join_name, text);
  assert_string_equal(text, "catalogue.kafka query.group http.hosts log.level spaces.two spaces.three spaces.four ");
  config_close(&a);
  config_close(&b);
}

static void a_later_error_can_name_the_line_of_its_setting(void **state)
{
  struct config *c = open_text("query: {max_k: 10}\nspaces:\n  a: {model: m}\n" KAFKA STORE);
  char expected[128];

  (void)state;
  assert_int_equal(config_blame(c, "query.max_k", err_set(ERR_CONFIG, "f", 1, "too many")), ERR_CONFIG);
  snprintf(expected, sizeof expected, "%s:1: too many", path);
  assert_string_equal(err_message(), expected);
  assert_int_equal(config_blame(c, "catalogue.max_items", err_set(ERR_CONFIG, "f", 1, "too many")), ERR_CONFIG);
  snprintf(expected, sizeof expected, "%s: too many", path);
  assert_string_equal(err_message(), expected);
  assert_int_equal(config_blame_space(c, 0, err_set(ERR_MODEL, "f", 1, "no model")), ERR_MODEL);
  snprintf(expected, sizeof expected, "%s:3: spaces.a: no model", path);
  assert_string_equal(err_message(), expected);
  config_close(&c);
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
  assert_int_equal(c->query.batch_wait_us, 500);
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
  assert_true(c->is_isa_auto);
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
}

static void choices_are_words_of_their_list(void **state)
{
  (void)state;
  const struct {
    const char *text;
    bool is_auto;
    enum isa isa;
  } isas[] = { { "auto", true, ISA_REF }, { "ref", false, ISA_REF }, { "avx2", false, ISA_AVX2 },
               { "avx512", false, ISA_AVX512 } };
  char text[TEXT_BYTES];

  for (size_t i = 0; i < 4; i++) {
    file_with(&settings[settings_find("kernels.isa")], isas[i].text, text);
    struct config *c = open_text(text);
    assert_int_equal(c->is_isa_auto, isas[i].is_auto);
    if (!isas[i].is_auto)
      assert_int_equal(c->isa, isas[i].isa);
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
  struct config *c = open_text("catalogue: {on_discontinuity: stop}\n" REST);
  assert_true(c->catalogue.stops_on_discontinuity);
  config_close(&c);
  c = open_text("catalogue: {on_discontinuity: rebuild}\n" REST);
  assert_false(c->catalogue.stops_on_discontinuity);
  config_close(&c);
  assert_refused("kernels: {isa: sse}\n" REST, 1, "kernels.isa", "`avx512`");
  assert_refused("engine: {backend: gpu}\n" REST, 1, "engine.backend", "`cuda`");
  assert_refused("log: {level: Info}\n" REST, 1, "log.level", "`debug`");
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

static void an_unknown_key_is_refused_with_the_nearest_one(void **state)
{
  (void)state;
  assert_refused("query:\n  batch_sise: 3\n" REST, 2, "query.batch_sise", "query.batch_size");
  assert_refused("query:\n  batch_items: 3\n" REST, 2, "query.batch_items", "catalogue.batch_items");
  assert_refused("max_k: 3\n" REST, 1, "\"max_k\"", "query.max_k");
  assert_refused(REST "catalog:\n  topic: x\n", 4, "\"catalog\"", "nearest is catalogue");
  assert_refused(REST "spaces2: {}\n", 4, "spaces2", "nearest is spaces");
  assert_refused(KAFKA STORE "spaces:\n  books:\n    model: m\n    modle: x\n", 6, "spaces.books.modle",
                 "spaces.NAME.model");
  assert_refused("<<: {query: {max_k: 1}}\n" REST, 1, "<<", "nearest");
}

static void a_long_key_is_refused_like_any_other(void **state)
{
  static char text[200000];
  size_t n = 0;

  (void)state;
  n += (size_t)sprintf(text, "query:\n  ");
  memset(text + n, 'k', 900);
  strcpy(text + n + 900, ": 1\n" REST);
  assert_refused(text, 2, "query.kkkk", "nearest is");
}

static void a_key_given_twice_is_refused_with_both_lines(void **state)
{
  (void)state;
  assert_refused("query:\n  max_k: 1\n  batch_size: 2\n  max_k: 1\n" REST, 4, "max_k", "line 2");
  assert_refused("query: {}\n" REST "query: {}\n", 5, "query", "line 1");
  assert_refused("kafka:\n  bootstrap.servers: a\n  bootstrap.servers: a\n" STORE SPACES, 3, "bootstrap.servers",
                 "line 2");
  assert_refused(KAFKA STORE "spaces:\n  a: {model: x}\n  a: {model: x}\n", 5, "\"a\"", "line 4");
}

static void wrong_types_are_refused(void **state)
{
  (void)state;
  assert_refused("query: 3\n" REST, 1, "query", "section");
  assert_refused("query: [1]\n" REST, 1, "query", "section");
  assert_refused("query:\n  max_k: [1]\n" REST, 2, "query.max_k", "not a list");
  assert_refused("query:\n  max_k: {a: 1}\n" REST, 2, "query.max_k", "not a map");
  assert_refused("query:\n  max_k:\n" REST, 2, "query.max_k", "no value");
  assert_refused("query:\n  kafka: 3\n" REST, 2, "query.kafka", "map of properties");
  assert_refused("query:\n  [a, b]: 3\n" REST, 2, "query", "not a string");
  assert_refused("? {a: b}\n: 3\n" REST, 1, "the file", "not a string");
  assert_refused("- a\n- b\n", 1, "map of sections", "");
  assert_refused("just text\n", 1, "map of sections", "");
  assert_refused(KAFKA STORE "spaces: books\n", 3, "spaces", "section");
  assert_refused(KAFKA STORE "spaces:\n  books: m.safetensors\n", 4, "spaces.books", "section");
  assert_refused("query: {\"\": 3}\n" REST, 1, "query", "empty");
  assert_refused("query: {\"a\\0b\": 3}\n" REST, 1, "query", "zero byte");
}

static void a_file_that_is_not_yaml_is_refused_with_its_line(void **state)
{
  (void)state;
  assert_refused(REST "query: {\n", 5, "not YAML", "");
  assert_refused("query:\n\tmax_k: 1\n" REST, 2, "not YAML", "");
  assert_refused(REST "query: *nobody\n", 4, "not YAML", "alias");
  assert_refused(REST "---\n" REST, 5, "second YAML document", "");
  assert_refused("\xff\xff\xff", 1, "not YAML", "");
}

static void a_missing_required_setting_is_named(void **state)
{
  (void)state;
  assert_refused("", 0, "store.path is missing", "");
  assert_refused("# nothing\n", 0, "store.path is missing", "");
  assert_refused(KAFKA SPACES, 0, "store.path is missing", "Directory");
  assert_refused(KAFKA STORE, 0, "no space", "model");
  assert_refused(KAFKA STORE "spaces: {}\n", 0, "no space", "model");
  assert_refused(KAFKA STORE "spaces:\n  books:\n", 4, "spaces.books.model", "missing");
  assert_refused(KAFKA STORE "spaces:\n  books: {}\n", 4, "spaces.books.model", "missing");
  assert_refused(STORE SPACES, 1, "bootstrap.servers", "embedded_broker.enabled");
  assert_refused("kafka: {client.id: x}\n" STORE SPACES, 1, "bootstrap.servers", "");
  assert_refused("kafka: {bootstrap.servers: ''}\n" STORE SPACES, 1, "bootstrap.servers", "");
}

static void the_embedded_broker_takes_no_other_address(void **state)
{
  (void)state;
  assert_refused("embedded_broker: {enabled: true}\n" REST, 2, "kafka", "choose one");
  assert_refused("embedded_broker: {enabled: true}\nquery:\n  answer_kafka:\n    metadata.broker.list: a\n" STORE
                 SPACES, 4, "query.answer_kafka", "choose one");
}

static void spaces_are_kept_in_the_order_of_the_file(void **state)
{
  char name[SPACE_NAME_MAX + 2];
  char text[TEXT_BYTES];

  (void)state;
  struct config *c = open_text(KAFKA STORE "spaces:\n  z.1: {model: a}\n  A_-9: {model: /b}\n");
  assert_int_equal(c->n_spaces, 2);
  assert_string_equal(c->spaces[0].name, "z.1");
  assert_string_equal(c->spaces[1].name, "A_-9");
  assert_string_equal(c->spaces[1].model_path, "/b");
  config_close(&c);

  memset(name, 'n', SPACE_NAME_MAX);
  name[SPACE_NAME_MAX] = '\0';
  snprintf(text, sizeof text, KAFKA STORE "spaces: {%s: {model: a}}\n", name);
  c = open_text(text);
  assert_string_equal(c->spaces[0].name, name);
  config_close(&c);
  name[SPACE_NAME_MAX] = 'n';
  name[SPACE_NAME_MAX + 1] = '\0';
  snprintf(text, sizeof text, KAFKA STORE "spaces: {%s: {model: a}}\n", name);
  assert_refused(text, 3, "name of a space", "64");
  assert_refused(KAFKA STORE "spaces: {a b: {model: a}}\n", 3, "name of a space", "\"a b\"");
}

static void relative_paths_start_where_the_file_is(void **state)
{
  char expected[128];

  (void)state;
  struct config *c = open_text(REST);
  snprintf(expected, sizeof expected, "%s/m.safetensors", directory);
  assert_string_equal(c->spaces[0].model_path, expected);
  snprintf(expected, sizeof expected, "%s/s", directory);
  assert_string_equal(c->store_path, expected);
  config_close(&c);

  write_bytes(REST, strlen(REST));
  assert_int_equal(chdir(directory), 0);
  if (config_open("c.yaml", &c) != ERR_OK)
    fail_msg("%s", err_message());
  assert_string_equal(c->store_path, "s");
  config_close(&c);
}

static void any_property_of_librdkafka_is_taken_as_it_is(void **state)
{
  (void)state;
  struct config *c = open_text("kafka:\n  bootstrap.servers: a:1,b:2\n  socket.timeout.ms: 1000\n  sasl.password: ''\n"
                               "catalogue: {kafka: {fetch.min.bytes: 7}}\n"
                               "query:\n  kafka: {check.crcs: true, isolation.level: read_uncommitted}\n"
                               "  answer_kafka: {batch.size: 100000, compression.codec: zstd}\n" STORE SPACES);
  assert_int_equal(c->kafka.n, 3);
  assert_string_equal(c->kafka.items[0].name, "bootstrap.servers");
  assert_string_equal(c->kafka.items[0].value, "a:1,b:2");
  assert_string_equal(c->kafka.items[1].value, "1000");
  assert_string_equal(c->kafka.items[2].value, "");
  assert_int_equal(c->catalogue.kafka.n, 1);
  assert_int_equal(c->query.kafka.n, 2);
  assert_string_equal(c->query.kafka.items[0].value, "true");
  assert_string_equal(c->query.answer_kafka.items[1].name, "compression.codec");
  config_close(&c);
}

static void properties_that_librdkafka_refuses_are_refused_with_its_reason(void **state)
{
  (void)state;
  assert_refused(STORE SPACES "kafka:\n  bootstrap.servers: a\n  linger.mss: 1\n", 5, "kafka", "linger.mss");
  assert_refused("query:\n  kafka:\n    fetch.wait.max.ms: soon\n" REST, 3, "query.kafka", "fetch.wait.max.ms");
  assert_refused("query:\n  answer_kafka:\n    linger.ms: 9000000\n" REST, 3, "query.answer_kafka", "range");
  assert_refused("query:\n  kafka:\n    error_cb: x\n" REST, 3, "query.kafka", "error_cb");
  assert_refused("query:\n  kafka:\n    ut_handle_ProduceResponse: x\n" REST, 3, "query.kafka", "no property");
  assert_refused("kafka:\n  bootstrap:\n    servers: x\n" STORE SPACES, 3, "bootstrap", "dots");
  assert_refused("kafka:\n  bootstrap.servers:\n" STORE SPACES, 2, "bootstrap.servers", "exactly one value");
  assert_refused("kafka:\n  client.id: \"a\\0b\"\n" STORE SPACES, 2, "client.id", "zero byte");
}

static void properties_that_sluice_sets_are_refused_with_the_reason(void **state)
{
  const char *everywhere[] = { "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "group.id",
                               "enable.partition.eof", "auto.commit.enable", "transactional.id",
                               "test.mock.num.brokers", "message.timeout.ms", "delivery.timeout.ms",
                               "delivery.report.only.error", "partition.assignment.strategy", "acks",
                               "request.required.acks", "retries", "message.send.max.retries", "enabled_events",
                               "enable.gapless.guarantee" };
  const char *maps[] = { "kafka:\n  %s: 1\n" STORE SPACES, "catalogue: {kafka: {\n %s: 1}}\n" REST,
                         "query: {kafka: {\n %s: 1}}\n" REST, "query: {answer_kafka: {\n %s: 1}}\n" REST };
  char text[TEXT_BYTES];

  (void)state;
  for (size_t i = 0; i < sizeof everywhere / sizeof everywhere[0]; i++) {
    for (size_t j = 0; j < 4; j++) {
      snprintf(text, sizeof text, maps[j], everywhere[i]);
      assert_refused(text, 2, everywhere[i], "must not be set");
    }
  }
  for (size_t j = 0; j < 2; j++) {
    snprintf(text, sizeof text, maps[j], "isolation.level");
    assert_refused(text, 2, "isolation.level", "committed");
  }
  assert_refused("query: {kafka: {group.id: x}}\n" REST, 1, "group.id", "query.group");
}

static void an_unreadable_file_is_an_error(void **state)
{
  struct config *c = NULL;
  static char big[(1 << 20) + 2];

  (void)state;
  assert_int_equal(config_open("/nowhere/sluice.yaml", &c), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "/nowhere/sluice.yaml"));
  assert_int_equal(config_open(directory, &c), ERR_CONFIG);
  memset(big, '#', sizeof big);
  write_bytes(big, sizeof big);
  assert_int_equal(config_open(path, &c), ERR_CONFIG);
  assert_non_null(strstr(err_message(), "larger than"));
  assert_null(c);
}

static void the_example_file_shows_every_default(void **state)
{
  struct config *example = NULL;
  struct config *least;

  (void)state;
  if (config_open(SLUICE_SOURCE_DIR "/systemd/sluice.example.yaml", &example) != ERR_OK)
    fail_msg("%s", err_message());
  least = open_text(REST);
  for (size_t i = 0; i < n_settings; i++) {
    const struct setting *s = &settings[i];
    if (!example->lines[i])
      fail_msg("systemd/sluice.example.yaml does not have %s", s->path);
    if (!s->default_text)
      continue;
    if (s->type == SETTING_NUMBER)
      assert_int_equal(*(uint64_t *)field_of(example, s), *(uint64_t *)field_of(least, s));
    else if (s->type == SETTING_TEXT || s->type == SETTING_TOPIC || s->type == SETTING_ADDRESS)
      assert_string_equal(*(char **)field_of(example, s), *(char **)field_of(least, s));
  }
  assert_true(example->is_isa_auto);
  assert_false(example->embedded_broker.is_enabled);
  assert_false(example->catalogue.stops_on_discontinuity);
  assert_int_equal(example->log_level, LOG_LEVEL_INFO);
  assert_string_equal(example->store_path, "/var/lib/sluice");
  config_close(&example);
  config_close(&least);
}

static char *read_all(const char *file_path, size_t *n)
{
  FILE *file = fopen(file_path, "r");
  char *text = calloc(1, 1 << 20);

  if (!file)
    fail_msg("%s cannot be read", file_path);
  *n = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  return text;
}

/* Return what config_print_reference() prints to standard output. */
static char *printed_reference(void)
{
  char *text;
  size_t n;
  FILE *kept = stdout;

  stdout = open_memstream(&text, &n);
  config_print_reference();
  fclose(stdout);
  stdout = kept;
  return text;
}

static void the_documentation_holds_the_reference(void **state)
{
  static const char begin[] = "<!-- settings -->\n";
  size_t n;
  char *docs = read_all(SLUICE_SOURCE_DIR "/docs/configuration.md", &n);
  char *reference = printed_reference();
  char *from = strstr(docs, begin);
  char *to = from ? strstr(from + strlen(begin), begin) : NULL;

  (void)state;
  if (!to)
    fail_msg("docs/configuration.md needs two marker lines: %s", begin);
  *to = '\0';
  if (strcmp(from + strlen(begin), reference) != 0)
    fail_msg("docs/configuration.md is out of date: copy the output of `sluicectl settings` between its markers");
  free(docs);
  free(reference);
}

static void the_example_in_the_documentation_loads(void **state)
{
  size_t n;
  char *docs = read_all(SLUICE_SOURCE_DIR "/docs/configuration.md", &n);
  char *at = docs;
  int n_examples = 0;

  (void)state;
  while ((at = strstr(at, "```yaml\n"))) {
    char *end = strstr(at + 8, "```");
    assert_non_null(end);
    *end = '\0';
    struct config *c = open_text(at + 8);
    config_close(&c);
    at = end + 1;
    n_examples++;
  }
  assert_true(n_examples > 0);
  free(docs);
}

/* Verify that a file of any bytes is either read or refused. */
static void try_bytes(const uint8_t *bytes, size_t n, int *n_read)
{
  struct config *c = NULL;

  write_bytes(bytes, n);
  err_code_t result = config_open(path, &c);
  assert_true(result == ERR_OK || result == ERR_CONFIG);
  assert_true((result == ERR_OK) == (c != NULL));
  *n_read += result == ERR_OK;
  config_close(&c);
}

static void any_bytes_are_read_or_refused(void **state)
{
  struct dice dice = { dice_seed() };
  static const char alphabet[] = "{}[]:,-#&*!|>'\"%@`? \n\tabkafkqueryspaces.0\\~<";
  size_t n_valid;
  char *valid = read_all(SLUICE_SOURCE_DIR "/systemd/sluice.example.yaml", &n_valid);
  uint8_t *bytes = malloc(n_valid + 64);
  int n_read = 0;

  (void)state;
  for (int round = 0; round < FUZZ_ROUNDS; round++) {
    size_t n = n_valid;
    memcpy(bytes, valid, n);
    if (round % 4 == 0) { /* random bytes only */
      n = dice_below(&dice, 200);
      for (size_t i = 0; i < n; i++)
        bytes[i] = round % 8 ? (uint8_t)dice_u64(&dice) : (uint8_t)alphabet[dice_below(&dice, sizeof alphabet - 1)];
    } else if (round % 4 == 1) { /* a piece cut out */
      size_t from = dice_below(&dice, n), length = dice_below(&dice, n - from) / 4;
      memmove(bytes + from, bytes + from + length, n - from - length);
      n -= length;
    } else { /* a few bytes changed */
      for (size_t i = 0, n_changes = 1 + dice_below(&dice, 4); i < n_changes; i++)
        bytes[dice_below(&dice, n)] = (uint8_t)alphabet[dice_below(&dice, sizeof alphabet - 1)];
    }
    try_bytes(bytes, n, &n_read);
  }
  assert_in_range(n_read, 1, FUZZ_ROUNDS - 1); /* a change within a comment is harmless */
  free(valid);
  free(bytes);
}

static void deep_nesting_is_refused(void **state)
{
  static char text[20000];
  const char *pieces[] = { "[", "{", "- ", "? ", "a:\n " };

  (void)state;
  for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
    size_t n = strlen(pieces[i]);
    int n_read = 0;
    for (size_t j = 0; j + n <= sizeof text; j += n)
      memcpy(text + j, pieces[i], n);
    try_bytes((const uint8_t *)text, sizeof text, &n_read);
    assert_int_equal(n_read, 0);
  }
}

static int make_directory(void **state)
{
  (void)state;
  if (!mkdtemp(directory))
    return -1;
  snprintf(path, sizeof path, "%s/c.yaml", directory);
  return 0;
}

static int remove_directory(void **state)
{
  (void)state;
  unlink(path);
  return rmdir(directory);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_mistakes_are_reported_at_once),
    cmocka_unit_test(problems_beyond_the_first_twenty_are_counted),
    cmocka_unit_test(a_list_is_kept_in_the_order_of_the_file),
    cmocka_unit_test(patterns_of_topics_are_a_list_or_one_string),
    cmocka_unit_test(two_configurations_are_compared_by_value),
    cmocka_unit_test(a_later_error_can_name_the_line_of_its_setting),
    cmocka_unit_test(an_absent_setting_has_its_default),
    cmocka_unit_test(empty_sections_are_the_same_as_absent_ones),
    cmocka_unit_test(numbers_are_taken_at_their_bounds_and_refused_beyond),
    cmocka_unit_test(strings_are_taken_at_their_longest_and_refused_beyond),
    cmocka_unit_test(topics_have_the_characters_that_kafka_allows),
    cmocka_unit_test(no_two_roles_share_a_topic),
    cmocka_unit_test(choices_are_words_of_their_list),
    cmocka_unit_test(a_listening_address_is_numeric_with_a_port),
    cmocka_unit_test(booleans_are_true_or_false),
    cmocka_unit_test(an_unknown_key_is_refused_with_the_nearest_one),
    cmocka_unit_test(a_long_key_is_refused_like_any_other),
    cmocka_unit_test(a_key_given_twice_is_refused_with_both_lines),
    cmocka_unit_test(wrong_types_are_refused),
    cmocka_unit_test(a_file_that_is_not_yaml_is_refused_with_its_line),
    cmocka_unit_test(a_missing_required_setting_is_named),
    cmocka_unit_test(the_embedded_broker_takes_no_other_address),
    cmocka_unit_test(spaces_are_kept_in_the_order_of_the_file),
    cmocka_unit_test(relative_paths_start_where_the_file_is),
    cmocka_unit_test(any_property_of_librdkafka_is_taken_as_it_is),
    cmocka_unit_test(properties_that_librdkafka_refuses_are_refused_with_its_reason),
    cmocka_unit_test(properties_that_sluice_sets_are_refused_with_the_reason),
    cmocka_unit_test(an_unreadable_file_is_an_error),
    cmocka_unit_test(the_example_file_shows_every_default),
    cmocka_unit_test(the_documentation_holds_the_reference),
    cmocka_unit_test(the_example_in_the_documentation_loads),
    cmocka_unit_test(any_bytes_are_read_or_refused),
    cmocka_unit_test(deep_nesting_is_refused),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
