/* SPDX-License-Identifier: Apache-2.0 */
/* A limit on the values in one message, and so on the memory that its JSON takes: two bytes of Protobuf may be a whole
 * message. */
#ifndef INGEST_PROTOBUF_BUDGET_H
#define INGEST_PROTOBUF_BUDGET_H

#include "base/err.h"
#include "ingest/json/value_place.h"

/* As many as JSON may have. */
enum { PROTOBUF_VALUES_MAX = 1 << 20 };

struct protobuf_budget {
  size_t n_used;
};

/* Count values. Returns ERR_WIRE, with the place, if there are too many. */
static inline err_t protobuf_budget_take(struct protobuf_budget *b, const struct value_place *place, size_t n)
{
  char text[VALUE_PLACE_BYTES];

  b->n_used += n;
  if (b->n_used > PROTOBUF_VALUES_MAX)
    FAIL(ERR_WIRE, "%s: more than %d values", value_place_text(place, text), PROTOBUF_VALUES_MAX);
  return ERR_OK;
}

#endif
