/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing the times of slots with the epoch's time, one slot at a time or a block of them. */
#include "engine/arena/lifetimes.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/log.h"
#include "base/mem.h"

enum { AT_ONCE_MS = 1 }; /* a bound of a block that is due whatever the time is */

/* Times in seconds since 1970 are between these. */
#define YEAR_1990_S INT64_C(631152000)
#define YEAR_2100_S INT64_C(4102444800)

static err_t find_attribute(const struct attributes *attributes, const char *name, const char *setting, size_t *out)
{
  *out = ATTRIBUTE_NONE;
  if (!name || !*name)
    return ERR_OK;
  *out = attributes_find(attributes, span_of_str(name), 0);
  if (*out == ATTRIBUTE_NONE)
    FAIL(ERR_CONFIG, "%s: there is no attribute %s: add it to `attributes`, with the type time", setting,
         log_quote(span_of_str(name)));
  if (attributes->v[*out].type != ATTRIBUTE_TIME)
    FAIL(ERR_CONFIG, "%s: the attribute %s has the type %s: name one of the type time", setting, name,
         attribute_type_name(attributes->v[*out].type));
  return ERR_OK;
}

err_t lifetimes_plan_make(const struct attributes *attributes, const char *not_before, const char *expires,
                          struct lifetimes_plan *out)
{
  TRY(find_attribute(attributes, not_before, "not_before", &out->not_before));
  return find_attribute(attributes, expires, "expires", &out->expires);
}

err_t lifetimes_verify_unit(const struct lifetimes_plan *plan, size_t attribute, struct span name, int64_t time_ms)
{
  bool is_named = attribute == plan->not_before || attribute == plan->expires;

  if (is_named && time_ms >= YEAR_1990_S && time_ms < YEAR_2100_S)
    FAIL(ERR_ITEM,
         "attributes[%s]: %" PRId64 " ms since 1970 is in early 1970, so it seems to be in seconds: write %" PRId64
         "000",
         log_quote(name), time_ms, time_ms);
  return ERR_OK;
}

static size_t n_blocks(size_t n_slots)
{
  return (n_slots + LIFETIMES_BLOCK_SLOTS - 1) / LIFETIMES_BLOCK_SLOTS;
}

/* Words of whole blocks, so that a scan never ends within one. */
static size_t n_words(size_t n_slots)
{
  return n_blocks(n_slots) * LIFETIMES_BLOCK_WORDS;
}

err_t lifetimes_init(const struct lifetimes_plan *plan, size_t capacity, struct lifetimes *out)
{
  *out = (struct lifetimes){ .plan = *plan, .capacity = capacity, .next_ms = INT64_MAX };
  if (lifetimes_plan_is_empty(plan))
    return ERR_OK;
  TRY(mem_reserve(n_words(capacity), sizeof *out->expired, &out->expired));
  TRY(mem_reserve(n_words(capacity), sizeof *out->embargoed, &out->embargoed));
  return mem_reserve(n_blocks(capacity), sizeof *out->bounds_ms, &out->bounds_ms);
}

void lifetimes_fini(struct lifetimes *l)
{
  mem_release(&l->expired, n_words(l->capacity), sizeof *l->expired);
  mem_release(&l->embargoed, n_words(l->capacity), sizeof *l->embargoed);
  mem_release(&l->bounds_ms, n_blocks(l->capacity), sizeof *l->bounds_ms);
}

/* Move a bound to an earlier moment. */
static void lower(struct lifetimes *l, size_t block, int64_t moment_ms)
{
  int64_t *bound = &l->bounds_ms[block];

  if (*bound == 0 || moment_ms < *bound)
    *bound = moment_ms;
  if (moment_ms < l->next_ms)
    l->next_ms = moment_ms;
}

static void write_bit(uint64_t *words, size_t slot, bool is_set, uint64_t *n)
{
  bool was_set = bits_get(words, slot);

  if (is_set == was_set)
    return;
  words[slot / 64] ^= UINT64_C(1) << (slot % 64);
  *n = is_set ? *n + 1 : *n - 1;
}

/* Return a time of a slot, or `absent`. */
static int64_t time_of(const struct attribute_columns *columns, size_t attribute, uint32_t slot, int64_t absent)
{
  if (attribute == ATTRIBUTE_NONE)
    return absent;
  struct attribute_times times = attribute_columns_times(columns, attribute);
  return bits_get(times.present, slot) ? times.v[slot] : absent;
}

