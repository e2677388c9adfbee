/* SPDX-License-Identifier: Apache-2.0 */
/* Random filters as people write them, random items, and what a filter means for an item, from its text alone: nothing
 * here knows the parser or its trees. Numbers are compared as long double, which holds each int64_t and each double. */
#ifndef TESTS_SUPPORT_FILTER_DRAW_H
#define TESTS_SUPPORT_FILTER_DRAW_H

#include <assert.h>
#include <float.h>
#include <stdarg.h>
#include <time.h>

#include "base/query.h"
#include "tests/support/dice.h"
#include "tests/support/filter_attributes.h"

static_assert(LDBL_MANT_DIG >= 64, "long double holds an int64_t");

enum { DRAW_TEXT_BYTES = 16384, DRAW_NODES = 256, DRAW_VALUES = 6, DRAW_TAGS = 4 };

/* One value: of an item, or on the right side of an operator. */
struct draw_value {
  long double number; /* also of bools: 0 or 1; of times: milliseconds */
  const char *text;   /* NULL: a number */
};

enum draw_kind { DRAW_AND, DRAW_OR, DRAW_NOT, DRAW_HAS, DRAW_ALONE, DRAW_COMPARE };

/* What a filter consists of, as it is written. */
struct draw_node {
  enum draw_kind kind;
  size_t a, b; /* operands of and, or, not */
  size_t attribute;
  const char *op;
  struct draw_value values[DRAW_VALUES];
  size_t n_values;
};

struct draw {
  struct dice *dice;
  struct attributes attributes;
  struct draw_node nodes[DRAW_NODES];
  size_t n_nodes;
  char text[DRAW_TEXT_BYTES];
  size_t n_text;
  struct value parameters[QUERY_PARAMETERS_MAX];
  struct value elements[QUERY_PARAMETERS_MAX][DRAW_VALUES];
  char parameter_texts[QUERY_PARAMETERS_MAX][DRAW_VALUES][64];
  size_t n_parameters;
};

static inline bool draw_one_in(struct draw *d, size_t n)
{
  return dice_below(d->dice, n) == 0;
}

/* --- values: few, so that items and filters meet --- */

static const char *const draw_texts[] = { "", "a", "b", "ab", "de", "it's", "''", "K\xc3\xb6ln", "and" };
static const int64_t draw_integers[] = { 0,    1,         -1,            1989,      1990,
                                         1991, INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1 };
static const double draw_numbers[] = { 0, 0.1, -1.5, 19.999999999999996, 20, 20.000000000000004, 0x1p-1074, -0x1p-1074,
                                       DBL_MAX, -DBL_MAX, 9007199254740992.0, 1e22 };
static const int64_t draw_times[] = { 0, 1, 999, 1000, 1001, 1795348800000, 1795348800001, INT64_MAX };

#define DRAW_FROM(d, array) ((array)[dice_below((d)->dice, sizeof(array) / sizeof(array)[0])])

/* A value that an item may have. */
static inline struct draw_value draw_of_type(struct draw *d, enum attribute_type type)
{
  switch (type) {
  case ATTRIBUTE_BOOL:
    return (struct draw_value){ .number = (long double)dice_below(d->dice, 2) };
  case ATTRIBUTE_INTEGER:
    return (struct draw_value){ .number = DRAW_FROM(d, draw_integers) };
  case ATTRIBUTE_NUMBER:
    return (struct draw_value){ .number = DRAW_FROM(d, draw_numbers) };
  case ATTRIBUTE_TIME:
    return (struct draw_value){ .number = DRAW_FROM(d, draw_times) };
  default:
    return (struct draw_value){ .text = DRAW_FROM(d, draw_texts) };
  }
}

/* --- text --- */

static inline __attribute__((format(printf, 2, 3))) void draw_put(struct draw *d, const char *format, ...)
{
  va_list args;

  va_start(args, format);
  int n = vsnprintf(d->text + d->n_text, DRAW_TEXT_BYTES - d->n_text, format, args);
  va_end(args);
  d->n_text += (size_t)n;
  assert(d->n_text < DRAW_TEXT_BYTES);
}

