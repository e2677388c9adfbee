/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators each type takes, and parsing them. */
#include "engine/filter/filter_comparison.h"

#include "engine/filter/filter_leaf.h"
#include "engine/filter/filter_operand.h"

#define BIT(kind) (1u << (kind))

/* The operators that each type takes, and how an error lists them. */
static const struct {
  unsigned kinds;
  const char *list;
} operators[N_ATTRIBUTE_TYPES] = {
#define ORDER                                                                                        \
  BIT(TOKEN_EQUAL) | BIT(TOKEN_NOT_EQUAL) | BIT(TOKEN_LESS) | BIT(TOKEN_AT_MOST) | BIT(TOKEN_MORE) | \
      BIT(TOKEN_AT_LEAST) | BIT(TOKEN_IN) | BIT(TOKEN_BETWEEN),                                      \
      "=, !=, <, <=, >, >=, in or between"
  [ATTRIBUTE_BOOL] = { BIT(TOKEN_EQUAL) | BIT(TOKEN_NOT_EQUAL) | BIT(TOKEN_IN), "=, != or in" },
  [ATTRIBUTE_KEYWORD] = { BIT(TOKEN_EQUAL) | BIT(TOKEN_NOT_EQUAL) | BIT(TOKEN_IN), "=, != or in" },
  [ATTRIBUTE_KEYWORDS] = { BIT(TOKEN_HAS), "has" },
  [ATTRIBUTE_INTEGER] = { ORDER },
  [ATTRIBUTE_NUMBER] = { ORDER },
  [ATTRIBUTE_TIME] = { ORDER },
#undef ORDER
};

static bool is_operator(enum filter_token_kind kind)
{
  return kind >= TOKEN_EQUAL && kind <= TOKEN_BETWEEN;
}

static err_t fail_operator(const struct filter_parser *p, const struct attribute *attribute)
{
  char found[FILTER_PIECE_BYTES];

  FILTER_FAIL(p->build.text, p->build.offset, "%.*s is %s: expected %s after it, not %s", (int)attribute->name.n,
              (const char *)attribute->name.p, filter_values_type(attribute->type), operators[attribute->type].list,
              filter_token_describe(&p->token, found));
}

err_t filter_comparison_parse(struct filter_parser *p, size_t attribute, const struct filter_node **out)
{
  struct filter_values values = { .text = p->build.text, .attribute = &p->attributes->v[attribute] };
  enum attribute_type type = values.attribute->type;
  enum filter_token_kind op = p->token.kind;

  if (type == ATTRIBUTE_BOOL && !is_operator(op))
    return filter_build_leaf(&p->build, (struct filter_node){ FILTER_IS, attribute, .is_true = true }, out);
  if (!(operators[type].kinds & BIT(op)))
    return fail_operator(p, values.attribute);
  TRY(filter_parser_advance(p));
  TRY(filter_operand_take(p, op, &values));
  return filter_leaf_make(&p->build, attribute, op, &values, out);
}
