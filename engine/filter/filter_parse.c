/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of filters: recursive descent over the grammar of docs/filters.md, with a limit on how deep it goes. */
#include <assert.h>

#include "base/utf8.h"
#include "engine/filter/filter_comparison.h"
#include "engine/filter/filter_name.h"

/* The deepest tree has an `or` and an `and` at the top and for each pair of parentheses. It ends with the `not` and the
 * leaf of `x != y`, whose `and` is flattened. */
static_assert(2 + 2 * FILTER_NESTING_MAX + 2 <= FILTER_DEPTH_MAX, "a tree is no deeper than the header says");

static err_t parse_or(struct filter_parser *p, const struct filter_node **out);

/* Go one level deeper. */
static err_t enter(struct filter_parser *p)
{
  if (p->nesting == FILTER_NESTING_MAX)
    FILTER_FAIL(p->build.text, p->build.offset, "more than %d parentheses and nots inside one another",
                FILTER_NESTING_MAX);
  p->nesting++;
  return filter_parser_advance(p);
}

static err_t take_attribute(struct filter_parser *p, size_t *out)
{
  if (p->token.kind == TOKEN_NAME)
    TRY(filter_name_find(p->build.text, p->token.source, p->attributes, out));
  return filter_parser_take(p, TOKEN_NAME, "an attribute");
}

/* Parse has(attribute). */
static err_t parse_has(struct filter_parser *p, const struct filter_node **out)
{
  size_t attribute = 0;

  TRY(filter_parser_advance(p));
  TRY(filter_parser_take(p, TOKEN_OPEN, "'('"));
  TRY(take_attribute(p, &attribute));
  TRY(filter_parser_take(p, TOKEN_CLOSE, "')'"));
  return filter_build_has(&p->build, attribute, out);
}

static err_t parse_parentheses(struct filter_parser *p, const struct filter_node **out)
{
  TRY(enter(p));
  TRY(parse_or(p, out));
  p->nesting--;
  return filter_parser_take(p, TOKEN_CLOSE, "'and', 'or' or ')'");
}

static err_t parse_operand(struct filter_parser *p, const struct filter_node **out);

static err_t parse_not(struct filter_parser *p, const struct filter_node **out)
{
  const struct filter_node *operand;

  TRY(enter(p));
  TRY(parse_operand(p, &operand));
  p->nesting--;
  return filter_build_not(&p->build, operand, out);
}

static err_t parse_operand(struct filter_parser *p, const struct filter_node **out)
{
  size_t attribute = 0;

  switch (p->token.kind) {
  case TOKEN_NOT:
    return parse_not(p, out);
  case TOKEN_OPEN:
    return parse_parentheses(p, out);
  case TOKEN_HAS:
    return parse_has(p, out);
  case TOKEN_NAME:
    TRY(take_attribute(p, &attribute));
    return filter_comparison_parse(p, attribute, out);
  default:
    return filter_parser_expected(p, "an attribute, 'has', 'not' or '('");
  }
}

/* Parse operands that `separator` separates. A single one is returned as it is: if it is a group of this kind in
 * parentheses, flattening it would only make it anew, at each pair of parentheses. */
static err_t parse_group(struct filter_parser *p, enum filter_kind kind, enum filter_token_kind separator,
                         err_t (*parse)(struct filter_parser *, const struct filter_node **),
                         const struct filter_node **out)
{
  struct filter_group group = filter_build_open(&p->build, kind);
  const struct filter_node *operand;

  TRY(parse(p, &operand));
  if (p->token.kind != separator) {
    *out = operand;
    return ERR_OK;
  }
  filter_build_add(&p->build, &group, operand);
  while (p->token.kind == separator) {
    TRY(filter_parser_advance(p));
    TRY(parse(p, &operand));
    filter_build_add(&p->build, &group, operand);
  }
  return filter_build_close(&p->build, &group, out);
}

static err_t parse_and(struct filter_parser *p, const struct filter_node **out)
{
  return parse_group(p, FILTER_AND, TOKEN_AND, parse_operand, out);
}

static err_t parse_or(struct filter_parser *p, const struct filter_node **out)
{
  return parse_group(p, FILTER_OR, TOKEN_OR, parse_and, out);
}

/* Check what is needed before the text is split into tokens. */
static err_t verify_input(const struct filter_parser *p)
{
  struct span text = p->build.text;
  size_t good;

  if (text.n > QUERY_FILTER_MAX)
    FAIL(ERR_QUERY, "filter: %zu bytes are more than the limit of %d", text.n, QUERY_FILTER_MAX);
  if (p->n_parameters > QUERY_PARAMETERS_MAX)
    FAIL(ERR_QUERY, "filter: %zu parameters are more than the limit of %d", p->n_parameters, QUERY_PARAMETERS_MAX);
  TRY(query_verify_parameters(p->parameters, p->n_parameters));
  good = utf8_prefix(text);
  if (good < text.n)
    FILTER_FAIL(text, good, "%s", text.p[good] == 0 ? "a zero byte" : "bytes that are not UTF-8");
  return ERR_OK;
}

static err_t verify_all_are_used(const struct filter_parser *p)
{
  for (size_t i = 0; i < p->n_parameters; i++) {
    if (!(p->used >> i & 1))
      FAIL(ERR_QUERY, "filter: the parameter $%zu is not used", i + 1);
  }
  return ERR_OK;
}

err_t filter_parse(struct span text, const struct value *parameters, size_t n, const struct attributes *attributes,
                   struct region *region, const struct filter_node **out)
{
  struct filter_parser p = { .build = { .region = region, .text = text },
                             .parameters = parameters,
                             .n_parameters = n,
                             .attributes = attributes,
                             .token = { .source = span_of(text.p, 0) } };
  const struct filter_node *root;

  assert(attributes->n <= ATTRIBUTES_MAX);
  TRY(verify_input(&p));
  TRY(filter_parser_advance(&p));
  if (p.token.kind == TOKEN_END)
    FAIL(ERR_QUERY, "filter: it is empty");
  TRY(parse_or(&p, &root));
  if (p.token.kind != TOKEN_END)
    return filter_parser_expected(&p, "'and', 'or' or the end");
  TRY(verify_all_are_used(&p));
  *out = root;
  return ERR_OK;
}
