/* SPDX-License-Identifier: Apache-2.0 */
/* A list, which is searched from its beginning: the daemon is asked about each letter, which takes longer. */
#include "daemon/ctl/letters/ctl_retried.h"

#include "base/mem.h"

struct ctl_retried_letter {
  struct span key;
  struct ctl_item_place from;
  struct position at; /* partition -1: it was not written */
};

void ctl_retried_fini(struct ctl_retried *r)
{
  mem_free(&r->letters);
  region_fini(&r->keys);
}

err_t ctl_retried_add(struct ctl_retried *r, struct span key, const struct ctl_item_place *from,
                      const struct position *at)
{
  struct ctl_retried_letter letter = { .from = *from, .at = at ? *at : (struct position){ .partition = -1 } };

  TRY(region_copy(&r->keys, key, &letter.key));
  TRY(mem_grow(r->n + 1, sizeof letter, &r->capacity, &r->letters));
  r->letters[r->n++] = letter;
  return ERR_OK;
}

bool ctl_retried_is_newer(const struct ctl_item_place *record, const struct ctl_item_place *than)
{
  return record->partition == than->partition ? record->offset > than->offset
                                              : record->timestamp_ms > than->timestamp_ms;
}

bool ctl_retried_has_newer(const struct ctl_retried *r, struct span key, const struct ctl_item_place *from)
{
  for (size_t i = 0; i < r->n; i++)
    if (span_equal(r->letters[i].key, key) && ctl_retried_is_newer(&r->letters[i].from, from))
      return true;
  return false;
}

bool ctl_retried_wrote(const struct ctl_retried *r, const struct ctl_item_place *stored)
{
  for (size_t i = 0; i < r->n; i++)
    if (r->letters[i].at.partition == stored->partition && r->letters[i].at.next == stored->offset)
      return true;
  return false;
}
