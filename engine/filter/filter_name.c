/* SPDX-License-Identifier: Apache-2.0 */
/* Finding attributes by name. A refusal has the name that was probably meant. */
#include "engine/filter/filter_name.h"

#include "base/attributes.h"
#include "engine/filter/filter_fail.h"

static err_t refuse(struct span text, struct span name, const struct attributes *attributes)
{
  size_t offset = (size_t)(name.p - text.p);
  char piece[FILTER_PIECE_BYTES];

  filter_fail_quote(name, "'", piece);
  if (attributes->n == 0)
    FILTER_FAIL(text, offset, "%s is not an attribute: the configuration has none", piece);
  struct span nearest = attributes_nearest(attributes, name);
  FILTER_FAIL(text, offset, "%s is not an attribute; the nearest is '%.*s'", piece, (int)nearest.n,
              (const char *)nearest.p);
}

err_t filter_name_find(struct span text, struct span name, const struct attributes *attributes, size_t *out)
{
  size_t found = attributes_find(attributes, name, 0);

  if (found == ATTRIBUTE_NONE)
    return refuse(text, name, attributes);
  *out = found;
  return ERR_OK;
}
