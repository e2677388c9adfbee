/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions on err_t, with the message of the failure. Include it after cmocka.h. */
#ifndef TESTS_SUPPORT_ASSERT_OK_H
#define TESTS_SUPPORT_ASSERT_OK_H

#include <string.h>

#include "base/err.h"

#define assert_ok(call)                                                 \
  do {                                                                  \
    if ((call) != ERR_OK)                                               \
      fail_msg("%s: %s (%s)", #call, err_message(), err_origin());      \
  } while (0)

/* Assert that the call fails with this code and that its message contains this text. */
#define assert_fails(call, code, text)                                                          \
  do {                                                                                          \
    err_code_t fails_ = (call);                                                                 \
    if (fails_ != (code))                                                                       \
      fail_msg("%s gave \"%s\", not \"%s\": %s", #call, err_text(fails_), err_text(code),       \
               fails_ ? err_message() : "");                                                    \
    if (!strstr(err_message(), (text)))                                                         \
      fail_msg("%s: \"%s\" does not say \"%s\"", #call, err_message(), (text));                 \
  } while (0)

#endif
