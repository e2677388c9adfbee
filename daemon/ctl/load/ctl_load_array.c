/* SPDX-License-Identifier: Apache-2.0 */
/* Verify an array, and make a record of each row. */
#include "daemon/ctl/load/ctl_load_array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "daemon/ctl/array/ctl_keys.h"
#include "daemon/ctl/ctl_space.h"
#include "ingest/wire/wire.h"

/* The daemon refuses larger numbers, and codes beyond a byte. */
static const float NUMBER_MAX = 1e9f;
enum { CODE_MAX = 255, MORE_BYTES = 2048 };

struct rows {
  struct ctl_loading *loading;
  struct ctl_space space;
  struct ctl_array array;
  struct ctl_keys keys;
  size_t n, width;
  bool has_codes;
  float *numbers; /* [width] of the row at hand */
  uint8_t *codes; /* [width] */
};

static void rows_fini(struct rows *r)
{
  ctl_array_fini(&r->array);
  ctl_keys_fini(&r->keys);
  mem_free(&r->numbers);
  mem_free(&r->codes);
}

static err_t verify_width(const struct rows *r)
{
  const char *path = r->loading->options->path;
  const struct model_lengths *need = &r->space.lengths;
  size_t wanted = need->item_codes ? need->item_codes : need->item_vector;

  if (r->has_codes != (need->item_codes > 0))
    FAIL(ERR_ITEM, "%s: its numbers are %s, but space %s needs %s", path, tensor_type_name(r->array.tensor.type),
         r->space.name, need->item_codes ? "codes, which are integers" : "vectors of F32, F64, F16 or BF16");
  if (r->width != wanted)
    FAIL(ERR_ITEM, "%s: its rows have %zu numbers where space %s needs %zu", path, r->width, r->space.name, wanted);
  return ERR_OK;
}

static err_t open_rows(struct rows *r)
{
  const struct ctl_load_options *o = r->loading->options;

  TRY(ctl_space_find(r->loading->writer->ctx, o->space, &r->space));
  TRY(ctl_array_open(o->path, o->tensor, TENSOR_FLOATS | TENSOR_INTEGERS, 2, &r->array));
  r->n = r->array.tensor.shape.dim[0];
  r->width = r->array.tensor.shape.dim[1];
  r->has_codes = TENSOR_INTEGERS & TENSOR_TYPE_BIT(r->array.tensor.type);
  if (r->n == 0 || r->width == 0)
    FAIL(ERR_ITEM, "%s: the array has %zu rows of %zu numbers: there is nothing to load", o->path, r->n, r->width);
  if (r->space.is_known)
    TRY(verify_width(r));
  TRY(mem_array(r->width, sizeof *r->numbers, &r->numbers));
  TRY(mem_array(r->width, sizeof *r->codes, &r->codes));
  TRY(ctl_keys_open(o->keys, o->key_prefix, r->n, &r->keys));
  return ctl_keys_verify_distinct(&r->keys, o->keys);
}

static err_t read_codes(struct rows *r, size_t row)
{
  size_t n_subitems = r->space.lengths.n_subitems;
  int64_t most = n_subitems ? (int64_t)n_subitems - 1 : CODE_MAX;

  for (size_t i = 0; i < r->width; i++) {
    int64_t code = tensor_integer(&r->array.tensor, row * r->width + i);
    if (code < 0 || code > most)
      FAIL(ERR_ITEM, "%s, row %zu: code %zu is %" PRId64 "; space %s has sub-items 0 to %" PRId64,
           r->loading->options->path, row, i, code, r->space.name, most);
    r->codes[i] = (uint8_t)code;
  }
  return ERR_OK;
}

static err_t read_numbers(struct rows *r, size_t row)
{
  tensor_floats(&r->array.tensor, row * r->width, r->width, r->numbers);
  for (size_t i = 0; i < r->width; i++) {
    if (!(fabsf(r->numbers[i]) <= NUMBER_MAX))
      FAIL(ERR_ITEM, "%s, row %zu: number %zu is %g; it must be from -%g to %g", r->loading->options->path, row, i,
           (double)r->numbers[i], (double)NUMBER_MAX, (double)NUMBER_MAX);
  }
  return ERR_OK;
}

/* Read a row into the buffer, and verify it. */
static err_t read_row(struct rows *r, size_t row)
{
  return r->has_codes ? read_codes(r, row) : read_numbers(r, row);
}

static err_t verify_rows(struct rows *r)
{
  struct ctl_progress *progress = &r->loading->progress;

  ctl_progress_begin(progress, "checking", r->n);
  for (size_t row = 0; row < r->n; row++) {
    TRY(read_row(r, row));
    ctl_progress_tick(progress, row, row);
  }
  ctl_progress_hide(progress);
  return ERR_OK;
}

static err_t send_row(struct rows *r, size_t row)
{
  struct ctl_loading *l = r->loading;
  char key[ITEM_KEY_MAX + 1];
  struct part part = { .space = span_of_str(r->space.name) };
  const struct item_change change = { .parts = &part, .n_parts = 1 };
  struct ctl_record record = { .key = ctl_keys_get(&r->keys, row, key) };

  region_reset(&l->region);
  TRY(read_row(r, row));
  if (r->has_codes)
    part.codes = span_of(r->codes, r->width);
  else
    part.vector = (struct floats){ r->numbers, r->width };
  TRY(wire_encode_item(&change, WIRE_PROTOBUF, &l->region, &record.value));
  return ctl_loading_send(l, row, &record);
}

static err_t send_rows(struct rows *r)
{
  struct ctl_loading *l = r->loading;

  ctl_progress_begin(&l->progress, "loading", r->n);
  for (size_t row = 0; row < r->n; row++) {
    if (!ctl_loading_has(l, row))
      TRY(send_row(r, row));
    ctl_progress_tick(&l->progress, row + 1, l->n_sent);
  }
  return ERR_OK;
}

/* What decides which record a row becomes, apart from the file. */
static void describe(const struct rows *r, char *out)
{
  const struct ctl_load_options *o = r->loading->options;
  struct stat status = { 0 };

  if (o->keys && stat(o->keys, &status) != 0)
    status.st_size = 0;
  snprintf(out, MORE_BYTES, "space %s\ntensor %s\nkeys %s of %lld bytes of %lld.%09ld\nprefix %s\n", r->space.name,
           o->tensor ? o->tensor : "", o->keys ? o->keys : "", (long long)status.st_size,
           (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec, o->key_prefix);
}

err_t ctl_load_array(struct ctl_loading *l)
{
  AUTO(rows_fini) struct rows r = { .loading = l };
  char more[MORE_BYTES];

  TRY(open_rows(&r));
  TRY(verify_rows(&r));
  describe(&r, more);
  TRY(ctl_loading_open_resume(l, more, r.n, "row"));
  return send_rows(&r);
}
