/* SPDX-License-Identifier: Apache-2.0 */
/* Reading numbers: the form is checked here, so that strtod, which takes more forms, only converts. */
#include "engine/filter/filter_number.h"

#include <math.h>
#include <stdlib.h>

#include "engine/filter/filter_fail.h"

/* Skip digits. Returns false if there are none. */
static bool skip_digits(const char **s)
{
  const char *start = *s;

  while (**s >= '0' && **s <= '9')
    (*s)++;
  return *s > start;
}

/* Skip what may follow the integer part. Returns false if it is wrong. */
static bool skip_fraction_and_exponent(const char **s)
{
  if (**s == '.' && (++*s, !skip_digits(s)))
    return false;
  if (**s != 'e' && **s != 'E')
    return true;
  ++*s;
  if (**s == '+' || **s == '-')
    ++*s;
  return skip_digits(s);
}

static bool is_number(const char *s, bool *is_integer)
{
  if (*s == '-')
    s++;
  if (!skip_digits(&s))
    return false;
  *is_integer = *s == '\0';
  return skip_fraction_and_exponent(&s) && *s == '\0';
}

/* Returns false if the integer does not fit. */
static bool read_integer(const char *s, int64_t *out)
{
  bool is_negative = *s == '-';
  int64_t n = 0;

  for (s += is_negative; *s; s++) {
    int digit = *s - '0';
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, is_negative ? -digit : digit, &n))
      return false;
  }
  *out = n;
  return true;
}

err_t filter_number_read(struct span text, struct span source, struct value *out)
{
  size_t offset = (size_t)(source.p - text.p);
  char copy[FILTER_NUMBER_BYTES_MAX + 1] = { 0 }, piece[FILTER_PIECE_BYTES];
  bool is_integer = false;

  if (source.n > FILTER_NUMBER_BYTES_MAX)
    FILTER_FAIL(text, offset, "a number has at most %d characters", FILTER_NUMBER_BYTES_MAX);
  memcpy(copy, source.p, source.n);
  filter_fail_quote(source, "", piece);
  if (!is_number(copy, &is_integer))
    FILTER_FAIL(text, offset, "%s is not a number: write it as 17, -2.5, 0.5 or 1e6", piece);
  *out = (struct value){ .kind = is_integer ? VALUE_INTEGER : VALUE_NUMBER };
  if (is_integer && !read_integer(copy, &out->integer))
    FILTER_FAIL(text, offset, "%s does not fit an integer of 64 bits; a decimal such as 1e19 may be larger", piece);
  if (!is_integer)
    out->number = strtod(copy, NULL);
  if (!is_integer && !isfinite(out->number))
    FILTER_FAIL(text, offset, "%s is larger than any number that can be kept", piece);
  return ERR_OK;
}
