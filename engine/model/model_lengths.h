/* SPDX-License-Identifier: Apache-2.0 */
/* The lengths of the fields that a model needs of an item's part and of a query. 0: the field is not used. */
#ifndef ENGINE_MODEL_MODEL_LENGTHS_H
#define ENGINE_MODEL_MODEL_LENGTHS_H

#include <stddef.h>

struct model_lengths {
  size_t item_vector;
  size_t item_codes;
  size_t n_subitems; /* each code is below this */
  size_t query_vector;
};

#endif
