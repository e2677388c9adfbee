/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of sluicectl eval: their types, the file that has their values, and the filter over them. */
#ifndef DAEMON_CTL_CTL_EVAL_ATTRIBUTES_H
#define DAEMON_CTL_CTL_EVAL_ATTRIBUTES_H

#include "daemon/ctl/eval/ctl_eval_files.h"

/* Add an attribute that is given as NAME:TYPE.
 *
 * v, n  the list, with room for ATTRIBUTES_MAX, and its length
 *
 * Returns ERR_USAGE with what is expected; ERR_MEMORY.
 */
err_t ctl_eval_attributes_add(struct attribute *v, size_t *n, const char *text);

/* Read a file with the attributes of one item in each line, and apply them to items that the engine has.
 *
 * watch  called with the number of lines done
 *
 * Returns ERR_SYSTEM; ERR_ITEM with the file, the line, the field and what is expected: an id that is not among the
 * items or occurs twice, an attribute that the engine does not have, a value of the wrong type.
 */
err_t ctl_eval_attributes_apply(const char *path, const struct ctl_eval_items *items, struct engine *e,
                                const struct ctl_eval_watch *watch);

/* Give all queries a filter.
 *
 * parameters  a JSON list; NULL: none
 * region      holds the parsed filter
 *
 * Returns ERR_USAGE; ERR_QUERY with the position of the mistake; ERR_MEMORY.
 */
err_t ctl_eval_queries_set_filter(struct ctl_eval_queries *queries, const struct engine *e, const char *filter,
                                  const char *parameters, struct region *region);

#endif
