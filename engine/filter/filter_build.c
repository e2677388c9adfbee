/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a filter's tree. Operands of open groups lie on one stack, so that their number need not be known before. */
#include "engine/filter/filter_build.h"

#include <assert.h>

#include "engine/filter/filter_fail.h"
#include "engine/filter/filter_merge.h"

static const struct filter_node all = { .kind = FILTER_ALL };
static const struct filter_node none = { .kind = FILTER_NONE };

err_t filter_build_leaf(struct filter_build *b, struct filter_node leaf, const struct filter_node **out)
{
  struct filter_node *node;

  if (b->n_nodes == FILTER_NODES_MAX)
    FILTER_FAIL(b->text, b->offset, "the filter has more than %d comparisons, ands, ors and nots", FILTER_NODES_MAX);
  b->n_nodes++;
  TRY(region_array(b->region, 1, sizeof *node, &node));
  *node = leaf;
  *out = node;
  return ERR_OK;
}

err_t filter_build_has(struct filter_build *b, size_t attribute, const struct filter_node **out)
{
  return filter_build_leaf(b, (struct filter_node){ .kind = FILTER_HAS, .attribute = attribute }, out);
}

err_t filter_build_nothing(const struct filter_node **out)
{
  *out = &none;
  return ERR_OK;
}

/* Make a node that has operands. */
static err_t make_inner(struct filter_build *b, enum filter_kind kind, const struct filter_node *const *operands,
                        size_t n, const struct filter_node **out)
{
  const struct filter_node **copy;

  TRY(region_array(b->region, n, sizeof *copy, &copy));
  memcpy(copy, operands, n * sizeof *copy);
  return filter_build_leaf(b, (struct filter_node){ .kind = kind, .operands = { copy, n } }, out);
}

err_t filter_build_not(struct filter_build *b, const struct filter_node *operand, const struct filter_node **out)
{
  switch (operand->kind) {
  case FILTER_ALL:
    *out = &none;
    return ERR_OK;
  case FILTER_NONE:
    *out = &all;
    return ERR_OK;
  case FILTER_NOT:
    b->n_nodes--;
    *out = operand->operands.v[0];
    return ERR_OK;
  default:
    return make_inner(b, FILTER_NOT, &operand, 1, out);
  }
}

struct filter_group filter_build_open(const struct filter_build *b, enum filter_kind kind)
{
  return (struct filter_group){ kind, b->n_pending, b->n_nodes, false };
}

static void push(struct filter_build *b, const struct filter_node *operand)
{
  assert(b->n_pending < FILTER_NODES_MAX); /* each is a node of its own */
  b->pending[b->n_pending++] = operand;
}

void filter_build_add(struct filter_build *b, struct filter_group *group, const struct filter_node *operand)
{
  enum filter_kind neutral = group->kind == FILTER_AND ? FILTER_ALL : FILTER_NONE;

  if (operand->kind == group->kind) {
    b->n_nodes--; /* its operands become the group's */
    for (size_t i = 0; i < operand->operands.n; i++)
      push(b, operand->operands.v[i]);
  } else if (operand->kind == FILTER_ALL || operand->kind == FILTER_NONE) {
    group->is_decided |= operand->kind != neutral;
  } else {
    push(b, operand);
  }
}

err_t filter_build_close(struct filter_build *b, const struct filter_group *group, const struct filter_node **out)
{
  const struct filter_node **operands = b->pending + group->first;
  size_t n = b->n_pending - group->first, n_added = n;
  bool is_decided = group->is_decided;

  b->n_pending = group->first;
  if (group->kind == FILTER_AND)
    TRY(filter_merge(operands, &n, b->region, &is_decided));
  b->n_nodes -= n_added - n; /* merging drops leaves only */
  if (n > 1 && !is_decided)
    return make_inner(b, group->kind, operands, n, out);
  if (n == 1 && !is_decided) {
    *out = operands[0];
    return ERR_OK;
  }
  b->n_nodes = group->n_nodes;
  *out = (group->kind == FILTER_AND) != is_decided ? &all : &none;
  return ERR_OK;
}