/* A keyword, in any case. */
static inline void draw_put_word(struct draw *d, const char *word)
{
  for (; *word; word++)
    draw_put(d, "%c", *word >= 'a' && *word <= 'z' && draw_one_in(d, 8) ? *word - 'a' + 'A' : *word);
}

static inline void draw_put_space(struct draw *d)
{
  static const char *const spaces[] = { " ", " ", " ", "  ", "\t", "\n", "\r\n" };

  draw_put(d, "%s", DRAW_FROM(d, spaces));
}

static inline void draw_put_text(struct draw *d, const char *text)
{
  draw_put(d, "'");
  for (; *text; text++)
    draw_put(d, *text == '\'' ? "''" : "%c", *text);
  draw_put(d, "'");
}

/* Write a time as RFC 3339, in some zone. It must be before the year 10000. */
static inline void draw_time_text(struct draw *d, long double ms, char out[64])
{
  int64_t us = (int64_t)(ms * 1000);
  int zone = (int)dice_below(d->dice, 3) * 90 - 90; /* minutes */
  time_t seconds = (time_t)(us / 1000000 + zone * 60);
  struct tm fields;
  char date[32];

  gmtime_r(&seconds, &fields);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &fields);
  snprintf(out, 64, "%s.%06d%c%02d:%02d", date, (int)(us % 1000000), zone < 0 ? '-' : '+', abs(zone) / 60,
           abs(zone) % 60);
}

static inline bool draw_is_time_text(struct draw *d, enum attribute_type type, long double ms)
{
  return type == ATTRIBUTE_TIME && ms < 253402300000000.0L && draw_one_in(d, 2);
}

/* Write a number. A double has a sign of the decimal where it would otherwise be an integer that is not exact. */
static inline void draw_number_text(long double number, char out[64])
{
  if (number == (long double)(int64_t)number && number >= -0x1p63L && number < 0x1p63L)
    snprintf(out, 64, "%lld", (long long)number);
  else
    snprintf(out, 64, "%.17Lg", number);
}

static inline void draw_put_literal(struct draw *d, enum attribute_type type, const struct draw_value *value)
{
  char text[64];

  if (value->text) {
    draw_put_text(d, value->text);
  } else if (type == ATTRIBUTE_BOOL) {
    draw_put_word(d, value->number != 0 ? "true" : "false");
  } else if (draw_is_time_text(d, type, value->number)) {
    draw_time_text(d, value->number, text);
    draw_put_text(d, text);
  } else {
    draw_number_text(value->number, text);
    draw_put(d, "%s", text);
  }
}

/* Make a parameter's value or element. text: memory for it */
static inline struct value draw_parameter(struct draw *d, enum attribute_type type, const struct draw_value *value,
                                          char text[64])
{
  long double number = value->number;

  if (value->text)
    return (struct value){ VALUE_TEXT, .text = span_of_str(value->text) };
  if (type == ATTRIBUTE_BOOL)
    return (struct value){ VALUE_BOOL, .is_true = number != 0 };
  if (draw_is_time_text(d, type, number)) {
    draw_time_text(d, number, text);
    return (struct value){ VALUE_TEXT, .text = span_of_str(text) };
  }
  if ((long double)(double)number == number && draw_one_in(d, 2))
    return (struct value){ VALUE_NUMBER, .number = (double)number };
  if (number >= -0x1p63L && number < 0x1p63L && (long double)(int64_t)number == number)
    return (struct value){ VALUE_INTEGER, .integer = (int64_t)number };
  return (struct value){ VALUE_NUMBER, .number = (double)number };
}

