/* SPDX-License-Identifier: Apache-2.0 */
/* Groups the parts of a batch of changes by space and runs each group through its item network. Finds the attributes by
 * their names. */
#include "engine/arena/prepare.h"

#include "engine/team/divide.h"

/* All parts of one space in a batch. They go through its network together. */
struct space_parts {
  const struct part **parts;
  struct prepared_part **prepared;
  size_t n;
};

/* Producers mostly name the attributes in one order, so each is looked for after the one before it. */
static err_t index_attributes(const struct attributes *attributes, const struct item_change *change,
                              struct region *region, size_t **out)
{
  size_t *indices;
  size_t next = 0;

  TRY(region_array(region, change->n_attributes, sizeof *indices, &indices));
  for (size_t i = 0; i < change->n_attributes; i++) {
    indices[i] = attributes_find(attributes, change->attributes[i].name, next);
    if (indices[i] != ATTRIBUTE_NONE)
      next = indices[i] + 1;
  }
  *out = indices;
  return ERR_OK;
}

/* Return the next space that gets the part. */
static size_t next_user(const struct prepare_target *target, const struct part *part, size_t from)
{
  size_t place = space_table_next_user(target->spaces, part->space, from);

  while (target->only != SPACE_TABLE_NONE && place != SPACE_TABLE_NONE && place != target->only)
    place = space_table_next_user(target->spaces, part->space, place + 1);
  return place;
}

static size_t count_users(const struct prepare_target *target, const struct part *part)
{
  size_t n = 0;

  for (size_t s = next_user(target, part, 0); s != SPACE_TABLE_NONE; s = next_user(target, part, s + 1))
    n++;
  return n;
}

/* A part has been checked: some space takes it. That says nothing about the others. With `only` there are no others,
 * and engine_check_fill() has checked the part for it. */
static bool is_refused(struct space *space, const struct part *part, size_t n_users)
{
  if (n_users == 1 || space->similarity->check_part(space->model, part) == ERR_OK)
    return false;
  atomic_fetch_add(&space->n_refused, 1);
  return true;
}

/* List the spaces that get the part. */
static void index_part(const struct prepare_target *target, const struct part *part, size_t n_users,
                       struct prepared_change *out, size_t *counts)
{
  for (size_t s = next_user(target, part, 0); s != SPACE_TABLE_NONE; s = next_user(target, part, s + 1)) {
    bool is_taken = !is_refused(target->spaces->entries[s].space, part, n_users);
    out->parts[out->n_parts++] = (struct prepared_part){ .space = s, .part = is_taken ? part : NULL };
    counts[s] += is_taken;
  }
}

static err_t index_parts(const struct prepare_target *target, const struct item_change *change, struct region *region,
                         struct prepared_change *out, size_t *counts)
{
  size_t n = 0;

  for (size_t p = 0; p < change->n_parts; p++)
    n += count_users(target, &change->parts[p]);
  TRY(region_array(region, n, sizeof *out->parts, &out->parts));
  for (size_t p = 0; p < change->n_parts; p++)
    index_part(target, &change->parts[p], count_users(target, &change->parts[p]), out, counts);
  return ERR_OK;
}

static err_t index_changes(const struct prepare_target *target, const struct item_change *changes, size_t n,
                           struct region *region, struct prepared_change *out, size_t *counts)
{
  for (size_t i = 0; i < n; i++) {
    out[i].change = &changes[i];
    TRY(index_attributes(target->attributes, &changes[i], region, &out[i].attributes));
    TRY(index_parts(target, &changes[i], region, &out[i], counts));
  }
  return ERR_OK;
}

static err_t group_by_space(size_t n_spaces, const size_t *counts, struct prepared_change *changes, size_t n,
                            struct region *region, struct space_parts *groups)
{
  for (size_t s = 0; s < n_spaces; s++) {
    TRY(region_array(region, counts[s], sizeof *groups[s].parts, &groups[s].parts));
    TRY(region_array(region, counts[s], sizeof *groups[s].prepared, &groups[s].prepared));
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t p = 0; p < changes[i].n_parts; p++) {
      struct prepared_part *part = &changes[i].parts[p];
      struct space_parts *group = &groups[part->space];
      if (!part->part)
        continue;
      group->parts[group->n] = part->part;
      group->prepared[group->n++] = part;
    }
  }
  return ERR_OK;
}

/* The parts of a space on their way through its network. */
struct passage {
  const struct space *space;
  const struct kernels *kernels;
  const struct part **parts;
  size_t bytes; /* of a prepared part */
  uint8_t *prepared;
};

static err_code_t pass_piece(void *context, size_t first, size_t end, struct region *scratch)
{
  const struct passage *p = context;

  return p->space->similarity->prepare_parts(p->space->model, p->kernels, p->parts + first, end - first, scratch,
                                             p->prepared + first * p->bytes);
}

static err_t prepare_group(const struct prepare_target *target, const struct space *space,
                           const struct space_parts *group, struct region *region)
{
  if (group->n == 0)
    return ERR_OK;
  struct passage p = { space, target->kernels, group->parts, space->similarity->prepared_bytes(space->model), NULL };
  size_t n_piece = space->similarity->parts_per_piece ? space->similarity->parts_per_piece : group->n;

  TRY(region_array(region, group->n, p.bytes, &p.prepared));
  TRY(divide(target->team, group->n, n_piece, pass_piece, &p, region));
  for (size_t i = 0; i < group->n; i++)
    group->prepared[i]->bytes = p.prepared + i * p.bytes;
  return ERR_OK;
}

err_t prepare_changes(const struct prepare_target *target, const struct item_change *changes, size_t n,
                      struct region *region, struct prepared_change **out)
{
  struct prepared_change *prepared;
  struct space_parts *groups;
  size_t *counts;

  TRY(region_array(region, n, sizeof *prepared, &prepared));
  TRY(region_array(region, target->spaces->n, sizeof *groups, &groups));
  TRY(region_array(region, target->spaces->n, sizeof *counts, &counts));
  TRY(index_changes(target, changes, n, region, prepared, counts));
  TRY(group_by_space(target->spaces->n, counts, prepared, n, region, groups));
  for (size_t s = 0; s < target->spaces->n; s++)
    TRY(prepare_group(target, target->spaces->entries[s].space, &groups[s], region));
  *out = prepared;
  return ERR_OK;
}

void prepare_drop_texts(struct prepared_change *changes, size_t n)
{
  for (size_t i = 0; i < n; i++)
    key_text_drop(&changes[i].text);
}
