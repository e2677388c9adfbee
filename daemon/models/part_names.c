/* SPDX-License-Identifier: Apache-2.0 */
/* Looking names up in the history of switches. */
#include "daemon/models/part_names.h"

#include "base/log.h"

/* Is a name with this generation, or without one (0), already the canonical one of the generation that it means? Most
 * are. */
static bool is_canonical(struct span name, uint32_t written, uint32_t generation)
{
  return name.n <= SPACE_NAME_MAX && generation == (written ? written : 1) && written != 1;
}

static err_t resolve(const struct model_state *models, int64_t time_ms, struct region *region, struct span *name)
{
  char canonical[SPACE_NAME_MAX + 1];
  struct space_name parsed;

  if (!space_name_parse(*name, &parsed))
    return ERR_OK;
  uint32_t written = parsed.generation;
  if (written == 0)
    parsed.generation = models ? model_state_at(models, parsed.space, time_ms) : 1;
  if (models)
    parsed.generation = model_state_root(models, parsed.space, parsed.generation);
  if (is_canonical(*name, written, parsed.generation))
    return ERR_OK;
  if (!space_name_print(&parsed, canonical))
    FAIL(ERR_ITEM, "parts[%s]: with its generation, the name of the space has more than %d bytes", log_quote(*name),
         SPACE_NAME_MAX);
  return region_copy(region, span_of_str(canonical), name);
}

static err_t verify_apart(const struct item_change *change)
{
  for (size_t i = 0; i < change->n_parts; i++) {
    for (size_t j = 0; j < i; j++) {
      if (span_equal(change->parts[j].space, change->parts[i].space))
        FAIL(ERR_ITEM, "parts[%s]: it is there twice, once under another name", log_quote(change->parts[i].space));
    }
  }
  return ERR_OK;
}

err_t part_names_resolve(const struct model_state *models, struct region *region, struct item_change *change)
{
  bool has_new_names = false;

  for (size_t i = 0; i < change->n_parts; i++) {
    struct span *name = &change->parts[i].space;
    const uint8_t *before = name->p;
    TRY(resolve(models, change->timestamp_ms, region, name));
    has_new_names = has_new_names || name->p != before;
  }
  /* Decoding refuses equal names. "s@1" becomes "s", and "s" beside it may become another: first all are looked up. */
  return has_new_names ? verify_apart(change) : ERR_OK;
}

bool part_names_is_retired(const struct model_state *models, struct span canonical)
{
  struct space_name name;

  return models && models->n > 0 && space_name_parse(canonical, &name) &&
         !model_state_uses_parts(models, name.space, name.generation ? name.generation : 1);
}