/* Write a value, or a parameter in its place. */
static inline void draw_put_value(struct draw *d, enum attribute_type type, const struct draw_value *value)
{
  if (!draw_one_in(d, 4) || d->n_parameters == QUERY_PARAMETERS_MAX) {
    draw_put_literal(d, type, value);
    return;
  }
  size_t i = d->n_parameters++;
  d->parameters[i] = draw_parameter(d, type, value, d->parameter_texts[i][0]);
  draw_put(d, "$%zu", i + 1);
}

static inline void draw_put_list(struct draw *d, enum attribute_type type, const struct draw_node *node)
{
  if (d->n_parameters < QUERY_PARAMETERS_MAX && (node->n_values == 0 || draw_one_in(d, 3))) {
    size_t i = d->n_parameters++;
    for (size_t j = 0; j < node->n_values; j++)
      d->elements[i][j] = draw_parameter(d, type, &node->values[j], d->parameter_texts[i][j]);
    d->parameters[i] = (struct value){ VALUE_LIST, .list = { d->elements[i], node->n_values } };
    draw_put(d, "$%zu", i + 1);
    return;
  }
  for (size_t j = 0; j < node->n_values; j++) {
    draw_put(d, j == 0 ? "(" : ",");
    draw_put_value(d, type, &node->values[j]);
  }
  draw_put(d, ")");
}

static inline void draw_put_comparison(struct draw *d, const struct draw_node *node)
{
  const struct attribute *attribute = &d->attributes.v[node->attribute];
  bool is_list = strcmp(node->op, "in") == 0 || (strcmp(node->op, "has") == 0 && node->n_values != 1);

  draw_put(d, "%.*s", (int)attribute->name.n, (const char *)attribute->name.p);
  draw_put_space(d);
  draw_put_word(d, node->op);
  draw_put_space(d);
  if (is_list) {
    draw_put_list(d, attribute->type, node);
    return;
  }
  draw_put_value(d, attribute->type, &node->values[0]);
  if (strcmp(node->op, "between") == 0) {
    draw_put_space(d);
    draw_put_word(d, "and");
    draw_put_space(d);
    draw_put_value(d, attribute->type, &node->values[1]);
  }
}

static inline void draw_put_node(struct draw *d, size_t at);

/* Write an operand; in parentheses where it needs them, and sometimes where it does not. */
static inline void draw_put_operand(struct draw *d, size_t at, enum draw_kind around)
{
  enum draw_kind kind = d->nodes[at].kind;
  bool needs_parentheses = (kind == DRAW_OR && around != DRAW_OR) || (kind == DRAW_AND && around == DRAW_NOT);
  bool has_parentheses = needs_parentheses || draw_one_in(d, 8);

  draw_put(d, "%s", has_parentheses ? "(" : "");
  draw_put_node(d, at);
  draw_put(d, "%s", has_parentheses ? ")" : "");
}

static inline void draw_put_node(struct draw *d, size_t at)
{
  const struct draw_node *node = &d->nodes[at];
  struct span name = d->attributes.v[node->attribute].name;

  switch (node->kind) {
  case DRAW_AND:
  case DRAW_OR:
    draw_put_operand(d, node->a, node->kind);
    draw_put_space(d);
    draw_put_word(d, node->kind == DRAW_AND ? "and" : "or");
    draw_put_space(d);
    draw_put_operand(d, node->b, node->kind);
    break;
  case DRAW_NOT:
    draw_put_word(d, "not");
    draw_put_space(d);
    draw_put_operand(d, node->a, DRAW_NOT);
    break;
  case DRAW_HAS:
    draw_put_word(d, "has");
    draw_put(d, "(%.*s)", (int)name.n, (const char *)name.p);
    break;
  case DRAW_ALONE:
    draw_put(d, "%.*s", (int)name.n, (const char *)name.p);
    break;
  case DRAW_COMPARE:
    draw_put_comparison(d, node);
  }
}

/* --- drawing --- */

