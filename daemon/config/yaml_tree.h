/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file of one document and at most 1 MiB, parsed by libyaml into a tree. Each node knows its line, for error
 * messages. Nodes are borrowed from the tree.
 *
 * Thread: one. Blocks: on the file.
 */
#ifndef DAEMON_CONFIG_YAML_TREE_H
#define DAEMON_CONFIG_YAML_TREE_H

#include <yaml.h>

#include "base/err.h"
#include "base/span.h"

struct yaml_tree;

enum yaml_kind { YAML_KIND_NOTHING, YAML_KIND_TEXT, YAML_KIND_LIST, YAML_KIND_MAP };

/* Read and parse a file.
 *
 * may_wait  the file may be a pipe, and is waited for; else only a regular file is read
 *
 * Returns ERR_CONFIG with `path:line: reason` if it cannot be read, is not YAML or has several documents; ERR_MEMORY.
 */
err_t yaml_tree_open(const char *path, bool may_wait, struct yaml_tree **out);
void yaml_tree_close(struct yaml_tree **tree);

/* Return the root; NULL if the document is empty. */
const yaml_node_t *yaml_tree_root(struct yaml_tree *tree);

/* Return the node's line; the first is 1. */
int yaml_tree_line(const yaml_node_t *node);

/* Return the kind of a node. NULL, and `~`, `null` or empty text without quotes, are YAML_KIND_NOTHING. */
enum yaml_kind yaml_tree_kind(const yaml_node_t *node);

/* Return the text of a node of YAML_KIND_TEXT. It may contain zero bytes. */
struct span yaml_tree_text(const yaml_node_t *node);

size_t yaml_tree_n_items(const yaml_node_t *list);
const yaml_node_t *yaml_tree_item(struct yaml_tree *tree, const yaml_node_t *list, size_t i);

size_t yaml_tree_n_pairs(const yaml_node_t *map);
void yaml_tree_pair(struct yaml_tree *tree, const yaml_node_t *map, size_t i, const yaml_node_t **key,
                    const yaml_node_t **value);

#endif
