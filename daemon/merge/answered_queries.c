/* SPDX-License-Identifier: Apache-2.0 */
/* Two generations of an open-addressing table: members go to the younger one, and the older one is dropped whole. */
#include "daemon/merge/places.h"

#include <xxhash.h>

#include "base/mem.h"

enum { SLOTS_MIN = 1024 };

struct generation {
  struct place *slots; /* [n_slots]; all zeros: free. No digest is zero, in all likelihood */
  size_t n_slots;      /* a power of two */
  size_t n;
};

struct places {
  struct generation young, old;
  int64_t keep_ns;
  int64_t turn_ns; /* when the generations change; 0: not set */
};

struct place place_of(struct span key)
{
  XXH128_hash_t hash = XXH3_128bits(key.p, key.n);

  return (struct place){ hash.low64, hash.high64 };
}

err_t places_open(int64_t keep_ns, struct places **out)
{
  struct places *p;

  TRY(mem_array(1, sizeof *p, &p));
  p->keep_ns = keep_ns;
  *out = p;
  return ERR_OK;
}

static void drop(struct generation *g)
{
  mem_free(&g->slots);
  *g = (struct generation){ 0 };
}

void places_clear(struct places *p)
{
  drop(&p->young);
  drop(&p->old);
  p->turn_ns = 0;
}

void places_close(struct places **p)
{
  if (*p)
    places_clear(*p);
  mem_free(p);
}

/* Return the slot of a place, or the free slot where it belongs. */
static struct place *find_slot(const struct generation *g, struct place place)
{
  size_t i = place.lo & (g->n_slots - 1);

  while ((g->slots[i].lo || g->slots[i].hi) && !place_equal(g->slots[i], place))
    i = (i + 1) & (g->n_slots - 1);
  return &g->slots[i];
}

static err_t grow(struct generation *g)
{
  struct generation larger = { .n_slots = g->n_slots ? 2 * g->n_slots : SLOTS_MIN, .n = g->n };

  TRY(mem_array(larger.n_slots, sizeof *larger.slots, &larger.slots));
  for (size_t i = 0; i < g->n_slots; i++) {
    if (g->slots[i].lo || g->slots[i].hi)
      *find_slot(&larger, g->slots[i]) = g->slots[i];
  }
  drop(g);
  *g = larger;
  return ERR_OK;
}

static void turn(struct places *p, int64_t now_ns)
{
  if (p->turn_ns && now_ns < p->turn_ns)
    return;
  if (p->turn_ns) {
    drop(&p->old);
    p->old = p->young;
    p->young = (struct generation){ 0 };
  }
  p->turn_ns = now_ns + p->keep_ns;
}

err_t places_add(struct places *p, struct place place, int64_t now_ns)
{
  turn(p, now_ns);
  if (2 * (p->young.n + 1) > p->young.n_slots)
    TRY(grow(&p->young));
  struct place *slot = find_slot(&p->young, place);
  p->young.n += !place_equal(*slot, place);
  *slot = place;
  return ERR_OK;
}

static bool has(const struct generation *g, struct place place)
{
  return g->n > 0 && place_equal(*find_slot(g, place), place);
}

bool places_have(const struct places *p, struct place place)
{
  return has(&p->young, place) || has(&p->old, place);
}

size_t places_count(const struct places *p)
{
  return p->young.n + p->old.n;
}
