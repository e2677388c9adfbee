/* SPDX-License-Identifier: Apache-2.0 */
/* Verify that the held-out item of each query is among the items. Targets are sorted, not items, because there are
 * fewer of them. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "daemon/ctl/eval/ctl_eval_files.h"

struct target {
  int64_t id;
  bool is_item;
};

static int by_id(const void *a, const void *b)
{
  const struct target *x = a, *y = b;

  return (x->id > y->id) - (x->id < y->id);
}

/* Remove repeated targets. Returns how many remain. */
static size_t drop_repeated(struct target *targets, size_t n)
{
  size_t n_kept = 0;

  for (size_t i = 0; i < n; i++) {
    if (n_kept == 0 || targets[n_kept - 1].id != targets[i].id)
      targets[n_kept++] = targets[i];
  }
  return n_kept;
}

static struct target *find(struct target *targets, size_t n, int64_t id)
{
  return bsearch(&(struct target){ .id = id }, targets, n, sizeof *targets, by_id);
}

err_t ctl_eval_queries_verify_targets(const struct ctl_eval_queries *queries, const struct ctl_eval_items *items)
{
  AUTO(mem_free) struct target *targets = NULL;

  TRY(mem_array(queries->n, sizeof *targets, &targets));
  for (size_t i = 0; i < queries->n; i++)
    targets[i].id = tensor_i64(&queries->target_ids, i);
  qsort(targets, queries->n, sizeof *targets, by_id);
  size_t n = drop_repeated(targets, queries->n);
  for (size_t i = 0; i < items->n; i++) {
    struct target *target = find(targets, n, tensor_i64(&items->ids, i));
    if (target)
      target->is_item = true;
  }
  for (size_t i = 0; i < queries->n; i++) {
    int64_t id = tensor_i64(&queries->target_ids, i);
    if (!find(targets, n, id)->is_item)
      FAIL(ERR_ITEM, "%s: tensor \"target_ids\", row %zu: item %" PRId64 " is not among the items of %s",
           safetensors_path(queries->file), i, id, safetensors_path(items->file));
  }
  return ERR_OK;
}
