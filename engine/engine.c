/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: opens spaces and arenas, applies batches to both arenas of the pair, and checks parts and queries. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "engine/arena_fill.h"
#include "engine/engine_state.h"
#include "engine/method.h"

static err_t open_spaces(const struct engine_config *config, struct engine *e)
{
  TRY(mem_array(config->n_spaces, sizeof *e->spaces, &e->spaces));
  for (size_t i = 0; i < config->n_spaces; i++) {
    e->n_spaces = i + 1;
    TRY(space_init(&config->spaces[i], &e->spaces[i]));
  }
  return ERR_OK;
}

err_t engine_open(const struct engine_config *config, struct engine **out)
{
  AUTO(engine_close) struct engine *e = NULL;

  TRY(mem_array(1, sizeof *e, &e));
  e->max_k = config->max_k;
  e->max_batch = config->max_batch;
  e->max_items = config->max_items;
  e->n_workers = config->n_workers > 0 ? config->n_workers : 1;
  TRY(backends_choose(config->backend, &e->backends));
  TRY(kernels_get(config->isa, &e->kernels));
  TRY(open_spaces(config, e));
  TRY(engine_verify_memory(e, false));
  TRY(mem_array(1, sizeof *e->pair, &e->pair));
  for (int i = 0; i < 2; i++)
    TRY(arena_init(e->spaces, e->n_spaces, &e->backends, config->max_items, 2 * engine_host_bytes_per_item(e),
                   &e->pair->arenas[i]));
  *out = e;
  e = NULL;
  return ERR_OK;
}

void engine_close(struct engine **e)
{
  if (!*e)
    return;
  team_close(&(*e)->team);
  for (int i = 0; (*e)->pair && i < 2; i++)
    arena_fini(&(*e)->pair->arenas[i]);
  mem_free(&(*e)->pair);
  for (size_t i = 0; i < (*e)->n_spaces; i++)
    space_fini(&(*e)->spaces[i]);
  mem_free(&(*e)->spaces);
  region_fini(&(*e)->batch);
  mem_free(e);
}

err_t engine_share_searches(struct engine *e, const struct engine_threads *threads)
{
  assert(!e->team);
  e->threads = *threads;
  if (e->threads.per_search > TEAM_MEMBERS_MAX)
    e->threads.per_search = TEAM_MEMBERS_MAX;
  /* A GPU needs no team. Where the processor is its substitute, it needs one. */
  bool has_processor = e->backends.at[e->backends.n - 1]->kind == BACKEND_CPU;
  if (!has_processor || threads->per_search < 2 || threads->max < 2)
    return ERR_OK;
  return team_open(threads->max - 1, threads->max, &e->team);
}

/* Refuse an unknown space. The message lists the spaces that exist, if they are not too many. */
static err_t fail_no_space(const struct engine *e, struct span name)
{
  enum { SHOWN_MAX = 20, NAMES_BYTES = 600 };
  char names[NAMES_BYTES] = "";
  size_t n = 0;
  size_t i = 0;

  for (; i < e->n_spaces && i < SHOWN_MAX && n + strlen(e->spaces[i].name) + 3 < sizeof names; i++)
    n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", e->spaces[i].name);
  if (i < e->n_spaces)
    FAIL(ERR_SPACE, "there is no space %s; there are %s, and %zu more", log_quote(name), names, e->n_spaces - i);
  FAIL(ERR_SPACE, "there is no space %s; there %s %s", log_quote(name), e->n_spaces == 1 ? "is" : "are", names);
}

bool engine_has_space(const struct engine *e, struct span name)
{
  size_t space;

  return prepare_find_space(e->spaces, e->n_spaces, name, &space);
}

err_t engine_check_part(const struct engine *e, const struct part *part)
{
  size_t space;

  if (!prepare_find_space(e->spaces, e->n_spaces, part->space, &space))
    FAIL(ERR_SPACE, "there is no space %s: add it to `spaces` of the configuration, or omit the part",
         log_quote(part->space));
  return e->spaces[space].similarity->check_part(e->spaces[space].model, part);
}

err_t engine_check_item(const struct engine *e, const struct item_change *change)
{
  for (size_t i = 0; i < change->n_parts; i++)
    TRY(engine_check_part(e, &change->parts[i]));
  return ERR_OK;
}

static err_t apply_to_back(struct engine *e, uint64_t epoch, const struct prepared_change *changes, size_t n,
                        const struct position *positions, size_t n_positions)
{
  struct arena *back = pair_back(e->pair);

  TRY(arena_apply(back, changes, n));
  TRY(arena_advance(back, positions, n_positions));
  back->epoch = epoch;
  return ERR_OK;
}

err_t engine_apply(struct engine *e, const struct item_change *changes, size_t n, const struct position *positions,
                   size_t n_positions)
{
  struct prepared_change *prepared;
  uint64_t epoch = pair_back(e->pair)->epoch + 1;

  region_reset(&e->batch);
  TRY(prepare_changes(e->spaces, e->n_spaces, e->kernels, changes, n, &e->batch, &prepared));
  TRY(apply_to_back(e, epoch, prepared, n, positions, n_positions));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  return apply_to_back(e, epoch, prepared, n, positions, n_positions);
}

err_t engine_set_positions(struct engine *e, const struct position *positions, size_t n)
{
  uint64_t epoch = pair_back(e->pair)->epoch + 1;

  arena_forget_watermark(pair_back(e->pair));
  TRY(apply_to_back(e, epoch, NULL, 0, positions, n));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  arena_forget_watermark(pair_back(e->pair));
  return apply_to_back(e, epoch, NULL, 0, positions, n);
}

/* The back arena while engine_replace() fills it. */
struct engine_filling {
  struct engine *engine;
  struct arena_fill fill;
};

