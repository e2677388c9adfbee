/* SPDX-License-Identifier: Apache-2.0 */
/* Checks queries: finds their space and method in the front arena, and parses filters. Separate from engine.c, because
 * it looks at the published epoch, not at what the catalogue thread owns. */
#include <stdio.h>

#include "base/log.h"
#include "base/method.h"
#include "base/space_name.h"
#include "engine/arena/arena_space.h"
#include "engine/boosts/boosts.h"
#include "engine/engine_state.h"
#include "engine/filter/filter.h"
#include "engine/hit_attributes.h"
#include "engine/like.h"
#include "engine/max_per.h"
#include "engine/mmr.h"

/* The names that a refusal lists, if they are not too many. */
struct names {
  char text[600];
  size_t n_bytes;
  size_t n, n_shown;
};

enum { NAMES_SHOWN_MAX = 20 };

static void add_name(struct names *names, const char *name)
{
  size_t left = sizeof names->text - names->n_bytes;

  names->n++;
  if (names->n_shown == NAMES_SHOWN_MAX || strlen(name) + 3 >= left)
    return;
  names->n_bytes += (size_t)snprintf(names->text + names->n_bytes, left, "%s%s", names->n_shown ? ", " : "", name);
  names->n_shown++;
}

/* Refuse an unknown space. */
static err_t fail_no_space(const struct arena *a, struct span name)
{
  struct names names = { 0 };

  ARENA_FOR_EACH_SPACE (a, in) {
    if (in->is_current)
      add_name(&names, in->space->name);
  }
  if (names.n > names.n_shown)
    FAIL(ERR_SPACE, "there is no space %s; there are %s, and %zu more", log_quote(name), names.text,
         names.n - names.n_shown);
  FAIL(ERR_SPACE, "there is no space %s; there %s %s", log_quote(name), names.n == 1 ? "is" : "are", names.text);
}

/* Refuse an unknown generation of a space that exists. */
static err_t fail_no_generation(const struct arena *a, const struct space_name *name)
{
  struct names names = { 0 };
  char generation[32];

  ARENA_FOR_EACH_SPACE (a, in) {
    if (!span_equal(name->space, span_of_str(in->space->name)))
      continue;
    snprintf(generation, sizeof generation, "%u%s", in->space->generation, in->is_current ? " (current)" : "");
    add_name(&names, generation);
  }
  FAIL(ERR_SPACE, "space %s has no generation %u; it has %s", log_quote(name->space), name->generation, names.text);
}

static const struct arena_space *find_space(const struct arena *a, const struct query *query,
                                            const struct space_name *name)
{
  const struct arena_space *in = NULL;

  if (!name->generation && query->generation)
    in = arena_space_find(a, name->space, query->generation);
  return in ? in : arena_space_find(a, name->space, name->generation);
}

static err_t find_or_fail(const struct arena *a, const struct query *query, const struct arena_space **out,
                          size_t *number)
{
  struct space_name name;

  if (!space_name_parse(query->space, &name))
    return fail_no_space(a, query->space);
  *out = find_space(a, query, &name);
  if (*out) {
    bool is_pinned = name.generation || !(*out)->is_current;
    *number = (*out)->space->number | (is_pinned ? ENGINE_PINNED : 0);
    return ERR_OK;
  }
  return arena_space_find(a, name.space, 0) ? fail_no_generation(a, &name) : fail_no_space(a, query->space);
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

static err_t check_query(const struct engine *e, const struct arena *a, const struct query *query, size_t *number,
                         struct method *method)
{
  const struct arena_space *in;

  TRY(find_or_fail(a, query, &in, number));
  const struct space *s = in->space;
  TRY(parse_method(s, query->method, method));
  if (query->k == 0)
    FAIL(ERR_QUERY, "query: k is missing, or 0; it must be from 1 to %zu (query.max_k)", e->max_k);
  if (query->k > e->max_k)
    FAIL(ERR_QUERY, "query: k is %u; it must be from 1 to %zu (query.max_k)", query->k, e->max_k);
  if (query->max_per.n)
    TRY(max_per_check(&query->max_per, &e->attributes));
  TRY(mmr_check(query, e->max_k, s, &e->backends));
  TRY(boosts_check(query, &e->attributes));
  TRY(hit_attributes_check(query, &e->attributes));
  return query->n_likes ? like_check(query, s, &e->backends) : s->similarity->check_query(s->model, query);
}

err_t engine_check_query(const struct engine *e, const struct query *query, size_t *space, struct method *method)
{
  const struct arena *front = pair_acquire(e->pair);
  err_code_t err = check_query(e, front, query, space, method);

  pair_release(e->pair, front);
  return err;
}

err_t engine_check_filter(const struct engine *e, struct query *query, struct region *region)
{
  TRY(boosts_parse(query, &e->attributes, region));
  if (query->filter.n == 0)
    return ERR_OK;
  TRY(filter_parse(query->filter, query->parameters, query->n_parameters, &e->attributes, region, &query->tree));
  return filter_print(query->tree, &e->attributes, region, &query->tree_key);
}
