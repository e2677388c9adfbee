/* SPDX-License-Identifier: Apache-2.0 */
/* Taking names of spaces apart, and printing them. */
#include "base/space_name.h"

#include <inttypes.h>
#include <stdio.h>

/* Parse a number without leading zeros. Returns 0 if it is none. */
static uint32_t parse_generation(struct span text)
{
  uint32_t number = 0;

  if (text.n < 1 || text.n > 9 || text.p[0] == '0')
    return 0;
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] < '0' || text.p[i] > '9')
      return 0;
    number = number * 10 + (uint32_t)(text.p[i] - '0');
  }
  return number;
}

bool space_name_parse(struct span text, struct space_name *out)
{
  const uint8_t *at = text.n ? memchr(text.p, '@', text.n) : NULL;
  size_t n = at ? (size_t)(at - text.p) : text.n;

  *out = (struct space_name){ .space = span_of(text.p, n) };
  if (!at)
    return true;
  out->generation = parse_generation(span_of(at + 1, text.n - n - 1));
  return n > 0 && out->generation > 0;
}

bool space_name_print(const struct space_name *name, char out[SPACE_NAME_MAX + 1])
{
  int space_bytes = name->space.n > SPACE_NAME_MAX ? SPACE_NAME_MAX + 1 : (int)name->space.n;
  int n = name->generation > 1 ? snprintf(out, SPACE_NAME_MAX + 1, "%.*s@%" PRIu32, space_bytes,
                                          (const char *)name->space.p, name->generation)
                               : snprintf(out, SPACE_NAME_MAX + 1, "%.*s", space_bytes, (const char *)name->space.p);

  return n >= 0 && n <= SPACE_NAME_MAX;
}
