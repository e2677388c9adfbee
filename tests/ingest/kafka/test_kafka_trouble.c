/* SPDX-License-Identifier: Apache-2.0 */
/* librdkafka's lines about failed connections as sentences, and errors that repeat. The lines are from librdkafka 2.0.2
 * and Kafka 3.9. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ingest/kafka/kafka_repeats.h"
#include "ingest/kafka/kafka_trouble.h"

static void assert_sentence(const char *line, const char *expected)
{
  kafka_trouble_note_line(line);
  assert_non_null(kafka_trouble_newest());
  assert_string_equal(kafka_trouble_newest(), expected);
}

static void a_line_without_trouble_is_ignored(void **state)
{
  (void)state;
  kafka_trouble_note_line("[thrd:h:1/bootstrap]: h:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection refused "
                          "(after 0ms in state CONNECT)");
  kafka_trouble_note_line("[thrd:GroupCoordinator]: GroupCoordinator/1: SASL authentication error: "
                          "SaslAuthenticateRequest failed: Local: Broker transport failure (after 5ms in state DOWN)");
  kafka_trouble_note_line("[thrd:ssl://h:9093/1]: ssl://h:9093/1: SSL handshake failed: Disconnected: connecting to a "
                          "PLAINTEXT broker listener? (after 3ms in state SSL_HANDSHAKE)");
  kafka_trouble_note_line("[thrd:ssl://h:9093/1]: ssl://h:9093/1: SSL handshake failed: error:0A000126:SSL "
                          "routines::unexpected eof while reading (after 32ms in state SSL_HANDSHAKE)");
  assert_null(kafka_trouble_newest());
}

static void a_line_becomes_a_sentence(void **state)
{
  (void)state;
  assert_sentence("[thrd:sasl_ssl://h:9093/bootstrap]: sasl_ssl://h:9093/bootstrap: SASL authentication error: "
                  "Authentication failed: Invalid username or password (after 310ms in state AUTH_REQ)",
                  "cannot authenticate to h:9093: Invalid username or password");
  assert_sentence("[thrd:GroupCoordinator]: GroupCoordinator/1: SASL authentication error: no (after 1ms in state X)",
                  "cannot authenticate to GroupCoordinator: no");
  assert_sentence("[thrd:ssl://h:9093/1]: ssl://h:9093/1: SSL handshake failed: error:0A00010B:SSL "
                  "routines::wrong version number (after 32ms in state SSL_HANDSHAKE)",
                  "no TLS connection to h:9093: error:0A00010B:SSL routines::wrong version number");
  assert_sentence(
      "[thrd:h:9093/bootstrap]: h:9093/bootstrap: Disconnected while requesting ApiVersion: might be caused "
      "by incorrect security.protocol configuration (connecting to a SSL listener?) or broker version is < "
      "0.10 (see api.version.request) (after 3ms in state APIVERSION_QUERY)",
      "no connection to h:9093: it was closed at once: is security.protocol right?");
}

static void a_certificate_says_more_than_the_handshake(void **state)
{
  const char *line = "[thrd:ssl://h:9093/1]: ssl://h:9093/1: SSL handshake failed: error:0A000086:SSL "
                     "routines::certificate verify failed: broker certificate could not be verified, verify that "
                     "ssl.ca.location is correctly configured (after 44ms in state SSL_HANDSHAKE)";

  (void)state;
  kafka_trouble_note_certificate("h:9093", 10);
  assert_sentence(line,
                  "no TLS connection to h:9093: the broker's certificate, or one of its authorities, has expired");
  kafka_trouble_note_certificate("h:9093", 77);
  assert_sentence(line, "no TLS connection to h:9093: its certificate is refused, OpenSSL's error 77");
}

static void a_sentence_stays_valid(void **state)
{
  char line[128];

  (void)state;
  assert_sentence("ssl://first:1/1: SASL authentication error: no", "cannot authenticate to first:1: no");
  const char *first = kafka_trouble_newest();
  for (int i = 0; i < 100; i++) {
    snprintf(line, sizeof line, "ssl://h%d:1/1: SASL authentication error: no", i);
    kafka_trouble_note_line(line);
  }
  assert_string_equal(first, "cannot authenticate to first:1: no");
  assert_string_equal(kafka_trouble_newest(), "cannot connect to Kafka, for many different reasons: see the log");
}

static void a_repeated_error_is_allowed_once(void **state)
{
  uint64_t n_more;

  (void)state;
  assert_true(kafka_repeats_allow(-195, "h:1: refused (after 1ms in state CONNECT)", &n_more));
  assert_int_equal(n_more, 0);
  assert_false(kafka_repeats_allow(-195, "h:1: refused (after 2ms in state CONNECT)", &n_more));
  assert_true(kafka_repeats_allow(-195, "h:2: refused (after 1ms in state CONNECT)", &n_more));
  assert_true(kafka_repeats_allow(-187, "h:1: refused (after 1ms in state CONNECT)", &n_more));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_without_trouble_is_ignored),          cmocka_unit_test(a_line_becomes_a_sentence),
    cmocka_unit_test(a_certificate_says_more_than_the_handshake), cmocka_unit_test(a_sentence_stays_valid),
    cmocka_unit_test(a_repeated_error_is_allowed_once),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
