/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file as a tree whose nodes know their line: over libyaml, one document, at most 1 MiB.
 *
 * Nodes are borrowed from the tree. Thread: one. Blocks: on the file.
 */
#ifndef DAEMON_CONFIG_YAML_TREE_H
#define DAEMON_CONFIG_YAML_TREE_H

#include <yaml.h>

#include "base/err.h"
#include "base/span.h"

struct yaml_tree;

enum yaml_kind { YAML_KIND_NOTHING, YAML_KIND_TEXT, YAML_KIND_LIST, YAML_KIND_MAP };

/* Returns ERR_CONFIG with `path:line: reason` when the file cannot be read, is not YAML or holds several documents. */
err_t yaml_tree_open(const char *path, struct yaml_tree **out);
void yaml_tree_close(struct yaml_tree **tree);

/* NULL for an empty document. */
const yaml_node_t *yaml_tree_root(struct yaml_tree *tree);

/* Line of the node, from 1. */
int yaml_tree_line(const yaml_node_t *node);

/* YAML_KIND_NOTHING: NULL, `~`, `null` or no text at all, unquoted. */
enum yaml_kind yaml_tree_kind(const yaml_node_t *node);

/* Text of a node of YAML_KIND_TEXT; it may hold zero bytes. */
struct span yaml_tree_text(const yaml_node_t *node);

size_t yaml_tree_n_items(const yaml_node_t *list);
const yaml_node_t *yaml_tree_item(struct yaml_tree *tree, const yaml_node_t *list, size_t i);

size_t yaml_tree_n_pairs(const yaml_node_t *map);
void yaml_tree_pair(struct yaml_tree *tree, const yaml_node_t *map, size_t i, const yaml_node_t **key,
                    const yaml_node_t **value);

#endif
