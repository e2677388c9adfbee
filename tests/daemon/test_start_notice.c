/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that extend the start's time limit, as they arrive at the service manager's socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "daemon/start_notice.h"
#include "tests/support/assert_ok.h"
#include "tests/support/temp_dir.h"

/* Far longer than a notice takes, even on a busy machine. */
enum { PATIENCE_S = 60 };

static struct temp_dir dir;
static int manager;

static void listen_for_notices(void)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };
  struct timeval patience = { .tv_sec = PATIENCE_S };

  int n_path = snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", dir.path);
  assert_true(n_path > 0 && (size_t)n_path < sizeof address.sun_path);
  manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  assert_true(manager >= 0);
  assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
  assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
}

/* Receive a notice. Returns false if none is there. */
static bool take_notice(int flags)
{
  char text[256] = "";
  ssize_t n = recv(manager, text, sizeof text - 1, flags);

  if (n > 0)
    assert_non_null(strstr(text, "EXTEND_TIMEOUT_USEC=30000000"));
  return n > 0;
}

static void the_limit_is_extended_at_once_and_repeatedly_until_the_end(void **state)
{
  struct start_notice notice;

  (void)state;
  assert_ok(start_notice_begin(&notice, 10 * CLOCK_NS_PER_MS));
  for (int i = 0; i < 5; i++)
    assert_true(take_notice(0));
  start_notice_end(&notice);
  while (take_notice(MSG_DONTWAIT))
    continue;
  clock_sleep_ns(50 * CLOCK_NS_PER_MS);
  assert_false(take_notice(MSG_DONTWAIT));
}

static void the_end_does_not_wait_for_the_next_notice(void **state)
{
  struct start_notice notice;
  int64_t begin_ns = clock_now_ns();

  (void)state;
  assert_ok(start_notice_begin(&notice, 3600 * CLOCK_NS_PER_S));
  assert_true(take_notice(0));
  start_notice_end(&notice);
  assert_true(clock_now_ns() - begin_ns < PATIENCE_S * CLOCK_NS_PER_S);
  assert_false(take_notice(MSG_DONTWAIT));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_limit_is_extended_at_once_and_repeatedly_until_the_end),
    cmocka_unit_test(the_end_does_not_wait_for_the_next_notice),
  };

  temp_dir_init(&dir);
  listen_for_notices();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  close(manager);
  temp_dir_fini(&dir);
  return failed;
}
