/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of all types in their normal form: what is always or never true of an attribute that is present becomes
 * has(attribute) or nothing. */
#include "engine/filter/filter_leaf.h"

#include "base/compare.h"
#include "engine/filter/filter_doubles.h"
#include "engine/filter/filter_integers.h"
#include "engine/filter/filter_sort.h"

static err_t make_bool(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                       const struct filter_values *values, const struct filter_node **out)
{
  bool has[2] = { false, false }; /* of false and true: does it satisfy the comparison? */

  for (size_t i = 0; i < values->n; i++) {
    bool value;
    TRY(filter_values_bool(values, i, &value));
    has[op == TOKEN_NOT_EQUAL ? !value : value] = true;
  }
  if (has[false] == has[true])
    return has[true] ? filter_build_has(b, attribute, out) : filter_build_nothing(out);
  return filter_build_leaf(b, (struct filter_node){ FILTER_IS, attribute, .is_true = has[true] }, out);
}

static err_t make_texts(struct filter_build *b, size_t attribute, const struct filter_values *values,
                        const struct filter_node **out)
{
  struct span *texts;

  TRY(region_array(b->region, values->n, sizeof *texts, &texts));
  for (size_t i = 0; i < values->n; i++)
    TRY(filter_values_text(values, i, &texts[i]));
  size_t n = filter_sort_once(texts, values->n, sizeof *texts, compare_span);
  if (n == 0)
    return filter_build_nothing(out);
  return filter_build_leaf(b, (struct filter_node){ FILTER_TEXTS, attribute, .texts = { texts, n } }, out);
}

/* Make the tree of an operator other than !=. */
static err_t make_plain(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                        const struct filter_values *values, const struct filter_node **out)
{
  switch (values->attribute->type) {
  case ATTRIBUTE_BOOL:
    return make_bool(b, attribute, op, values, out);
  case ATTRIBUTE_NUMBER:
    return filter_doubles_make(b, attribute, op, values, out);
  case ATTRIBUTE_INTEGER:
  case ATTRIBUTE_TIME:
    return filter_integers_make(b, attribute, op, values, out);
  default:
    return make_texts(b, attribute, values, out);
  }
}

err_t filter_leaf_make(struct filter_build *b, size_t attribute, enum filter_token_kind op,
                       const struct filter_values *values, const struct filter_node **out)
{
  const struct filter_node *has, *equal, *other;

  if (op != TOKEN_NOT_EQUAL || values->attribute->type == ATTRIBUTE_BOOL)
    return make_plain(b, attribute, op, values, out);
  struct filter_group both = filter_build_open(b, FILTER_AND);
  TRY(filter_build_has(b, attribute, &has));
  TRY(make_plain(b, attribute, TOKEN_EQUAL, values, &equal));
  TRY(filter_build_not(b, equal, &other));
  filter_build_add(b, &both, has);
  filter_build_add(b, &both, other);
  return filter_build_close(b, &both, out);
}
