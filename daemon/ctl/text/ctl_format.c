/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with thousands separators, durations in the unit that fits, rates. */
#include "daemon/ctl/text/ctl_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

struct ctl_text ctl_format_count(uint64_t n)
{
  struct ctl_text text;
  char digits[24];
  size_t n_digits = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n);
  size_t at = 0;

  for (size_t i = 0; i < n_digits; i++) {
    if (i > 0 && (n_digits - i) % 3 == 0)
      text.s[at++] = ',';
    text.s[at++] = digits[i];
  }
  text.s[at] = '\0';
  return text;
}

struct ctl_text ctl_format_number(uint64_t n)
{
  struct ctl_text text;

  snprintf(text.s, sizeof text.s, "%" PRIu64, n);
  return text;
}

static void format_long(int64_t s, struct ctl_text *text)
{
  int64_t minutes = s / 60;
  int64_t hours = minutes / 60;

  if (minutes < 60)
    snprintf(text->s, sizeof text->s, "%" PRId64 " min %" PRId64 " s", minutes, s % 60);
  else if (hours < 48)
    snprintf(text->s, sizeof text->s, "%" PRId64 " h %" PRId64 " min", hours, minutes % 60);
  else
    snprintf(text->s, sizeof text->s, "%" PRId64 " d %" PRId64 " h", hours / 24, hours % 24);
}

struct ctl_text ctl_format_span(int64_t ns)
{
  struct ctl_text text;
  double ms = (double)ns / (double)CLOCK_NS_PER_MS;

  if (ns >= 60 * CLOCK_NS_PER_S)
    format_long(ns / CLOCK_NS_PER_S, &text);
  else if (ms >= 9950)
    snprintf(text.s, sizeof text.s, "%.0f s", ms / 1000);
  else if (ms >= 999.5)
    snprintf(text.s, sizeof text.s, "%.1f s", ms / 1000);
  else if (ms >= 9.95)
    snprintf(text.s, sizeof text.s, "%.0f ms", ms);
  else if (ms >= 0.995)
    snprintf(text.s, sizeof text.s, "%.1f ms", ms);
  else
    snprintf(text.s, sizeof text.s, "%.2f ms", ms);
  return text;
}

struct ctl_text ctl_format_time(int64_t unix_ms)
{
  int ms = (int)((unix_ms % 1000 + 1000) % 1000); /* before 1970, too: -1 is what a record without a time has */
  time_t seconds = (time_t)(unix_ms / 1000 - (unix_ms % 1000 < 0));
  struct ctl_text text;
  struct tm tm;
  size_t n;

  gmtime_r(&seconds, &tm);
  n = strftime(text.s, sizeof text.s, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(text.s + n, sizeof text.s - n, ".%03dZ", ms);
  return text;
}

struct ctl_text ctl_format_rate(uint64_t n, int64_t ns)
{
  double rate = ns > 0 ? (double)n * (double)CLOCK_NS_PER_S / (double)ns : 0;
  double unit = 1;

  while (rate / unit >= 1000)
    unit *= 10;
  return ctl_format_count((uint64_t)(round(rate / unit) * unit));
}

const char *ctl_format_plural(uint64_t n, const char *one, const char *many)
{
  return n == 1 ? one : many;
}
