/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: opens spaces and arenas, applies batches to both arenas of the pair, and checks parts and queries. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "engine/arena_alive.h"
#include "engine/arena_fill.h"
#include "engine/attributes/attribute_check.h"
#include "engine/engine_state.h"
#include "engine/filter/filter.h"
#include "engine/like.h"
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

/* What both arenas are made for. */
static struct arena_plan plan_of(struct engine *e)
{
  return (struct arena_plan){ .spaces = e->spaces,
                              .n_spaces = e->n_spaces,
                              .attributes = &e->attributes,
                              .lifetimes = e->lifetimes,
                              .kernels = e->kernels,
                              .hash = &e->hash,
                              .backends = &e->backends,
                              .capacity = e->max_items,
                              .pair_bytes_per_item = engine_host_bytes_per_pair(e) };
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
  TRY(key_hash_init(&e->hash));
  TRY(open_spaces(config, e));
  TRY(attributes_copy(&config->attributes, &e->attributes));
  TRY(engine_plan_lifetimes(config, e));
  TRY(engine_verify_memory(e, false));
  TRY(mem_array(1, sizeof *e->pair, &e->pair));
  const struct arena_plan plan = plan_of(e);
  for (int i = 0; i < 2; i++)
    TRY(arena_init(&plan, &e->pair->arenas[i]));
  TRY(filter_cache_open(bits_words(e->max_items), FILTER_CACHE_BYTES, &e->filters));
  *out = e;
  e = NULL;
  return ERR_OK;
}

