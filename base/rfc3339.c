/* SPDX-License-Identifier: Apache-2.0 */
/* Reading RFC 3339. The days since 1970 are counted in years that begin in March, so leap days come last. */
#include "base/rfc3339.h"

enum { MS_OF_MINUTE = 60 * 1000, MINUTES_OF_DAY = 24 * 60 };

struct reader {
  struct span rest;
  bool is_wrong;
};

static uint8_t take(struct reader *r)
{
  if (r->rest.n == 0) {
    r->is_wrong = true;
    return 0;
  }
  r->rest.n--;
  return *r->rest.p++;
}

static void take_one_of(struct reader *r, uint8_t a, uint8_t b)
{
  uint8_t c = take(r);

  r->is_wrong |= c != a && c != b;
}

static bool is_digit(uint8_t c)
{
  return c >= '0' && c <= '9';
}

/* Take a number of `digits` digits from low to high. Returns low if it is wrong. */
static int take_number(struct reader *r, int digits, int low, int high)
{
  int n = 0;

  for (int i = 0; i < digits; i++) {
    uint8_t c = take(r);
    r->is_wrong |= !is_digit(c);
    n = 10 * n + (c - '0');
  }
  r->is_wrong |= n < low || n > high;
  return r->is_wrong ? low : n;
}

static int days_of_month(int year, int month)
{
  static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
  bool is_leap_year = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

  return days[month - 1] + (month == 2 && is_leap_year);
}

/* Days from 1970-01-01. A year begins in March here. */
static int64_t days_since_1970(int year, int month, int day)
{
  int64_t y = month > 2 ? year : year - 1;
  int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  int64_t leap_days = y >= 0 ? y / 4 - y / 100 + y / 400 : -1;

  return 365 * y + leap_days + day_of_year - 719468;
}

static int64_t take_day(struct reader *r)
{
  int year = take_number(r, 4, 0, 9999);
  take_one_of(r, '-', '-');
  int month = take_number(r, 2, 1, 12);
  take_one_of(r, '-', '-');
  int day = take_number(r, 2, 1, 31);

  r->is_wrong |= day > days_of_month(year, month);
  return days_since_1970(year, month, day);
}

static int64_t take_time_of_day(struct reader *r)
{
  int hour = take_number(r, 2, 0, 23);
  take_one_of(r, ':', ':');
  int minute = take_number(r, 2, 0, 59);
  take_one_of(r, ':', ':');
  int second = take_number(r, 2, 0, 59);

  return (hour * 60 + minute) * MS_OF_MINUTE + second * 1000;
}

/* Take a fraction of a second, if there is one. */
static int take_fraction(struct reader *r, bool *is_between)
{
  int ms = 0, weight = 100;

  if (r->rest.n == 0 || r->rest.p[0] != '.')
    return 0;
  take(r);
  r->is_wrong |= r->rest.n == 0 || !is_digit(r->rest.p[0]);
  for (; r->rest.n > 0 && is_digit(r->rest.p[0]); weight /= 10) {
    int digit = take(r) - '0';
    ms += weight * digit;
    *is_between |= weight == 0 && digit > 0;
  }
  return ms;
}

/* Take Z or the difference to UTC in minutes. */
static int take_zone(struct reader *r)
{
  uint8_t sign = take(r);

  if (sign == 'Z' || sign == 'z')
    return 0;
  r->is_wrong |= sign != '+' && sign != '-';
  int hours = take_number(r, 2, 0, 23);
  take_one_of(r, ':', ':');
  int minutes = hours * 60 + take_number(r, 2, 0, 59);
  return sign == '-' ? -minutes : minutes;
}

bool rfc3339_read(struct span text, int64_t *ms, bool *is_between)
{
  struct reader r = { text, false };
  bool is_fraction_left = false;

  int64_t day = take_day(&r);
  take_one_of(&r, 'T', 't');
  int64_t ms_of_day = take_time_of_day(&r);
  ms_of_day += take_fraction(&r, &is_fraction_left);
  int64_t minutes = day * MINUTES_OF_DAY - take_zone(&r);
  if (r.is_wrong || r.rest.n > 0)
    return false;
  *ms = minutes * MS_OF_MINUTE + ms_of_day;
  *is_between = is_fraction_left;
  return true;
}
