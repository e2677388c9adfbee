/* SPDX-License-Identifier: Apache-2.0 */
/* The file as a whole: lists and spaces, paths, comparing two files, and reporting mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/config_fixture.h"

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
  const char *const never[] = { "http://y.org", "*.org", "a b", "y.org/status", "[y.org]", "y.org:port", ":80", "y,z" };
  for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
    char text[256];
    snprintf(text, sizeof text, "http:\n  hosts:\n    - '%s'\n" REST, never[i]);
    assert_refused(text, 3, "http.hosts expects names such as sluice.example.org", never[i]);
  }
  c = open_text("http: {hosts: [a.example., 'a_b-c:8080', 10.0.0.1, '::1', '[::1]:80']}\n" REST);
  assert_int_equal(c->http.hosts.n, 5);
  config_close(&c);
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_mistakes_are_reported_at_once),
    cmocka_unit_test(problems_beyond_the_first_twenty_are_counted),
    cmocka_unit_test(a_list_is_kept_in_the_order_of_the_file),
    cmocka_unit_test(patterns_of_topics_are_a_list_or_one_string),
    cmocka_unit_test(two_configurations_are_compared_by_value),
    cmocka_unit_test(a_later_error_can_name_the_line_of_its_setting),
    cmocka_unit_test(a_missing_required_setting_is_named),
    cmocka_unit_test(the_embedded_broker_takes_no_other_address),
    cmocka_unit_test(spaces_are_kept_in_the_order_of_the_file),
    cmocka_unit_test(relative_paths_start_where_the_file_is),
    cmocka_unit_test(an_unreadable_file_is_an_error),
  };

  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
