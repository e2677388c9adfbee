/* SPDX-License-Identifier: Apache-2.0 */
/* A set of many numbers, to look up the value of a slot: a hash table with open addressing. */
#ifndef ENGINE_ATTRIBUTES_VALUE_TABLE_H
#define ENGINE_ATTRIBUTES_VALUE_TABLE_H

#include "base/region.h"

struct value_table {
  int64_t low, high; /* all values are in low..high */
  int64_t *places;   /* [n_places]; `low` stands for a free place, and is always taken as found */
  size_t n_places;   /* a power of two, at least four times the values */
};

/* Make a table of values. values [n], rising, n > 0. The table lives in the region. Returns ERR_MEMORY. */
err_t value_table_init(const int64_t *values, size_t n, struct region *region, struct value_table *out);

/* Is a value in the table? */
bool value_table_has(const struct value_table *t, int64_t value);

#endif
