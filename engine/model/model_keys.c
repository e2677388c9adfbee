/* SPDX-License-Identifier: Apache-2.0 */
/* The list of known metadata keys, and the search for the one that a mistyped key resembles most. */
#include "engine/model/model_keys.h"

#include "base/edit_distance.h"
#include "base/log.h"

static const char *const prefixes[] = { "sluice.", "mol.", "recjpq." };

static const char *const keys[] = {
  "sluice.similarity",
  "sluice.dim",
  "sluice.cells",
  "mol.Pq",
  "mol.Px",
  "mol.dP",
  "mol.Dq",
  "mol.Dx",
  "mol.temperature",
  "mol.eps",
  "mol.uid_hash",
  "mol.query_hidden_dim",
  "mol.item_hidden_dim",
  "mol.qnl",
  "mol.inl",
  "mol.gating_query_hidden_dim",
  "mol.gating_item_hidden_dim",
  "mol.gating_qi_hidden_dim",
  "mol.gating_combination_type",
  "mol.dot_product_l2_norm",
};

enum { N_PREFIXES = sizeof prefixes / sizeof prefixes[0], N_KEYS = sizeof keys / sizeof keys[0] };

static bool starts_with(const char *text, const char *prefix)
{
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns NULL if no known key has the prefix. */
static const char *find_nearest(const char *prefix, const char *key)
{
  const char *nearest = NULL;
  size_t least = SIZE_MAX;

  for (size_t i = 0; i < N_KEYS; i++) {
    size_t distance = starts_with(keys[i], prefix) ? edit_distance_by_letter(keys[i], key) : SIZE_MAX;
    if (distance < least) {
      least = distance;
      nearest = keys[i];
    }
  }
  return nearest;
}

static bool is_known(const char *key)
{
  for (size_t i = 0; i < N_KEYS; i++) {
    if (strcmp(keys[i], key) == 0)
      return true;
  }
  return false;
}

static err_t refuse(const struct safetensors *file, const char *prefix, const char *key)
{
  const char *nearest = find_nearest(prefix, key), *quoted = log_quote(span_of_str(key));

  if (nearest)
    FAIL(ERR_MODEL, "%s: __metadata__ has the key %s, which Sluice does not know; the nearest is \"%s\"",
         safetensors_path(file), quoted, nearest);
  FAIL(ERR_MODEL, "%s: __metadata__ has the key %s, which Sluice does not know: it knows none below \"%s\"",
       safetensors_path(file), quoted, prefix);
}

err_t model_keys_verify(const struct safetensors *file)
{
  for (const char *key = NULL; (key = safetensors_next_key(file, key));) {
    for (size_t i = 0; i < N_PREFIXES; i++) {
      if (starts_with(key, prefixes[i]) && !is_known(key))
        return refuse(file, prefixes[i], key);
    }
  }
  return ERR_OK;
}
