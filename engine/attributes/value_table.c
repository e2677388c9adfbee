/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up numbers by the top bits of a product. */
#include "engine/attributes/value_table.h"

/* The low bits of integral doubles are zeros, so the high bits are folded into them, and the top bits of the product,
 * which depend on all others, are taken. */
static size_t place_of(const struct value_table *t, int64_t value)
{
  uint64_t bits = (uint64_t)value;

  bits = (bits ^ bits >> 32) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(bits >> (64 - __builtin_ctzll(t->n_places)));
}

static size_t next_place(const struct value_table *t, size_t place)
{
  return (place + 1) & (t->n_places - 1);
}

err_t value_table_init(const int64_t *values, size_t n, struct region *region, struct value_table *out)
{
  *out = (struct value_table){ .low = values[0], .high = values[n - 1], .n_places = 16 };
  while (out->n_places < 4 * n)
    out->n_places *= 2;
  TRY(region_array(region, out->n_places, sizeof *out->places, &out->places));
  for (size_t i = 0; i < out->n_places; i++)
    out->places[i] = out->low;
  for (size_t i = 1; i < n; i++) {
    size_t at = place_of(out, values[i]);
    while (out->places[at] != out->low)
      at = next_place(out, at);
    out->places[at] = values[i];
  }
  return ERR_OK;
}

bool value_table_has(const struct value_table *t, int64_t value)
{
  if (value == t->low)
    return true;
  for (size_t at = place_of(t, value); t->places[at] != t->low; at = next_place(t, at)) {
    if (t->places[at] == value)
      return true;
  }
  return false;
}
