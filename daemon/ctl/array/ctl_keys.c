/* SPDX-License-Identifier: Apache-2.0 */
/* Read keys, and verify their number and lengths before the first is used. */
#include "daemon/ctl/array/ctl_keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto_close.h"
#include "base/mem.h"

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
