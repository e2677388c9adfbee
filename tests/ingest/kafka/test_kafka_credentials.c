/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials that change while clients are open: each client gets those of its own section. No broker is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/kafka/kafka_client.h"
#include "ingest/kafka/kafka_credentials.h"

static rd_kafka_conf_t *conf_of(const char *user, const char *password)
{
  const struct kafka_property own[] = {
    { "bootstrap.servers", "127.0.0.1:1" }, { "security.protocol", "SASL_PLAINTEXT" },
    { "sasl.mechanism", "PLAIN" },          { "sasl.username", user },
    { "sasl.password", password },
  };
  struct kafka_layers layers = { .layer = { { own, sizeof own / sizeof own[0] } }, .n = 1 };
  rd_kafka_conf_t *conf;

  assert_int_equal(kafka_conf_make(&layers, &conf), ERR_OK);
  return conf;
}

static rd_kafka_t *open_client(const char *user, const char *password)
{
  rd_kafka_t *rk;

  assert_int_equal(kafka_client_new(RD_KAFKA_PRODUCER, conf_of(user, password), &rk), ERR_OK);
  return rk;
}

static void assert_credentials(rd_kafka_t *rk, const char *user, const char *password)
{
  char value[4096];
  size_t n = sizeof value;

  assert_int_equal(rd_kafka_conf_get(rd_kafka_conf(rk), "sasl.username", value, &n), RD_KAFKA_CONF_OK);
  assert_string_equal(value, user);
  n = sizeof value;
  assert_int_equal(rd_kafka_conf_get(rd_kafka_conf(rk), "sasl.password", value, &n), RD_KAFKA_CONF_OK);
  assert_string_equal(value, password);
}

static void reload(struct kafka_credentials catalogue, struct kafka_credentials query)
{
  kafka_credentials_replace(&(struct kafka_credentials){ "a", "pa" }, &catalogue);
  kafka_credentials_replace(&(struct kafka_credentials){ "b", "pb" }, &query);
}

static void each_client_keeps_to_its_own_section(void **state)
{
  const struct kafka_credentials a = { "a", "pa" }, b = { "b", "pb" };
  rd_kafka_t *catalogue = open_client("a", "pa"), *query = open_client("b", "pb");

  (void)state;
  reload(a, a);
  assert_credentials(query, "a", "pa");
  reload(a, b);
  assert_credentials(catalogue, "a", "pa");
  assert_credentials(query, "b", "pb");
  reload(b, a);
  assert_credentials(catalogue, "b", "pb");
  assert_credentials(query, "a", "pa");

  rd_kafka_t *later = open_client("a", "pa");
  assert_credentials(later, "b", "pb");
  reload(a, b);
  assert_credentials(later, "a", "pa");
  assert_credentials(catalogue, "a", "pa");
  assert_credentials(query, "b", "pb");
  kafka_client_destroy(later, 0);
  kafka_client_destroy(catalogue, 0);
  kafka_client_destroy(query, 0);
}

static void a_client_that_is_opened_after_the_change_has_it(void **state)
{
  (void)state;
  kafka_credentials_replace(&(struct kafka_credentials){ "c", "old" }, &(struct kafka_credentials){ "c", "new" });
  rd_kafka_t *rk = open_client("c", "old");
  assert_credentials(rk, "c", "new");
  kafka_client_destroy(rk, 0);
}

static void a_client_that_is_being_opened_during_the_change_has_it(void **state)
{
  rd_kafka_conf_t *conf = conf_of("e", "old");
  const struct kafka_login *login;
  char reason[512];

  (void)state;
  assert_int_equal(kafka_credentials_apply(conf, &login), ERR_OK);
  kafka_credentials_replace(&(struct kafka_credentials){ "e", "old" }, &(struct kafka_credentials){ "e", "new" });
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
  assert_non_null(rk);
  assert_credentials(rk, "e", "old");
  kafka_credentials_begin(rk, login);
  assert_credentials(rk, "e", "new");
  kafka_client_destroy(rk, 0);
}

static void a_password_may_be_long(void **state)
{
  char old[3000], new[3000];

  (void)state;
  memset(old, 'o', sizeof old);
  memset(new, 'n', sizeof new);
  old[sizeof old - 1] = new[sizeof new - 1] = '\0';
  rd_kafka_t *rk = open_client("d", old);
  kafka_credentials_replace(&(struct kafka_credentials){ "d", old }, &(struct kafka_credentials){ "d", new });
  assert_credentials(rk, "d", new);
  kafka_client_destroy(rk, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_client_keeps_to_its_own_section),
    cmocka_unit_test(a_client_that_is_opened_after_the_change_has_it),
    cmocka_unit_test(a_client_that_is_being_opened_during_the_change_has_it),
    cmocka_unit_test(a_password_may_be_long),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