static inline void draw_comparison(struct draw *d, struct draw_node *node)
{
  static const char *const of_order[] = { "=", "!=", "<", "<=", ">", ">=", "in", "between" };
  static const char *const of_equality[] = { "=", "!=", "in" };
  enum attribute_type type = d->attributes.v[node->attribute].type;
  bool has_order = type == ATTRIBUTE_INTEGER || type == ATTRIBUTE_NUMBER || type == ATTRIBUTE_TIME;

  node->op = type == ATTRIBUTE_KEYWORDS ? "has" : has_order ? DRAW_FROM(d, of_order) : DRAW_FROM(d, of_equality);
  bool is_list = strcmp(node->op, "in") == 0 || strcmp(node->op, "has") == 0;
  node->n_values = is_list ? dice_below(d->dice, DRAW_VALUES) : strcmp(node->op, "between") == 0 ? 2 : 1;
  if (is_list && node->n_values == 0 && d->n_parameters + 8 > QUERY_PARAMETERS_MAX)
    node->n_values = 1; /* only a parameter can be an empty list */
  for (size_t i = 0; i < node->n_values; i++) {
    node->values[i] = draw_of_type(d, type);
    bool is_small = node->values[i].number > -1e9L && node->values[i].number < 1e14L;
    if ((type == ATTRIBUTE_INTEGER || type == ATTRIBUTE_TIME) && is_small && draw_one_in(d, 4))
      node->values[i].number += 0.5L; /* between two integers */
  }
}

/* Draw a filter of at most `n` leaves. Returns its node. */
static inline size_t draw_node(struct draw *d, size_t n)
{
  size_t at = d->n_nodes++;
  struct draw_node *node = &d->nodes[at];

  assert(at < DRAW_NODES);
  *node = (struct draw_node){ .attribute = dice_below(d->dice, d->attributes.n) };
  if (draw_one_in(d, 5)) {
    node->kind = DRAW_NOT;
    node->a = draw_node(d, n);
  } else if (n > 1) {
    size_t left = 1 + dice_below(d->dice, n - 1);
    node->kind = draw_one_in(d, 2) ? DRAW_AND : DRAW_OR;
    node->a = draw_node(d, left);
    node->b = draw_node(d, n - left);
  } else if (draw_one_in(d, 8)) {
    node->kind = DRAW_HAS;
  } else if (d->attributes.v[node->attribute].type == ATTRIBUTE_BOOL && draw_one_in(d, 2)) {
    node->kind = DRAW_ALONE;
  } else {
    node->kind = DRAW_COMPARE;
    draw_comparison(d, node);
  }
  return at;
}

/* Draw a filter of at most `n` leaves, up to 12: its text, its parameters, and its node 0. */
static inline void draw_filter(struct draw *d, size_t n)
{
  d->attributes = filter_attributes();
  d->n_nodes = d->n_text = d->n_parameters = 0;
  draw_node(d, n);
  draw_put_node(d, 0);
}

/* An item as the evaluator sees it, and as the engine does. */
struct draw_item {
  bool is_present[N_FILTER_ATTRIBUTES];
  struct draw_value of[N_FILTER_ATTRIBUTES];
  const char *tags[DRAW_TAGS];
  size_t n_tags;
  struct value values[N_FILTER_ATTRIBUTES];
  struct value tag_values[DRAW_TAGS];
};

static inline struct value draw_kept(enum attribute_type type, const struct draw_value *value)
{
  switch (type) {
  case ATTRIBUTE_BOOL:
    return (struct value){ VALUE_BOOL, .is_true = value->number != 0 };
  case ATTRIBUTE_NUMBER:
    return (struct value){ VALUE_NUMBER, .number = (double)value->number };
  case ATTRIBUTE_KEYWORD:
    return (struct value){ VALUE_TEXT, .text = span_of_str(value->text) };
  default:
    return (struct value){ VALUE_INTEGER, .integer = (int64_t)value->number };
  }
}

