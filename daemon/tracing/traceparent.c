/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing the four fields of a traceparent: VERSION-TRACE-SPAN-FLAGS. */
#include "daemon/tracing/traceparent.h"

/* Where the fields are. Later versions may add fields after these, with a hyphen in between. */
enum { VERSION_AT = 0, VERSION_DIGITS = 2, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, FLAGS_DIGITS = 2, BYTES = 55 };

static bool is_digit(uint8_t c)
{
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool are_digits(const uint8_t *p, size_t n)
{
  size_t i = 0;

  while (i < n && is_digit(p[i]))
    i++;
  return i == n;
}

static bool are_zeros(const uint8_t *p, size_t n)
{
  size_t i = 0;

  while (i < n && p[i] == '0')
    i++;
  return i == n;
}

static bool is_id(const uint8_t *p, size_t n)
{
  return are_digits(p, n) && !are_zeros(p, n);
}

/* Is this a version that exists, with a length that it may have? */
static bool is_version(struct span text)
{
  bool is_first = are_zeros(text.p + VERSION_AT, VERSION_DIGITS);

  if (!are_digits(text.p + VERSION_AT, VERSION_DIGITS) || memcmp(text.p + VERSION_AT, "ff", VERSION_DIGITS) == 0)
    return false;
  return text.n == BYTES || (!is_first && text.p[BYTES] == '-');
}

bool traceparent_parse(struct span text, struct traceparent *out)
{
  const uint8_t *p = text.p;

  if (text.n < BYTES || !is_version(text))
    return false;
  if (p[TRACE_AT - 1] != '-' || p[SPAN_AT - 1] != '-' || p[FLAGS_AT - 1] != '-')
    return false;
  if (!is_id(p + TRACE_AT, TRACE_ID_DIGITS) || !is_id(p + SPAN_AT, SPAN_ID_DIGITS) ||
      !are_digits(p + FLAGS_AT, FLAGS_DIGITS))
    return false;
  *out = (struct traceparent){ 0 };
  memcpy(out->trace_id, p + TRACE_AT, TRACE_ID_DIGITS);
  memcpy(out->span_id, p + SPAN_AT, SPAN_ID_DIGITS);
  out->is_sampled = strchr("13579bdf", p[FLAGS_AT + FLAGS_DIGITS - 1]) != NULL; /* bit 0 of the flags */
  return true;
}
