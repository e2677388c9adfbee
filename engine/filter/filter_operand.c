/* SPDX-License-Identifier: Apache-2.0 */
/* Taking values. Whether they fit the attribute's type is checked later, when all of them are there. */
#include "engine/filter/filter_operand.h"

#include <assert.h>

static_assert(QUERY_PARAMETERS_MAX <= 64, "`used` has a bit for each");

static const char *expected_value(enum attribute_type type)
{
  static const char *const names[N_ATTRIBUTE_TYPES] = {
    [ATTRIBUTE_BOOL] = "true or false",
    [ATTRIBUTE_KEYWORD] = "a text in single quotes",
    [ATTRIBUTE_KEYWORDS] = "a text in single quotes",
    [ATTRIBUTE_INTEGER] = "a number",
    [ATTRIBUTE_NUMBER] = "a number",
    [ATTRIBUTE_TIME] = "a time",
  };

  return names[type];
}

/* Take a parameter. */
static err_t take_parameter(struct filter_parser *p, struct value *out)
{
  size_t number = p->token.parameter;

  if (number > p->n_parameters)
    FILTER_FAIL(p->build.text, p->build.offset, "$%zu has no value: the filter has %zu parameter%s", number,
                p->n_parameters, p->n_parameters == 1 ? "" : "s");
  p->used |= (uint64_t)1 << (number - 1);
  *out = p->parameters[number - 1];
  return filter_parser_advance(p);
}

/* Take a literal or a parameter that stands for one. */
static err_t take_value(struct filter_parser *p, enum attribute_type type, struct value *out,
                        struct filter_place *place)
{
  *place = (struct filter_place){ p->build.offset, p->token.parameter };
  if (p->token.kind == TOKEN_PARAMETER)
    return take_parameter(p, out);
  if (p->token.kind != TOKEN_LITERAL)
    return filter_parser_expected(p, expected_value(type));
  *out = p->token.value;
  return filter_parser_advance(p);
}

/* Count the values of a list: one parameter can be used many times. */
static err_t count_list_values(struct filter_parser *p, size_t n, size_t offset)
{
  p->n_list_values += n;
  if (p->n_list_values > FILTER_VALUES_MAX)
    FILTER_FAIL(p->build.text, offset, "the lists have more than %d values together; a parameter counts at each use",
                FILTER_VALUES_MAX);
  return ERR_OK;
}

/* The values that stand in a filter's text, and their places. */
struct list {
  struct value *v;
  struct filter_place *places;
  size_t n, room;
};

static err_t grow_list(struct filter_parser *p, struct list *list)
{
  struct list grown = { .n = list->n, .room = list->room ? 2 * list->room : 2 };

  TRY(region_array(p->build.region, grown.room, sizeof *grown.v, &grown.v));
  TRY(region_array(p->build.region, grown.room, sizeof *grown.places, &grown.places));
  if (list->n > 0) {
    memcpy(grown.v, list->v, list->n * sizeof *grown.v);
    memcpy(grown.places, list->places, list->n * sizeof *grown.places);
  }
  *list = grown;
  return ERR_OK;
}

static err_t take_element(struct filter_parser *p, enum attribute_type type, struct list *list)
{
  if (list->n == list->room)
    TRY(grow_list(p, list));
  TRY(take_value(p, type, &list->v[list->n], &list->places[list->n]));
  list->n++;
  return ERR_OK;
}

/* Take "(a, b, c)". */
static err_t take_list(struct filter_parser *p, enum attribute_type type, struct list *list)
{
  size_t offset = p->build.offset;

  TRY(filter_parser_take(p, TOKEN_OPEN, "'(' or a parameter"));
  TRY(take_element(p, type, list));
  while (p->token.kind == TOKEN_COMMA) {
    TRY(filter_parser_advance(p));
    TRY(take_element(p, type, list));
  }
  TRY(filter_parser_take(p, TOKEN_CLOSE, "',' or ')'"));
  return count_list_values(p, list->n, offset);
}

static void use_list(const struct list *list, struct filter_values *out)
{
  out->v = list->v;
  out->places = list->places;
  out->n = list->n;
}

/* Take a parameter that is a list. */
static err_t take_list_parameter(struct filter_parser *p, struct list *list, struct filter_values *out)
{
  size_t offset = p->build.offset, number = p->token.parameter;

  TRY(take_element(p, out->attribute->type, list));
  if (list->v[0].kind != VALUE_LIST)
    FILTER_FAIL(p->build.text, offset, "expected a list, and $%zu is a single value", number);
  out->v = list->v[0].list.v;
  out->n = list->v[0].list.n;
  out->places = list->places;
  out->is_parameter_list = true;
  return count_list_values(p, out->n, offset);
}

/* Does the token stand for a list of values? */
static bool is_list(const struct filter_parser *p)
{
  if (p->token.kind != TOKEN_PARAMETER || p->token.parameter > p->n_parameters)
    return p->token.kind == TOKEN_OPEN;
  return p->parameters[p->token.parameter - 1].kind == VALUE_LIST;
}

err_t filter_operand_take(struct filter_parser *p, enum filter_token_kind op, struct filter_values *out)
{
  struct list list = { 0 };
  enum attribute_type type = out->attribute->type;

  if (op == TOKEN_IN || (op == TOKEN_HAS && is_list(p))) {
    if (p->token.kind == TOKEN_PARAMETER)
      return take_list_parameter(p, &list, out);
    TRY(take_list(p, type, &list));
  } else {
    TRY(take_element(p, type, &list));
  }
  if (op == TOKEN_BETWEEN) {
    TRY(filter_parser_take(p, TOKEN_AND, "'and'"));
    TRY(take_element(p, type, &list));
  }
  use_list(&list, out);
  return ERR_OK;
}
