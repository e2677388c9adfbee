/* SPDX-License-Identifier: Apache-2.0 */
/* Escape text, and print numbers with as many digits as a reader wants. */
#include "daemon/http/print/html_print.h"

#include <math.h>
#include <time.h>

static const char *escape_of(char c)
{
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  default:
    return NULL;
  }
}

void html_print_text(FILE *out, const char *text)
{
  for (; *text; text++) {
    const char *escape = escape_of(*text);
    if (escape)
      fputs(escape, out);
    else
      fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, out);
  }
}

/* Print a whole number with a comma after each three digits. */
static void print_grouped(FILE *out, double value)
{
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%.0f", fmin(fabs(value), 1e18));

  if (value < 0)
    fputc('-', out);
  for (int i = 0; i < n; i++) {
    fputc(digits[i], out);
    if ((n - 1 - i) % 3 == 0 && i < n - 1)
      fputc(',', out);
  }
}

void html_print_number(FILE *out, double value)
{
  double size = fabs(value);

  if (size >= 100 || value == trunc(value))
    print_grouped(out, value);
  else if (size >= 10)
    fprintf(out, "%.1f", value);
  else
    fprintf(out, size >= 1 ? "%.2f" : "%.3f", value);
}

void html_print_bytes(FILE *out, double n_bytes)
{
  static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
  enum { UNITS = sizeof units / sizeof units[0] };
  size_t unit = 0;

  while (n_bytes >= 1024 && unit < UNITS - 1) {
    n_bytes /= 1024;
    unit++;
  }
  html_print_number(out, unit == 0 || n_bytes >= 100 ? round(n_bytes) : n_bytes);
  fprintf(out, " %s", units[unit]);
}

void html_print_duration(FILE *out, double seconds)
{
  enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
  long s = (long)fmax(0, fmin(seconds, 1e12));

  if (s < MINUTE)
    fprintf(out, "%ld s", s);
  else if (s < HOUR)
    fprintf(out, "%ld min", s / MINUTE);
  else if (s < DAY)
    fprintf(out, "%ld h %ld min", s / HOUR, s % HOUR / MINUTE);
  else
    fprintf(out, "%ld d %ld h", s / DAY, s % DAY / HOUR);
}

void html_print_time(FILE *out, int64_t unix_ms)
{
  time_t seconds = (time_t)(unix_ms / 1000);
  char text[32];
  struct tm utc;

  if (gmtime_r(&seconds, &utc) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc) > 0)
    fputs(text, out);
}
