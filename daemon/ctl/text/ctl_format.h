/* SPDX-License-Identifier: Apache-2.0 */
/* Format numbers, times and durations for people. Thread: any. */
#ifndef DAEMON_CTL_CTL_FORMAT_H
#define DAEMON_CTL_CTL_FORMAT_H

#include "base/err.h"
#include "base/span.h"

enum { CTL_TEXT_BYTES = 48 };

struct ctl_text {
  char s[CTL_TEXT_BYTES];
};

/* Format a count: 63,000 */
struct ctl_text ctl_format_count(uint64_t n);

/* Format a number as programs read it: 63000 */
struct ctl_text ctl_format_number(uint64_t n);

/* Format a duration, with at least two digits: 3.2 s, 12 ms, 0.25 ms, 4 min 5 s, 3 h 12 min, 2 d 4 h */
struct ctl_text ctl_format_span(int64_t ns);

/* Format milliseconds since 1970 as RFC 3339 has it: 2026-11-22T12:00:00.250Z */
struct ctl_text ctl_format_time(int64_t unix_ms);

/* Format n / ns as a rate per second, rounded to three digits: 19,700 */
struct ctl_text ctl_format_rate(uint64_t n, int64_t ns);

/* Return `one` if n is 1, else `many`. */
const char *ctl_format_plural(uint64_t n, const char *one, const char *many);

#endif
