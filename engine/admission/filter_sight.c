/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the change logs that belong to a filter. */
#include "engine/admission/filter_sight.h"

#include <assert.h>

static_assert(ATTRIBUTES_MAX <= 64, "a set of attributes is a word");

static uint64_t larger(uint64_t a, uint64_t b)
{
  return a > b ? a : b;
}

/* The attributes that a filter names, as bits. */
static uint64_t named_attributes(const struct filter_node *filter)
{
  uint64_t named = 0;

  switch (filter->kind) {
  case FILTER_ALL:
  case FILTER_NONE:
    return 0;
  case FILTER_AND:
  case FILTER_OR:
  case FILTER_NOT:
    for (size_t i = 0; i < filter->operands.n; i++)
      named |= named_attributes(filter->operands.v[i]);
    return named;
  default:
    return UINT64_C(1) << filter->attribute;
  }
}

static void add(struct filter_sight *s, const struct change_log *log)
{
  s->logs[s->n++] = log;
  s->version = larger(s->version, log->epoch);
  s->known_since = larger(s->known_since, log->known_since);
}

void filter_sight_look(const struct arena *arena, size_t space, const struct filter_node *filter,
                       struct filter_sight *out)
{
  out->n = 0;
  out->version = out->known_since = 0;
  add(out, &arena->slots);
  add(out, &arena->spaces[space].touched);
  for (uint64_t rest = filter ? named_attributes(filter) : 0; rest; rest &= rest - 1)
    add(out, attribute_columns_changes(arena->attributes, (size_t)__builtin_ctzll(rest)));
}

size_t filter_sight_count(const struct filter_sight *s, uint64_t since)
{
  size_t n = 0;

  for (size_t i = 0; i < s->n; i++)
    n += change_log_count(s->logs[i], since);
  return n;
}