void engine_close(struct engine **e)
{
  if (!*e)
    return;
  team_close(&(*e)->team);
  filter_cache_close(&(*e)->filters);
  for (int i = 0; (*e)->pair && i < 2; i++)
    arena_fini(&(*e)->pair->arenas[i]);
  mem_free(&(*e)->pair);
  for (size_t i = 0; i < (*e)->n_spaces; i++)
    space_fini(&(*e)->spaces[i]);
  mem_free(&(*e)->spaces);
  attributes_free(&(*e)->attributes);
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

err_t engine_normalize_attribute(const struct engine *e, struct region *region, struct attribute_value *attribute,
                                 bool *is_known)
{
  size_t index = attributes_find(&e->attributes, attribute->name, 0);

  *is_known = index != ATTRIBUTE_NONE;
  if (!*is_known)
    return ERR_OK;
  TRY(attribute_normalize(&e->attributes.v[index], region, &attribute->value));
  if (attribute->value.kind != VALUE_INTEGER)
    return ERR_OK;
  return lifetimes_verify_unit(&e->lifetimes, index, attribute->name, attribute->value.integer);
}

/* What batches are prepared for: the spaces and attributes of the engine. */
static struct prepare_target target_of(const struct engine *e)
{
  return (struct prepare_target){ e->spaces, e->n_spaces, &e->attributes, e->kernels };
}

/* An epoch to be published. */
struct epoch {
  uint64_t number;
  int64_t time_ms; /* 0: lifetimes are not kept */
  const struct position *positions;
  size_t n_positions;
};

/* Return the time of an epoch that begins now. A clock that is set back brings no item back. */
static int64_t pass_time(struct engine *e)
{
  if (lifetimes_plan_is_empty(&e->lifetimes))
    return 0;
  int64_t now_ms = engine_unix_ms(e);
  e->time_ms = now_ms > e->time_ms ? now_ms : e->time_ms;
  return e->time_ms;
}

/* Begin the next epoch. Both arenas get its number, its time and its changes. */
static struct epoch next_epoch(struct engine *e, const struct position *positions, size_t n)
{
  return (struct epoch){ pair_back(e->pair)->epoch + 1, pass_time(e), positions, n };
}

static err_t apply_to_back(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n)
{
  struct arena *back = pair_back(e->pair);

  arena_alive_advance(back, epoch->time_ms);
  TRY(arena_apply(back, changes, n));
  TRY(arena_advance(back, epoch->positions, epoch->n_positions));
  arena_date(back, epoch->number);
  return ERR_OK;
}

static void note_next_change(struct engine *e)
{
  atomic_store(&e->next_change_ms, pair_back(e->pair)->lifetimes.next_ms);
}

static err_t publish(struct engine *e, const struct epoch *epoch, struct prepared_change *changes, size_t n)
{
  TRY(apply_to_back(e, epoch, changes, n));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(apply_to_back(e, epoch, changes, n));
  note_next_change(e);
  return ERR_OK;
}

err_t engine_apply(struct engine *e, const struct item_change *changes, size_t n, const struct position *positions,
                   size_t n_positions)
{
  const struct prepare_target target = target_of(e);
  struct prepared_change *prepared;

  region_reset(&e->batch);
  TRY(prepare_changes(&target, changes, n, &e->batch, &prepared));
  const struct epoch epoch = next_epoch(e, positions, n_positions);
  err_code_t err = publish(e, &epoch, prepared, n);
  prepare_drop_texts(prepared, n);
  return err;
}

err_t engine_pass_time(struct engine *e, bool *has_published)
{
  const struct epoch epoch = next_epoch(e, NULL, 0);
  bool has_changed = arena_alive_advance(pair_back(e->pair), epoch.time_ms);

  if (has_published)
    *has_published = has_changed;
  if (has_changed)
    return publish(e, &epoch, NULL, 0);
  note_next_change(e); /* the bound may have been too early */
  return ERR_OK;
}

err_t engine_set_positions(struct engine *e, const struct position *positions, size_t n)
{
  const struct epoch epoch = next_epoch(e, positions, n);

  arena_forget_watermark(pair_back(e->pair));
  TRY(apply_to_back(e, &epoch, NULL, 0));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  arena_forget_watermark(pair_back(e->pair));
  TRY(apply_to_back(e, &epoch, NULL, 0));
  note_next_change(e);
  return ERR_OK;
}

/* The back arena while engine_replace() fills it. */
struct engine_filling {
  struct engine *engine;
  struct arena_fill fill;
};

err_t engine_take(struct engine_filling *filling, struct region *scratch, size_t first,
                  const struct item_change *changes, size_t n)
{
  const struct prepare_target target = target_of(filling->engine);
  struct prepared_change *prepared;

  TRY(prepare_changes(&target, changes, n, scratch, &prepared));
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

  while ((block = atomic_fetch_add(&c->next_block, 1)) < n_blocks) {
    progress_note();
    TRY(arena_fill_copy(&c->fill, c->from, block));
  }
  return ERR_OK;
}

/* Make the back arena anew. It is closed and opened again, so that its memory is given back too. */
static err_t renew_back(struct engine *e, struct arena **out)
{
  const struct arena_plan plan = plan_of(e);
  struct arena *back = pair_back(e->pair);

  arena_fini(back);
  *out = back;
  return arena_init(&plan, back);
}

/* Set what the new catalogue's epoch says besides its items. */
static err_t date(struct arena *a, const struct epoch *epoch)
{
  arena_alive_advance(a, epoch->time_ms);
  arena_date(a, epoch->number);
  return arena_advance(a, epoch->positions, epoch->n_positions);
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
  struct epoch epoch = next_epoch(e, positions, n);

  TRY(fill_back(e, feed, context));
  epoch.time_ms = pass_time(e); /* filling may take long */
  TRY(date(pair_back(e->pair), &epoch));
  pair_publish(e->pair);
  pair_wait_for_readers(e->pair);
  TRY(copy_to_back(e, n_threads));
  TRY(date(pair_back(e->pair), &epoch));
  note_next_change(e);
  return ERR_OK;
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

  *out = (struct engine_epoch){ .number = front->epoch,
                                .n_items = front->n_slots,
                                .n_positions = front->n_watermark,
                                .has_time = !lifetimes_plan_is_empty(&e->lifetimes),
                                .time_unix_ms = front->lifetimes.time_ms,
                                .n_expired = front->lifetimes.n_expired,
                                .n_embargoed = front->lifetimes.n_embargoed };
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

const struct attributes *engine_attributes(const struct engine *e)
{
  return &e->attributes;
}

uint64_t engine_attribute_count(struct engine *e, size_t attribute)
{
  const struct arena *front = pair_acquire(e->pair);
  uint64_t n = attribute_columns_count(front->attributes, attribute);

  pair_release(e->pair, front);
  return n;
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
    .n_alive = arena_space_n_alive(&front->spaces[space]),
    .bytes_per_item =
        front->spaces[space].on[atomic_load(&e->backends.first)]->ops->bytes_per_item(e->spaces[space].model),
    .lengths = e->spaces[space].similarity->lengths(e->spaces[space].model),
  };
  pair_release(e->pair, front);
}

void engine_filters_get(struct engine *e, struct engine_filters *out)
{
  struct filter_cache_stats stats;

  filter_cache_get_stats(e->filters, &stats);
  *out = (struct engine_filters){ stats.n_hits, stats.n_patched, stats.n_evaluated };
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
  return query->like.n ? like_check(query, s, &e->backends) : s->similarity->check_query(s->model, query);
}

err_t engine_check_filter(const struct engine *e, struct query *query, struct region *region)
{
  if (query->filter.n == 0)
    return ERR_OK;
  TRY(filter_parse(query->filter, query->parameters, query->n_parameters, &e->attributes, region, &query->tree));
  return filter_print(query->tree, &e->attributes, region, &query->tree_key);
}

const struct key_hash *engine_key_hash(const struct engine *e)
{
  return &e->hash;
}