void lifetimes_look(struct lifetimes *l, const struct attribute_columns *columns, uint32_t slot)
{
  int64_t begin = time_of(columns, l->plan.not_before, slot, INT64_MIN);
  int64_t end = time_of(columns, l->plan.expires, slot, INT64_MAX);
  bool is_expired = end <= l->time_ms, is_embargoed = !is_expired && begin > l->time_ms;

  write_bit(l->expired, slot, is_expired, &l->n_expired);
  write_bit(l->embargoed, slot, is_embargoed, &l->n_embargoed);
  if (is_embargoed)
    lower(l, slot / LIFETIMES_BLOCK_SLOTS, begin);
  if (!is_expired && end != INT64_MAX)
    lower(l, slot / LIFETIMES_BLOCK_SLOTS, end);
}

/* Find the slots of a word whose time is later than now.
 *
 * next_ms  lowered to the earliest of those times
 */
static uint64_t later(const struct lifetimes *l, const struct attribute_times *times, size_t word, int64_t *next_ms)
{
  const int64_t *v = times->v + word * 64;
  uint64_t present = times->present[word], found = 0;

  for (size_t i = 0; present && i < 64; i++) {
    bool is_later = v[i] > l->time_ms && (present >> i & 1);
    found |= (uint64_t)is_later << i;
    *next_ms = is_later && v[i] < *next_ms ? v[i] : *next_ms;
  }
  return found;
}

static bool write_word(uint64_t *words, size_t word, uint64_t bits, uint64_t *n)
{
  bool has_changed = words[word] != bits;

  *n += (uint64_t)__builtin_popcountll(bits);
  *n -= (uint64_t)__builtin_popcountll(words[word]);
  words[word] = bits;
  return has_changed;
}

static bool scan_word(struct lifetimes *l, const struct attribute_columns *columns, size_t word, int64_t *next_ms)
{
  uint64_t expired = 0, embargoed = 0;

  if (l->plan.expires != ATTRIBUTE_NONE) {
    struct attribute_times times = attribute_columns_times(columns, l->plan.expires);
    expired = times.present[word] & ~later(l, &times, word, next_ms);
  }
  if (l->plan.not_before != ATTRIBUTE_NONE) {
    struct attribute_times times = attribute_columns_times(columns, l->plan.not_before);
    embargoed = later(l, &times, word, next_ms) & ~expired;
  }
  bool has_expired = write_word(l->expired, word, expired, &l->n_expired);
  return write_word(l->embargoed, word, embargoed, &l->n_embargoed) || has_expired;
}

bool lifetimes_scan(struct lifetimes *l, const struct attribute_columns *columns, size_t block)
{
  size_t end = bits_words(l->capacity), first = block * LIFETIMES_BLOCK_WORDS;
  int64_t next_ms = INT64_MAX;
  bool has_changed = false;

  for (size_t w = first; w < first + LIFETIMES_BLOCK_WORDS && w < end; w++)
    has_changed |= scan_word(l, columns, w, &next_ms);
  l->bounds_ms[block] = next_ms == INT64_MAX ? 0 : next_ms;
  return has_changed;
}

void lifetimes_look_at_all(struct lifetimes *l, size_t n_slots)
{
  for (size_t i = 0; i < n_blocks(n_slots); i++)
    lower(l, i, AT_ONCE_MS);
}

void lifetimes_find_next(struct lifetimes *l, size_t n_slots)
{
  l->next_ms = INT64_MAX;
  for (size_t i = 0; i < n_blocks(n_slots); i++)
    l->next_ms = l->bounds_ms[i] != 0 && l->bounds_ms[i] < l->next_ms ? l->bounds_ms[i] : l->next_ms;
}

void lifetimes_trim(struct lifetimes *l, size_t from, size_t to)
{
  if (lifetimes_plan_is_empty(&l->plan))
    return;
  mem_give_back(l->expired, n_words(from), n_words(to), sizeof *l->expired);
  mem_give_back(l->embargoed, n_words(from), n_words(to), sizeof *l->embargoed);
  mem_give_back(l->bounds_ms, n_blocks(from), n_blocks(to), sizeof *l->bounds_ms);
}
