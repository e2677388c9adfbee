/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with thousands separators, durations in the unit that fits, rates. */
#include "daemon/ctl/text/ctl_format.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rfc3339.h"

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
  time_t seconds = (time_t)(unix_ms / 1000);
  struct ctl_text text;
  struct tm tm;
  size_t n;

  gmtime_r(&seconds, &tm);
  n = strftime(text.s, sizeof text.s, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(text.s + n, sizeof text.s - n, ".%03dZ", (int)(unix_ms % 1000));
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

const char *ctl_plural(uint64_t n, const char *one, const char *many)
{
  return n == 1 ? one : many;
}

err_t ctl_parse_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
  char *end;

  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
    FAIL(ERR_USAGE, "%s expects a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", option, min, max, text);
  *out = value;
  return ERR_OK;
}

/* Return the seconds of a unit; 0: there is no such unit. */
static uint64_t seconds_of(char unit)
{
  switch (unit) {
  case 's':
    return 1;
  case 'm':
    return 60;
  case 'h':
    return 3600;
  case 'd':
    return 86400;
  default:
    return 0;
  }
}

err_t ctl_parse_time(const char *option, const char *text, int64_t now_unix_ms, int64_t *unix_ms)
{
  size_t n_digits = strspn(text, "0123456789");
  uint64_t unit_s = seconds_of(text[n_digits]);
  bool is_between;

  if (n_digits > 0 && n_digits <= 9 && unit_s > 0 && text[n_digits + 1] == '\0') {
    *unix_ms = now_unix_ms - (int64_t)(strtoull(text, NULL, 10) * unit_s * 1000);
    return ERR_OK;
  }
  if (rfc3339_read(span_of_str(text), unix_ms, &is_between))
    return ERR_OK;
  FAIL(ERR_USAGE, "%s expects a time, such as 2026-11-22T12:00:00Z, or how long ago it was, such as 90s, 10m, 2h or 7d",
       option);
}
