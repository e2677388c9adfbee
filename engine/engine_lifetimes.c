/* SPDX-License-Identifier: Apache-2.0 */
/* The lifetimes of an engine's items: which attributes say them, when the next one begins or ends, and which items have
 * been expired for long. Separate from engine.c, because the check of a configuration (engine_check_config.c) needs the
 * first without opening one. */
#include "engine/engine_state.h"

#include "base/clock.h"

err_t engine_plan_lifetimes(const struct engine_config *config, struct engine *e)
{
  const struct engine_lifetimes *names = &config->lifetimes;

  e->clock = names->clock;
  atomic_init(&e->next_change_ms, INT64_MAX);
  return lifetimes_plan_make(&config->attributes, names->not_before, names->expires, &e->lifetimes);
}

int64_t engine_unix_ms(const struct engine *e)
{
  return e->clock.unix_ms ? e->clock.unix_ms(e->clock.context) : clock_unix_ms();
}

int64_t engine_next_change_ms(const struct engine *e)
{
  return atomic_load(&e->next_change_ms);
}

/* A list of keys that is being made. */
struct listing {
  const struct arena *arena;
  int64_t until_ms; /* of items that expired no later */
  struct region *region;
  struct span *keys; /* [max] */
  size_t n, max;
};

static err_t list_word(struct listing *l, const int64_t *times, size_t word)
{
  for (uint64_t rest = l->arena->lifetimes.expired[word]; rest && l->n < l->max; rest &= rest - 1) {
    uint32_t slot = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(rest);
    if (times[slot] <= l->until_ms)
      TRY(region_copy(l->region, keys_get(&l->arena->keys, slot), &l->keys[l->n++]));
  }
  return ERR_OK;
}

err_t engine_list_expired(struct engine *e, int64_t expired_for_ms, size_t max, struct region *region,
                          struct span **keys, size_t *n)
{
  const struct arena *a = pair_back(e->pair);

  *n = 0;
  if (e->lifetimes.expires == ATTRIBUTE_NONE || a->lifetimes.n_expired == 0)
    return ERR_OK;
  const int64_t *times = attribute_columns_times(a->attributes, e->lifetimes.expires).v;
  int64_t now_ms = engine_unix_ms(e);
  if (now_ms > e->time_ms)
    now_ms = e->time_ms; /* an epoch's time stays ahead after a clock was wrong: then nothing may be listed by it */
  struct listing l = { .arena = a, .until_ms = now_ms - expired_for_ms, .region = region, .max = max };
  TRY(region_array(region, max, sizeof *l.keys, &l.keys));
  for (size_t w = 0; w < bits_words(a->n_slots) && l.n < max; w++)
    TRY(list_word(&l, times, w));
  *keys = l.keys;
  *n = l.n;
  return ERR_OK;
}
