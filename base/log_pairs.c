/* SPDX-License-Identifier: Apache-2.0 */
/* A scanner for `key=value key="quoted value"`. A line that was cut may end within a value. */
#include "base/log_pairs.h"

#include <string.h>

static struct span take_value(const char **text)
{
  bool is_quoted = **text == '"';
  const char *begin = *text + is_quoted, *end = begin + strcspn(begin, is_quoted ? "\"" : " ");

  *text = end + (is_quoted && *end);
  return span_of(begin, (size_t)(end - begin));
}

bool log_pairs_next(const char **text, struct log_pair *out)
{
  for (;;) {
    *text += strspn(*text, " ");
    const char *key = *text;
    size_t n = strcspn(key, " =");
    if (!*key)
      return false;
    *text += n + (key[n] == '=');
    if (key[n] != '=' || n == 0)
      continue;
    out->key = span_of(key, n);
    out->value = take_value(text);
    return true;
  }
}

bool log_pairs_find(const char *text, const char *key, struct log_pair *out)
{
  struct log_pair pair;

  while (log_pairs_next(&text, &pair)) {
    if (span_equal(pair.key, span_of_str(key))) {
      *out = pair;
      return true;
    }
  }
  return false;
}

static int digit_of(uint8_t c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t log_pairs_unquote(struct span value, char *out)
{
  size_t n = 0;

  for (size_t i = 0; i < value.n; i++) {
    const uint8_t *c = value.p + i;
    bool is_escape = i + 3 < value.n && c[0] == '\\' && c[1] == 'x' && digit_of(c[2]) >= 0 && digit_of(c[3]) >= 0;
    out[n++] = (char)(is_escape ? digit_of(c[2]) << 4 | digit_of(c[3]) : *c);
    i += is_escape ? 3 : 0;
  }
  return n;
}