static inline void draw_tags(struct draw *d, struct draw_item *item)
{
  item->n_tags = 0;
  for (size_t i = 0; i < sizeof draw_texts / sizeof draw_texts[0] && item->n_tags < DRAW_TAGS; i++) {
    if (draw_one_in(d, 4)) {
      item->tag_values[item->n_tags] = (struct value){ VALUE_TEXT, .text = span_of_str(draw_texts[i]) };
      item->tags[item->n_tags++] = draw_texts[i];
    }
  }
  /* In bytewise order, as sets are kept. */
  for (size_t i = 1; i < item->n_tags; i++) {
    for (size_t j = i; j > 0 && span_compare(item->tag_values[j - 1].text, item->tag_values[j].text) > 0; j--) {
      struct value moved = item->tag_values[j];
      item->tag_values[j] = item->tag_values[j - 1];
      item->tag_values[j - 1] = moved;
    }
  }
}

static inline void draw_item(struct draw *d, struct draw_item *item)
{
  draw_tags(d, item);
  for (size_t a = 0; a < N_FILTER_ATTRIBUTES; a++) {
    enum attribute_type type = d->attributes.v[a].type;
    item->is_present[a] = !draw_one_in(d, 4);
    item->of[a] = draw_of_type(d, type);
    item->values[a] = (struct value){ .kind = VALUE_NULL };
    if (item->is_present[a] && type == ATTRIBUTE_KEYWORDS)
      item->values[a] = (struct value){ VALUE_LIST, .list = { item->tag_values, item->n_tags } };
    else if (item->is_present[a])
      item->values[a] = draw_kept(type, &item->of[a]);
  }
}

/* --- meaning --- */

static inline bool draw_is_equal(const struct draw_value *a, const struct draw_value *b)
{
  return a->text ? strcmp(a->text, b->text) == 0 : a->number == b->number;
}

static inline bool draw_is_in(const struct draw_node *node, const struct draw_value *value)
{
  for (size_t i = 0; i < node->n_values; i++) {
    if (draw_is_equal(&node->values[i], value))
      return true;
  }
  return false;
}

static inline bool draw_has_tag(const struct draw_node *node, const struct draw_item *item)
{
  for (size_t i = 0; i < item->n_tags; i++) {
    if (draw_is_in(node, &(struct draw_value){ .text = item->tags[i] }))
      return true;
  }
  return false;
}

/* Does a value that is present satisfy a comparison? */
static inline bool draw_compare(const struct draw_node *node, const struct draw_item *item)
{
  const struct draw_value *x = &item->of[node->attribute];
  long double first = node->values[0].number;

  if (strcmp(node->op, "has") == 0)
    return draw_has_tag(node, item);
  if (strcmp(node->op, "in") == 0 || strcmp(node->op, "=") == 0)
    return draw_is_in(node, x);
  if (strcmp(node->op, "!=") == 0)
    return !draw_is_in(node, x);
  if (strcmp(node->op, "<") == 0)
    return x->number < first;
  if (strcmp(node->op, "<=") == 0)
    return x->number <= first;
  if (strcmp(node->op, ">") == 0)
    return x->number > first;
  if (strcmp(node->op, ">=") == 0)
    return x->number >= first;
  return first <= x->number && x->number <= node->values[1].number; /* between */
}

/* Does the filter whose node is `at` admit the item? */
static inline bool draw_admits(const struct draw *d, size_t at, const struct draw_item *item)
{
  const struct draw_node *node = &d->nodes[at];

  switch (node->kind) {
  case DRAW_AND:
    return draw_admits(d, node->a, item) && draw_admits(d, node->b, item);
  case DRAW_OR:
    return draw_admits(d, node->a, item) || draw_admits(d, node->b, item);
  case DRAW_NOT:
    return !draw_admits(d, node->a, item);
  case DRAW_HAS:
    return item->is_present[node->attribute];
  case DRAW_ALONE:
    return item->is_present[node->attribute] && item->of[node->attribute].number != 0;
  default:
    return item->is_present[node->attribute] && draw_compare(node, item);
  }
}

#endif
