/* SPDX-License-Identifier: Apache-2.0 */
/* Making the nodes of a filter's tree: and, or and not are folded, flattened and merged as they are made. */
#ifndef ENGINE_FILTER_FILTER_BUILD_H
#define ENGINE_FILTER_FILTER_BUILD_H

#include "base/region.h"
#include "engine/filter/filter.h"

/* A tree that is being made. */
struct filter_build {
  struct region *region;
  struct span text; /* the filter, for errors */
  size_t offset;    /* where in it the parser is */
  size_t n_nodes;   /* that the tree has so far: a node that is folded, flattened or merged no longer counts */
  size_t n_pending;
  const struct filter_node *pending[FILTER_NODES_MAX]; /* operands of the groups that are open */
};

/* An `and` or an `or` whose operands are still coming. Groups nest: the one opened last is closed first. */
struct filter_group {
  enum filter_kind kind;
  size_t first;    /* its first pending operand */
  size_t n_nodes;  /* of the tree without its operands */
  bool is_decided; /* an operand alone decides it */
};

/* Copy a leaf into the tree. Returns ERR_OK; ERR_QUERY beyond FILTER_NODES_MAX; ERR_MEMORY. */
err_t filter_build_leaf(struct filter_build *b, struct filter_node leaf, const struct filter_node **out);

/* Make has(attribute). Errors as above. */
err_t filter_build_has(struct filter_build *b, size_t attribute, const struct filter_node **out);

/* Give the constant that is false for every item. Returns ERR_OK. */
err_t filter_build_nothing(const struct filter_node **out);

/* The node that is true where the operand is false. Errors as above. */
err_t filter_build_not(struct filter_build *b, const struct filter_node *operand, const struct filter_node **out);

/* Open a group, FILTER_AND or FILTER_OR, before its operands are made. */
struct filter_group filter_build_open(const struct filter_build *b, enum filter_kind kind);

void filter_build_add(struct filter_build *b, struct filter_group *group, const struct filter_node *operand);

/* Close a group. Errors as above. */
err_t filter_build_close(struct filter_build *b, const struct filter_group *group, const struct filter_node **out);

#endif
