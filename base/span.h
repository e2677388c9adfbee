/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed bytes. No function frees a span. The comment of a function that returns one says how long it is valid. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
  const uint8_t *p;
  size_t n;
};

static inline struct span span_of(const void *p, size_t n)
{
  return (struct span){ (const uint8_t *)p, n };
}

static inline struct span span_of_str(const char *s)
{
  return span_of(s, strlen(s));
}

static inline bool span_equal(struct span a, struct span b)
{
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Compare two keys bytewise; a prefix comes before the longer key. Returns <0, 0 or >0. */
static inline int span_compare(struct span a, struct span b)
{
  size_t n = a.n < b.n ? a.n : b.n;
  int order = n ? memcmp(a.p, b.p, n) : 0;

  if (order != 0)
    return order;
  return (a.n > b.n) - (a.n < b.n);
}

#endif
