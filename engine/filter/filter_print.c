/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a filter's tree in the language of filters, for caches and people. Parsing it gives an equal tree, if it is
 * within the limits of the parser, and unless it is one of the two constants, which the language does not have. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/filter/filter.h"

/* A text that is written twice: first only counted, then into memory of that size. */
struct writer {
  const struct attributes *attributes;
  uint8_t *p; /* NULL: count */
  size_t n;
};

static void put(struct writer *w, struct span bytes)
{
  if (w->p && bytes.n > 0)
    memcpy(w->p + w->n, bytes.p, bytes.n);
  w->n += bytes.n;
}

static void put_str(struct writer *w, const char *s)
{
  put(w, span_of_str(s));
}

static void put_integer(struct writer *w, int64_t integer)
{
  char digits[24];

  snprintf(digits, sizeof digits, "%" PRId64, integer);
  put_str(w, digits);
}

/* 17 digits tell all doubles apart. A sign of the decimal keeps the number from being read as an integer. */
static void put_number(struct writer *w, double number)
{
  char digits[40];

  snprintf(digits, sizeof digits, "%.17g", number);
  put_str(w, digits);
  if (!strpbrk(digits, ".e"))
    put_str(w, ".0");
}

/* Put a text between quotes. A quote in it ends a run and is doubled. */
static void put_text(struct writer *w, struct span text)
{
  size_t from = 0;

  put_str(w, "'");
  while (from < text.n) {
    const uint8_t *quote = memchr(text.p + from, '\'', text.n - from);
    size_t end = quote ? (size_t)(quote - text.p) + 1 : text.n;
    put(w, span_of(text.p + from, end - from));
    put_str(w, quote ? "'" : "");
    from = end;
  }
  put_str(w, "'");
}

static enum attribute_type type_of(const struct writer *w, const struct filter_node *node)
{
  return w->attributes->v[node->attribute].type;
}

static void put_attribute(struct writer *w, const struct filter_node *node)
{
  put(w, w->attributes->v[node->attribute].name);
}

static void put_integers(struct writer *w, const struct filter_node *node)
{
  put_str(w, " between ");
  put_integer(w, node->integers.low);
  put_str(w, " and ");
  put_integer(w, node->integers.high);
}

static void put_numbers(struct writer *w, const struct filter_node *node)
{
  bool has_low = isfinite(node->numbers.low), has_high = isfinite(node->numbers.high);

  put_str(w, has_low && has_high ? " between " : has_low ? " >= " : " <= ");
  put_number(w, has_low ? node->numbers.low : node->numbers.high);
  if (has_low && has_high) {
    put_str(w, " and ");
    put_number(w, node->numbers.high);
  }
}

static void put_one_of(struct writer *w, const struct filter_node *node)
{
  bool is_number = type_of(w, node) == ATTRIBUTE_NUMBER;
  size_t n = is_number ? node->number_values.n : node->integer_values.n;

  for (size_t i = 0; i < n; i++) {
    put_str(w, i == 0 ? " in (" : ", ");
    if (is_number)
      put_number(w, node->number_values.v[i]);
    else
      put_integer(w, node->integer_values.v[i]);
  }
  put_str(w, ")");
}

static void put_texts(struct writer *w, const struct filter_node *node)
{
  put_str(w, type_of(w, node) == ATTRIBUTE_KEYWORDS ? " has (" : " in (");
  for (size_t i = 0; i < node->texts.n; i++) {
    put_str(w, i == 0 ? "" : ", ");
    put_text(w, node->texts.v[i]);
  }
  put_str(w, ")");
}

static void put_leaf(struct writer *w, const struct filter_node *node)
{
  put_attribute(w, node);
  switch (node->kind) {
  case FILTER_IS:
    put_str(w, node->is_true ? " = true" : " = false");
    break;
  case FILTER_INTEGERS:
    put_integers(w, node);
    break;
  case FILTER_NUMBERS:
    put_numbers(w, node);
    break;
  case FILTER_ONE_OF:
    put_one_of(w, node);
    break;
  default:
    put_texts(w, node);
  }
}

static void put_node(struct writer *w, const struct filter_node *node);

/* How tightly an operator binds its operands. */
static int strength_of(enum filter_kind kind)
{
  return kind == FILTER_OR ? 0 : kind == FILTER_AND ? 1 : 2;
}

/* Write an operand, with parentheses if it binds less tightly than the operator around it. */
static void put_operand(struct writer *w, const struct filter_node *node, enum filter_kind around)
{
  bool needs_parentheses = strength_of(node->kind) < strength_of(around);

  put_str(w, needs_parentheses ? "(" : "");
  put_node(w, node);
  put_str(w, needs_parentheses ? ")" : "");
}

static void put_operands(struct writer *w, const struct filter_node *node)
{
  for (size_t i = 0; i < node->operands.n; i++) {
    put_str(w, i == 0 ? "" : node->kind == FILTER_AND ? " and " : " or ");
    put_operand(w, node->operands.v[i], node->kind);
  }
}

static void put_node(struct writer *w, const struct filter_node *node)
{
  switch (node->kind) {
  case FILTER_ALL:
  case FILTER_NONE:
    put_str(w, node->kind == FILTER_ALL ? "all" : "none");
    break;
  case FILTER_AND:
  case FILTER_OR:
    put_operands(w, node);
    break;
  case FILTER_NOT:
    put_str(w, "not ");
    put_operand(w, node->operands.v[0], FILTER_NOT);
    break;
  case FILTER_HAS:
    put_str(w, "has(");
    put_attribute(w, node);
    put_str(w, ")");
    break;
  default:
    put_leaf(w, node);
  }
}

err_t filter_print(const struct filter_node *node, const struct attributes *attributes, struct region *region,
                   struct span *out)
{
  struct writer w = { .attributes = attributes };
  uint8_t *bytes;

  put_node(&w, node);
  TRY(region_array(region, w.n, 1, &bytes));
  w.p = bytes;
  w.n = 0;
  put_node(&w, node);
  *out = span_of(bytes, w.n);
  return ERR_OK;
}
