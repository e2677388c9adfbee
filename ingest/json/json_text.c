/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over JSON text, without parsing it. */
#include "ingest/json/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Bytes that jansson 2.14 allocates for each kind of value, rounded up. An object starts with 8 buckets, a list with 8
 * places. A member costs a pair in its object, the pair's key and the value. An element costs its value and its place
 * in the list. The bytes of strings are counted separately. */
enum { OBJECT_BYTES = 256, LIST_BYTES = 128, MEMBER_BYTES = 128, ELEMENT_BYTES = 48, STRING_BYTES = 32 };

static const char quote_start[] = "\"\\u0000";

/* Return the end of the string whose opening quote is at `i`. */
static size_t skip_string(struct span text, size_t i)
{
  for (i++; i < text.n && text.p[i] != '"'; i++) {
    if (text.p[i] == '\\')
      i++;
  }
  return i < text.n ? i + 1 : text.n;
}

size_t json_text_cost(struct span text)
{
  size_t cost = 0;

  for (size_t i = 0; i < text.n; i++) {
    switch (text.p[i]) {
    case '"':
      cost += STRING_BYTES;
      i = skip_string(text, i) - 1;
      break;
    case '{':
      cost += OBJECT_BYTES;
      break;
    case '[':
      cost += LIST_BYTES;
      break;
    case ':':
      cost += MEMBER_BYTES;
      break;
    case ',':
      cost += ELEMENT_BYTES;
      break;
    }
  }
  return cost + text.n;
}

/* Return the end of the number at `i`. */
static size_t skip_number(struct span text, size_t i)
{
  while (i < text.n && text.p[i] && strchr("+-.eE0123456789", text.p[i]))
    i++;
  return i;
}

/* Is the number too large for jansson?
 *
 * digits  the number; another character follows its n bytes
 */
static bool is_large(const char *digits, size_t n)
{
  errno = 0;
  if (memchr(digits, '.', n) || memchr(digits, 'e', n) || memchr(digits, 'E', n))
    return isinf(strtod(digits, NULL)) && errno == ERANGE;
  (void)strtoll(digits, NULL, 10);
  return errno == ERANGE;
}

static size_t append(char *to, size_t n, const void *bytes, size_t n_bytes)
{
  memcpy(to + n, bytes, n_bytes);
  return n + n_bytes;
}

err_t json_text_quote_large(struct span text, struct region *r, struct span *out)
{
  size_t n = 0, end;
  struct span from;
  char *to;

  TRY(region_copy(r, text, &from));     /* for the zero byte after it */
  TRY(region_array(r, from.n, 3, &to)); /* a quoted number gets 8 bytes more, and has at least 5 (1e309) */
  for (size_t i = 0; i < from.n; i = end) {
    const char *at = (const char *)from.p + i;
    bool is_number = *at == '-' || (*at >= '0' && *at <= '9');
    end = *at == '"' ? skip_string(from, i) : is_number ? skip_number(from, i) : i + 1;
    bool is_quoted = is_number && is_large(at, end - i);
    if (is_quoted)
      n = append(to, n, quote_start, sizeof quote_start - 1);
    n = append(to, n, at, end - i);
    if (is_quoted)
      to[n++] = '"';
  }
  *out = span_of(to, n);
  return ERR_OK;
}

size_t json_text_blanks(struct span text)
{
  size_t n = 0;

  while (n < text.n && (text.p[n] == ' ' || text.p[n] == '\t' || text.p[n] == '\r' || text.p[n] == '\n'))
    n++;
  return n;
}
