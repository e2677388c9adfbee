/* SPDX-License-Identifier: Apache-2.0 */
/* The items' file: check its tensors, and apply its items to the engine in batches. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "daemon/ctl/eval/ctl_eval_files.h"

/* Items in one batch. */
enum { APPLY_ITEMS = 4096 };

const char ctl_eval_space[] = "eval";

void ctl_eval_key_of(int64_t id, uint8_t key[CTL_EVAL_KEY_BYTES])
{
  uint64_t bits = __builtin_bswap64((uint64_t)id ^ UINT64_C(1) << 63);

  memcpy(key, &bits, CTL_EVAL_KEY_BYTES);
}

int64_t ctl_eval_id_of(struct span key)
{
  uint64_t bits;

  memcpy(&bits, key.p, CTL_EVAL_KEY_BYTES);
  return (int64_t)(__builtin_bswap64(bits) ^ UINT64_C(1) << 63);
}

struct numbered {
  int64_t id;
  size_t row;
};

static int by_id(const void *a, const void *b)
{
  const struct numbered *x = a, *y = b;

  if (x->id != y->id)
    return x->id < y->id ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row);
}

static bool are_rising(const struct ctl_eval_items *items)
{
  for (size_t i = 1; i < items->n; i++) {
    if (tensor_i64(&items->ids, i - 1) >= tensor_i64(&items->ids, i))
      return false;
  }
  return true;
}

static err_t verify_distinct(const struct ctl_eval_items *items)
{
  AUTO(mem_free) struct numbered *sorted = NULL;

  if (are_rising(items))
    return ERR_OK;
  TRY(mem_array(items->n, sizeof *sorted, &sorted));
  for (size_t i = 0; i < items->n; i++)
    sorted[i] = (struct numbered){ tensor_i64(&items->ids, i), i };
  qsort(sorted, items->n, sizeof *sorted, by_id);
  for (size_t i = 1; i < items->n; i++) {
    if (sorted[i].id == sorted[i - 1].id)
      FAIL(ERR_ITEM, "%s: tensor \"item_ids\": rows %zu and %zu are both item %" PRId64 ": keep one row for each item",
           safetensors_path(items->file), sorted[i - 1].row, sorted[i].row, sorted[i].id);
  }
  return ERR_OK;
}

static err_t find_ids(struct ctl_eval_items *items)
{
  const char *path = safetensors_path(items->file);

  if (!safetensors_has(items->file, "item_ids"))
    FAIL(ERR_MODEL, "%s: there is no tensor \"item_ids\": it must have the id of each item, I64 [items]", path);
  TRY(safetensors_tensor(items->file, "item_ids", TENSOR_TYPE_BIT(TENSOR_I64), &items->ids));
  if (items->ids.shape.n_dims != 1 || items->ids.shape.dim[0] == 0)
    FAIL(ERR_MODEL, "%s: tensor \"item_ids\" must have shape [items], with at least one item", path);
  items->n = items->ids.shape.dim[0];
  return verify_distinct(items);
}

static err_t find_parts(struct ctl_eval_items *items, bool has_codes)
{
  const char *path = safetensors_path(items->file);
  const char *name = has_codes ? "codes" : "item_embeddings";
  char shape[TENSOR_SHAPE_TEXT_MAX];

  if (!safetensors_has(items->file, name))
    FAIL(ERR_MODEL, "%s: there is no tensor \"%s\", which this model needs: %s", path, name,
         has_codes ? "U8 [items, splits]" : "F32 [items, dimension]");
  TRY(safetensors_tensor(items->file, name, has_codes ? TENSOR_TYPE_BIT(TENSOR_U8) : TENSOR_FLOATS, &items->parts));
  tensor_shape_print(&items->parts.shape, shape);
  if (items->parts.shape.n_dims != 2)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has shape %s; it must have a row for each item", path, name, shape);
  if (items->parts.shape.dim[0] != items->n)
    FAIL(ERR_MODEL, "%s: tensor \"%s\" has shape %s, but \"item_ids\" has %zu items: both need the same number of rows",
         path, name, shape, items->n);
  items->width = items->parts.shape.dim[1];
  return ERR_OK;
}

err_t ctl_eval_items_open(const char *path, bool has_codes, struct ctl_eval_items *out)
{
  AUTO(ctl_eval_items_fini) struct ctl_eval_items items = { 0 };

  TRY(safetensors_map(path, &items.file));
  TRY(find_ids(&items));
  TRY(find_parts(&items, has_codes));
  *out = items;
  items = (struct ctl_eval_items){ 0 };
  return ERR_OK;
}

void ctl_eval_items_fini(struct ctl_eval_items *items)
{
  safetensors_close(&items->file);
}

/* A batch of items, and the memory that its changes point to. */
struct put_batch {
  struct item_change changes[APPLY_ITEMS];
  struct part parts[APPLY_ITEMS];
  uint8_t keys[APPLY_ITEMS][CTL_EVAL_KEY_BYTES];
  float *numbers; /* [APPLY_ITEMS][width] vectors; NULL if the items have codes */
};

static void close_batch(struct put_batch **b)
{
  if (*b)
    mem_free(&(*b)->numbers);
  mem_free(b);
}

static void fill_batch(const struct ctl_eval_items *items, size_t first, size_t n, struct put_batch *b)
{
  if (b->numbers)
    tensor_floats(&items->parts, first * items->width, n * items->width, b->numbers);
  for (size_t i = 0; i < n; i++) {
    ctl_eval_key_of(tensor_i64(&items->ids, first + i), b->keys[i]);
    b->parts[i] = (struct part){ .space = span_of_str(ctl_eval_space) };
    if (b->numbers)
      b->parts[i].vector = (struct floats){ b->numbers + i * items->width, items->width };
    else
      b->parts[i].codes = span_of(items->parts.bytes.p + (first + i) * items->width, items->width);
    b->changes[i] = (struct item_change){
      .key = span_of(b->keys[i], CTL_EVAL_KEY_BYTES), .is_whole = true, .parts = &b->parts[i], .n_parts = 1
    };
  }
}

static err_t check_batch(const struct ctl_eval_items *items, const struct engine *e, size_t first, size_t n,
                         const struct put_batch *b)
{
  for (size_t i = 0; i < n; i++) {
    err_code_t result = engine_check_item(e, &b->changes[i]);
    if (result == ERR_OK)
      continue;
    char reason[256];
    snprintf(reason, sizeof reason, "%s", err_message());
    FAIL(result, "%s: tensor \"%s\", row %zu (item %" PRId64 "): %s", safetensors_path(items->file), items->parts.name,
         first + i, tensor_i64(&items->ids, first + i), reason);
  }
  return ERR_OK;
}

err_t ctl_eval_items_apply(const struct ctl_eval_items *items, struct engine *e, const struct ctl_eval_watch *watch)
{
  AUTO(close_batch) struct put_batch *b = NULL;

  TRY(mem_array(1, sizeof *b, &b));
  if (items->parts.type != TENSOR_U8)
    TRY(mem_array(APPLY_ITEMS * items->width, sizeof *b->numbers, &b->numbers));
  for (size_t first = 0; first < items->n; first += APPLY_ITEMS) {
    size_t n = items->n - first < APPLY_ITEMS ? items->n - first : APPLY_ITEMS;
    fill_batch(items, first, n, b);
    TRY(check_batch(items, e, first, n, b));
    TRY(engine_apply(e, b->changes, n, NULL, 0));
    watch->tick(watch->context, first + n);
  }
  return ERR_OK;
}
