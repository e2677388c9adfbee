/* SPDX-License-Identifier: Apache-2.0 */
/* Read keys, and verify their number and lengths before the first is used. */
#include "daemon/ctl/array/ctl_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto_close.h"
#include "base/compare.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/size.h"

static err_t add_line(struct ctl_keys *k, const char *path, struct span line)
{
  if (line.n > 0 && line.p[line.n - 1] == '\n')
    line.n--;
  if (line.n > 0 && line.p[line.n - 1] == '\r') /* of an editor under Windows */
    line.n--;
  if (line.n == 0 || line.n + strlen(k->prefix) > ITEM_KEY_MAX)
    FAIL(ERR_ITEM, "%s, line %zu: the key has %zu bytes%s, but a key has 1 to %d", path, k->n_lines + 1, line.n,
         *k->prefix ? " after the prefix" : "", ITEM_KEY_MAX);
  TRY(mem_grow(k->n_lines + 1, sizeof *k->lines, &k->capacity, &k->lines));
  TRY(region_copy(&k->region, line, &k->lines[k->n_lines]));
  k->n_lines++;
  return ERR_OK;
}

static err_t read_lines(struct ctl_keys *k, const char *path)
{
  AUTO(auto_close_file) FILE *file = fopen(path, "re");
  AUTO(mem_free) char *line = NULL;
  size_t capacity = 0;
  ssize_t n;

  if (!file)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  while ((n = getline(&line, &capacity, file)) >= 0)
    TRY(add_line(k, path, span_of(line, (size_t)n)));
  if (ferror(file))
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", path, strerror(errno));
  return ERR_OK;
}

static err_t verify_prefix(const char *prefix)
{
  enum { DIGITS_MAX = 20 };

  if (strlen(prefix) + DIGITS_MAX > ITEM_KEY_MAX)
    FAIL(ERR_USAGE, "--key-prefix has %zu bytes, but a key has at most %d", strlen(prefix), ITEM_KEY_MAX);
  return ERR_OK;
}

err_t ctl_keys_open(const char *path, const char *prefix, size_t n, struct ctl_keys *out)
{
  size_t n_keys = n;

  *out = (struct ctl_keys){ .prefix = prefix };
  TRY(verify_prefix(prefix));
  if (path && ctl_array_is_file(path)) {
    TRY(ctl_array_open(path, NULL, TENSOR_INTEGERS, 1, &out->numbers));
    out->has_numbers = true;
    n_keys = out->numbers.tensor.shape.dim[0];
  } else if (path) {
    TRY(read_lines(out, path));
    n_keys = out->n_lines;
  }
  if (n_keys != n)
    FAIL(ERR_ITEM, "%s has %zu keys, but the array has %zu rows: each row needs one", path, n_keys, n);
  return ERR_OK;
}

void ctl_keys_fini(struct ctl_keys *k)
{
  ctl_array_fini(&k->numbers);
  mem_free(&k->lines);
  region_fini(&k->region);
}

/* A key and its row. The key is first: so the orders of base/compare.h are theirs. */
struct line_row {
  struct span key;
  size_t row;
};
struct number_row {
  int64_t key;
  size_t row;
};

static err_t refuse_same(const struct ctl_keys *k, const char *path, size_t a, size_t b)
{
  char key[ITEM_KEY_MAX + 1];
  size_t from = k->lines ? 1 : 0; /* lines are counted from 1 on */

  FAIL(ERR_ITEM, "%s: %s %zu and %zu have the same key %s: only one of the two items would be left", path,
       k->lines ? "lines" : "rows", size_min(a, b) + from, size_max(a, b) + from, log_quote(ctl_keys_get(k, a, key)));
}

static err_t verify_lines(const struct ctl_keys *k, const char *path)
{
  AUTO(mem_free) struct line_row *rows = NULL;

  TRY(mem_array(k->n_lines, sizeof *rows, &rows));
  for (size_t i = 0; i < k->n_lines; i++)
    rows[i] = (struct line_row){ k->lines[i], i };
  qsort(rows, k->n_lines, sizeof *rows, compare_span);
  for (size_t i = 1; i < k->n_lines; i++) {
    if (span_equal(rows[i - 1].key, rows[i].key))
      return refuse_same(k, path, rows[i - 1].row, rows[i].row);
  }
  return ERR_OK;
}

static err_t verify_numbers(const struct ctl_keys *k, const char *path)
{
  size_t n = k->numbers.tensor.shape.dim[0];
  AUTO(mem_free) struct number_row *rows = NULL;

  TRY(mem_array(n, sizeof *rows, &rows));
  for (size_t i = 0; i < n; i++)
    rows[i] = (struct number_row){ tensor_integer(&k->numbers.tensor, i), i };
  qsort(rows, n, sizeof *rows, compare_int64);
  for (size_t i = 1; i < n; i++) {
    if (rows[i - 1].key == rows[i].key)
      return refuse_same(k, path, rows[i - 1].row, rows[i].row);
  }
  return ERR_OK;
}

err_t ctl_keys_verify_distinct(const struct ctl_keys *k, const char *path)
{
  if (k->lines)
    return verify_lines(k, path);
  return k->has_numbers ? verify_numbers(k, path) : ERR_OK;
}

struct span ctl_keys_get(const struct ctl_keys *k, size_t row, char buffer[ITEM_KEY_MAX + 1])
{
  size_t n_prefix = strlen(k->prefix), size = ITEM_KEY_MAX + 1 - n_prefix;
  int n;

  memcpy(buffer, k->prefix, n_prefix);
  if (k->lines) {
    memcpy(buffer + n_prefix, k->lines[row].p, k->lines[row].n);
    return span_of(buffer, n_prefix + k->lines[row].n);
  }
  if (k->has_numbers && k->numbers.tensor.type != TENSOR_U64)
    n = snprintf(buffer + n_prefix, size, "%" PRId64, tensor_integer(&k->numbers.tensor, row));
  else
    n = snprintf(buffer + n_prefix, size, "%" PRIu64,
                 k->has_numbers ? (uint64_t)tensor_integer(&k->numbers.tensor, row) : (uint64_t)row);
  return span_of(buffer, n_prefix + (size_t)n);
}
