/* SPDX-License-Identifier: Apache-2.0 */
/* Two halves, each an open-addressing table: members go to the younger one, and the older one is dropped whole. */
#include "daemon/merge/answered_queries.h"

#include "base/mem.h"

enum { SLOTS_MIN = 1024 };

struct half {
  struct query_digest *slots; /* [n_slots]; all zeros: free. No digest is zero, in all likelihood */
  size_t n_slots;             /* a power of two */
  size_t n;
};

struct answered_queries {
  struct half young, old;
  int64_t keep_ns;
  int64_t turn_ns; /* when the halves turn; 0: not set */
};

err_t answered_queries_open(int64_t keep_ns, struct answered_queries **out)
{
  struct answered_queries *a;

  TRY(mem_array(1, sizeof *a, &a));
  a->keep_ns = keep_ns;
  *out = a;
  return ERR_OK;
}

static void drop(struct half *h)
{
  mem_free(&h->slots);
  *h = (struct half){ 0 };
}

void answered_queries_clear(struct answered_queries *a)
{
  drop(&a->young);
  drop(&a->old);
  a->turn_ns = 0;
}

void answered_queries_close(struct answered_queries **a)
{
  if (*a)
    answered_queries_clear(*a);
  mem_free(a);
}

/* Return the slot of a digest, or the free slot where it belongs. */
static struct query_digest *find_slot(const struct half *h, struct query_digest digest)
{
  size_t i = digest.lo & (h->n_slots - 1);

  while ((h->slots[i].lo || h->slots[i].hi) && !query_digest_equal(h->slots[i], digest))
    i = (i + 1) & (h->n_slots - 1);
  return &h->slots[i];
}

static err_t grow(struct half *h)
{
  struct half larger = { .n_slots = h->n_slots ? 2 * h->n_slots : SLOTS_MIN, .n = h->n };

  TRY(mem_array(larger.n_slots, sizeof *larger.slots, &larger.slots));
  for (size_t i = 0; i < h->n_slots; i++) {
    if (h->slots[i].lo || h->slots[i].hi)
      *find_slot(&larger, h->slots[i]) = h->slots[i];
  }
  drop(h);
  *h = larger;
  return ERR_OK;
}

static void turn(struct answered_queries *a, int64_t now_ns)
{
  if (a->turn_ns && now_ns < a->turn_ns)
    return;
  if (a->turn_ns) {
    drop(&a->old);
    a->old = a->young;
    a->young = (struct half){ 0 };
  }
  a->turn_ns = now_ns + a->keep_ns;
}

err_t answered_queries_add(struct answered_queries *a, struct query_digest digest, int64_t now_ns)
{
  turn(a, now_ns);
  if (2 * (a->young.n + 1) > a->young.n_slots)
    TRY(grow(&a->young));
  struct query_digest *slot = find_slot(&a->young, digest);
  a->young.n += !query_digest_equal(*slot, digest);
  *slot = digest;
  return ERR_OK;
}

static bool has(const struct half *h, struct query_digest digest)
{
  return h->n > 0 && query_digest_equal(*find_slot(h, digest), digest);
}

bool answered_queries_have(const struct answered_queries *a, struct query_digest digest)
{
  return has(&a->young, digest) || has(&a->old, digest);
}

size_t answered_queries_count(const struct answered_queries *a)
{
  return a->young.n + a->old.n;
}