err_t engine_take(struct engine_filling *filling, struct region *scratch, size_t first,
                  const struct item_change *changes, size_t n)
{
  const struct engine *e = filling->engine;
  struct prepared_change *prepared;

  TRY(prepare_changes(e->spaces, e->n_spaces, e->kernels, changes, n, scratch, &prepared));
  return arena_fill_put(&filling->fill, first, prepared, n);
}

/* The front arena's items on their way to the back arena. */
struct copying {
  const struct arena *from;
  struct arena_fill fill;
  _Atomic size_t next_block;
};

static err_code_t copy_blocks(void *context)
{
  struct copying *c = context;
  size_t n_blocks = (c->from->n_slots + COLUMNS_FILL_SLOTS - 1) / COLUMNS_FILL_SLOTS, block;

  while ((block = atomic_fetch_add(&c->next_block, 1)) < n_blocks)
    TRY(arena_fill_copy(&c->fill, c->from, block));
  return ERR_OK;
}

/* Make the back arena anew. It is closed and opened again, so that its memory is given back too. */
static err_t renew_back(struct engine *e, struct arena **out)
{
  struct arena *back = pair_back(e->pair);

  arena_fini(back);
  *out = back;
  return arena_init(e->spaces, e->n_spaces, &e->backends, e->max_items, 2 * engine_host_bytes_per_item(e), back);
}

/* Set what the new catalogue's epoch says besides its items. */
static err_t date(struct arena *a, uint64_t epoch, const struct position *positions, size_t n)
{
  a->epoch = epoch;
  return arena_advance(a, positions, n);
}

static err_t fill_back(struct engine *e, engine_feed feed, void *context)
{
  struct engine_filling filling = { .engine = e };
  struct arena *back;

  TRY(renew_back(e, &back));
  arena_fill_begin(back, &filling.fill);
  err_code_t err = feed(context, &filling);
  if (err == ERR_OK)
    return arena_fill_finish(&filling.fill);
  arena_fill_abandon(&filling.fill);
  return err;
}

static err_t copy_to_back(struct engine *e, size_t n_threads)
{
  struct copying c = { 0 };
  struct arena *back;

  TRY(renew_back(e, &back));
  c.from = pair_front(e->pair);
  arena_fill_begin(back, &c.fill);
  err_code_t err = parallel_run(n_threads, copy_blocks, &c);
  if (err == ERR_OK)
    return arena_fill_finish(&c.fill);
  arena_fill_abandon(&c.fill);
  return err;
}

err_t engine_replace(struct engine *e, engine_feed feed, void *context, size_t n_threads,
                     const struct position *positions, size_t n)
{
  uint64_t epoch = pair_back(e->pair)->epoch + 1;

  TRY(fill_back(e, feed, context));
  TRY(date(pair_back(e->pair), epoch, positions, n));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(copy_to_back(e, n_threads));
  return date(pair_back(e->pair), epoch, positions, n);
}

bool engine_has_seen(struct engine *e, const struct position *positions, size_t n)
{
  const struct arena *front = pair_acquire(e->pair);
  bool has_seen = true;

  for (size_t i = 0; i < n && has_seen; i++)
    has_seen = arena_next(front, positions[i].partition) >= positions[i].next;
  pair_release(e->pair, front);
  return has_seen;
}

void engine_epoch_get(struct engine *e, struct engine_epoch *out, struct position *positions, size_t capacity)
{
  const struct arena *front = pair_acquire(e->pair);
  size_t n = front->n_watermark < capacity ? front->n_watermark : capacity;

  *out = (struct engine_epoch){ front->epoch, front->n_slots, front->n_watermark };
  if (n)
    memcpy(positions, front->watermark, n * sizeof *positions);
  pair_release(e->pair, front);
}

const char *engine_backend_name(const struct engine *e, size_t *n_failed)
{
  *n_failed = atomic_load(&e->backends.first);
  return e->backends.at[*n_failed]->name;
}

const char *engine_backend_reason(const struct engine *e)
{
  return backends_reason(&e->backends);
}

size_t engine_n_spaces(const struct engine *e)
{
  return e->n_spaces;
}

void engine_space_get(struct engine *e, size_t space, struct engine_space_info *out)
{
  const struct arena *front = pair_acquire(e->pair);

  *out = (struct engine_space_info){
    .name = e->spaces[space].name,
    .similarity = e->spaces[space].similarity->name,
    .n_items = front->spaces[space].n_items,
    .bytes_per_item =
        front->spaces[space].on[atomic_load(&e->backends.first)]->ops->bytes_per_item(e->spaces[space].model),
  };
  pair_release(e->pair, front);
}

/* Parse and verify the method. A refusal lists the methods of the space. */
static err_t parse_method(const struct space *s, struct span text, struct method *out)
{
  const struct similarity *similarity = s->similarity;
  char list[METHODS_TEXT_MAX];

  if (method_parse(text, out) != ERR_OK) {
    methods_print(similarity->methods, list);
    FAIL(ERR_METHOD, "%s; a %s space has %s", err_message(), similarity->name, list);
  }
  return methods_verify(similarity->methods, similarity->name, s->model, out);
}

err_t engine_check_query(const struct engine *e, const struct query *query, size_t *space, struct method *method)
{
  const struct space *s;

  if (!prepare_find_space(e->spaces, e->n_spaces, query->space, space))
    return fail_no_space(e, query->space);
  s = &e->spaces[*space];
  TRY(parse_method(s, query->method, method));
  if (query->k < 1 || query->k > e->max_k)
    FAIL(ERR_QUERY, "query: k is %u; it must be from 1 to %zu (query.max_k)", query->k, e->max_k);
  return s->similarity->check_query(s->model, query);
}
