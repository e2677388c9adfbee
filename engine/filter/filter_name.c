/* SPDX-License-Identifier: Apache-2.0 */
/* Finding attributes by name, and the name that was probably meant. */
#include "engine/filter/filter_name.h"

#include <assert.h>
#include <stdio.h>

#include "base/attributes.h"
#include "base/edit_distance.h"
#include "base/size.h"
#include "engine/filter/filter_fail.h"

static_assert((int)ATTRIBUTE_NAME_MAX < (int)EDIT_TEXT_MAX, "whole names are compared");

static const char *copy_name(struct span name, char out[EDIT_TEXT_MAX + 1])
{
  snprintf(out, EDIT_TEXT_MAX + 1, "%.*s", (int)size_min(name.n, EDIT_TEXT_MAX), (const char *)name.p);
  return out;
}

/* There is at least one attribute. */
static struct span find_nearest(struct span name, const struct attributes *attributes)
{
  char wanted[EDIT_TEXT_MAX + 1], candidate[EDIT_TEXT_MAX + 1];
  size_t least = SIZE_MAX, nearest = 0;

  copy_name(name, wanted);
  for (size_t i = 0; i < attributes->n; i++) {
    size_t distance = edit_distance_by_letter(copy_name(attributes->v[i].name, candidate), wanted);
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return attributes->v[nearest].name;
}

static err_t refuse(struct span text, struct span name, const struct attributes *attributes)
{
  size_t offset = (size_t)(name.p - text.p);
  char piece[FILTER_PIECE_BYTES];

  filter_fail_quote(name, "'", piece);
  if (attributes->n == 0)
    FILTER_FAIL(text, offset, "%s is not an attribute: the configuration has none", piece);
  struct span nearest = find_nearest(name, attributes);
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
