/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of an array's rows: lines of a file, integers of an array, or the rows' numbers. Thread: one. */
#ifndef DAEMON_CTL_CTL_KEYS_H
#define DAEMON_CTL_CTL_KEYS_H

#include "base/item.h"
#include "base/region.h"
#include "daemon/ctl/array/ctl_array.h"

struct ctl_keys {
  struct ctl_array numbers;
  bool has_numbers;
  struct span *lines; /* [n_lines] in the region; NULL: there is no text */
  size_t n_lines;
  size_t capacity;
  struct region region;
  const char *prefix; /* before each key */
};

/* Open the keys of n rows, and verify each.
 *
 * path    a text file with a key on each line, or a .npy or .safetensors file with integers; NULL: the rows' numbers,
 *         from 0 on
 * prefix  valid as long as the keys
 *
 * Returns ERR_ITEM with the line or row that cannot be used, or if there are not n keys; ERR_SYSTEM. The caller calls
 * ctl_keys_fini() then too.
 */
err_t ctl_keys_open(const char *path, const char *prefix, size_t n, struct ctl_keys *out);
void ctl_keys_fini(struct ctl_keys *k);

/* Verify that no two rows have the same key. path: as above. Returns ERR_ITEM with both lines or rows; ERR_MEMORY. */
err_t ctl_keys_verify_distinct(const struct ctl_keys *k, const char *path);

/* Get the key of a row.
 *
 * buffer  holds the key
 */
struct span ctl_keys_get(const struct ctl_keys *k, size_t row, char buffer[ITEM_KEY_MAX + 1]);

#endif
