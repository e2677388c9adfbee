/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted lists of spaces and generations; a change replaces its entry. */
#include "daemon/models/model_state.h"

#include "base/mem.h"

static void fini_space(struct model_space *space)
{
  for (size_t i = 0; i < space->n_generations; i++)
    mem_free(&space->generations[i].path);
  mem_free(&space->generations);
  mem_free(&space->name);
}

void model_state_fini(struct model_state *s)
{
  for (size_t i = 0; i < s->n; i++)
    fini_space(&s->spaces[i]);
  mem_free(&s->spaces);
  *s = (struct model_state){ 0 };
}

/* Return the index of the first space whose name is not below this one. */
static size_t space_place(const struct model_state *s, struct span name)
{
  size_t i = 0;

  while (i < s->n && span_compare(span_of_str(s->spaces[i].name), name) < 0)
    i++;
  return i;
}

static size_t generation_place(const struct model_space *space, uint32_t number)
{
  size_t from = 0, n = space->n_generations;

  while (n > 0) {
    size_t half = n / 2;
    if (space->generations[from + half].number < number) {
      from += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return from;
}

const struct model_space *model_state_find(const struct model_state *s, struct span space)
{
  size_t i = space_place(s, space);

  return i < s->n && span_equal(span_of_str(s->spaces[i].name), space) ? &s->spaces[i] : NULL;
}

const struct model_generation *model_state_generation(const struct model_space *space, uint32_t number)
{
  size_t i = space ? generation_place(space, number) : 0;

  return space && i < space->n_generations && space->generations[i].number == number ? &space->generations[i] : NULL;
}

struct model_change model_state_record(const struct model_space *space, const struct model_generation *generation)
{
  return (struct model_change){
    .kind = MODEL_ADD,
    .space = span_of_str(space->name),
    .generation = generation->number,
    .digest = span_of_str(generation->digest),
    .path = generation->path ? span_of_str(generation->path) : span_of(NULL, 0),
    .is_in_topic = generation->is_in_topic,
    .n_bytes = generation->n_bytes,
    .derives_from = generation->derives_from,
    .shadow = generation->shadow,
  };
}

bool model_state_is_retired(const struct model_state *s, struct span space, uint32_t number)
{
  const struct model_generation *g = model_state_generation(model_state_find(s, space), number);

  return g && g->is_retired;
}

static uint32_t root_of(const struct model_space *space, uint32_t number)
{
  const struct model_generation *g = model_state_generation(space, number);

  while (g && g->derives_from) { /* always an earlier one */
    number = g->derives_from;
    g = model_state_generation(space, number);
  }
  return number;
}

uint32_t model_state_root(const struct model_state *s, struct span space, uint32_t number)
{
  return root_of(model_state_find(s, space), number);
}

bool model_state_lacks_root(const struct model_space *space, uint32_t number)
{
  uint32_t root = root_of(space, number);

  return root != number && root > 1 && !model_state_generation(space, root); /* generation 1 needs no record */
}

bool model_state_uses_parts(const struct model_state *s, struct span space, uint32_t root)
{
  const struct model_space *found = model_state_find(s, space);
  const struct model_generation *own = model_state_generation(found, root);

  if (!own || !own->is_retired)
    return true;
  for (size_t i = 0; i < found->n_generations; i++) {
    const struct model_generation *g = &found->generations[i];
    if (!g->is_retired && (root_of(found, g->number) == root || model_state_lacks_root(found, g->number)))
      return true;
  }
  return false;
}

uint32_t model_state_at(const struct model_state *s, struct span space, int64_t time_ms)
{
  const struct model_space *found = model_state_find(s, space);
  uint32_t generation = 1;

  for (size_t i = 0; found && i < found->n_switches && found->switches[i].at_ms <= time_ms; i++)
    generation = found->switches[i].to;
  return generation;
}

/* ---- Changes ---- */

static err_t add_space(struct model_state *s, struct span name, struct model_space **out)
{
  size_t i = space_place(s, name);
  struct model_space space = { 0 };

  if (!model_state_find(s, name)) {
    TRY(mem_grow(s->n + 1, sizeof *s->spaces, &s->capacity, &s->spaces));
    TRY(mem_copy(name, &space.name));
    memmove(s->spaces + i + 1, s->spaces + i, (s->n - i) * sizeof *s->spaces);
    s->spaces[i] = space;
    s->n++;
  }
  *out = &s->spaces[i];
  return ERR_OK;
}

static void forget_generation(struct model_space *space, uint32_t number)
{
  size_t i = generation_place(space, number);

  if (!model_state_generation(space, number))
    return;
  mem_free(&space->generations[i].path);
  space->n_generations--;
  memmove(space->generations + i, space->generations + i + 1, (space->n_generations - i) * sizeof *space->generations);
}

static err_t put_generation(struct model_space *space, const struct model_change *change)
{
  struct model_generation generation = { .number = change->generation,
                                         .is_retired = change->kind == MODEL_RETIRE,
                                         .derives_from = change->derives_from };

  TRY(mem_grow(space->n_generations + 1, sizeof *space->generations, &space->generations_capacity,
               &space->generations));
  if (change->kind == MODEL_ADD) {
    if (!change->is_in_topic)
      TRY(mem_copy(change->path, &generation.path));
    generation.is_in_topic = change->is_in_topic;
    generation.n_bytes = change->n_bytes;
    memcpy(generation.digest, change->digest.p, MODEL_DIGEST_CHARS);
    generation.shadow = change->shadow;
  }
  forget_generation(space, change->generation);
  size_t i = generation_place(space, change->generation);
  memmove(space->generations + i + 1, space->generations + i, (space->n_generations - i) * sizeof *space->generations);
  space->generations[i] = generation;
  space->n_generations++;
  return ERR_OK;
}

static void put_switches(struct model_space *space, const struct model_change *change)
{
  space->n_switches = change->n_switches;
  if (change->n_switches)
    memcpy(space->switches, change->switches, change->n_switches * sizeof *space->switches);
}

err_t model_state_apply(struct model_state *s, const struct model_change *change)
{
  struct model_space *space;

  s->n_applied++;
  TRY(add_space(s, change->space, &space));
  if (change->generation == 0)
    put_switches(space, change);
  else if (change->kind == MODEL_FORGET)
    forget_generation(space, change->generation);
  else
    return put_generation(space, change);
  return ERR_OK;
}
