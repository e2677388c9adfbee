/* SPDX-License-Identifier: Apache-2.0 */
/* Checking and binding boosts, and the sum that an item gets. */
#include "engine/boosts/boosts.h"

#include <math.h>

#include "base/attributes.h"
#include "engine/attributes/attribute_selection.h"
#include "engine/boosts/decay.h"

/* A sum of two numbers in double has an error far below this share. */
#define SLACK 1e-14

/* ---- Checking ---- */

static err_t check_type(const struct boost *boost, const struct attribute *attribute)
{
  int n = (int)attribute->name.n;
  const char *name = (const char *)attribute->name.p;

  switch (attribute->type) {
  case ATTRIBUTE_TIME:
    if (boost->half_life_ms == 0)
      FAIL(ERR_QUERY, "half_life_ms is missing: '%.*s' is a time, and its age counts", n, name);
    return ERR_OK;
  case ATTRIBUTE_INTEGER:
  case ATTRIBUTE_NUMBER:
    if (boost->half_life_ms > 0)
      FAIL(ERR_QUERY, "half_life_ms: '%.*s' is of type %s; only a time has an age", n, name,
           attribute_type_name(attribute->type));
    return ERR_OK;
  default:
    FAIL(ERR_QUERY,
         "attribute: '%.*s' is of type %s; it must be of type integer, number or time. A filter can compare it", n,
         name, attribute_type_name(attribute->type));
  }
}

static err_t check_boost(const struct boost *boost, const struct attributes *attributes)
{
  size_t found;

  if (boost->attribute.n == 0) {
    if (boost->half_life_ms > 0)
      FAIL(ERR_QUERY, "half_life_ms: a filter has no age");
    return ERR_OK;
  }
  if (attributes_get(attributes, boost->attribute, &found) != ERR_OK)
    FAIL(ERR_QUERY, "attribute: %s", err_message());
  return check_type(boost, &attributes->v[found]);
}

err_t boosts_check(const struct query *query, const struct attributes *attributes)
{
  for (size_t i = 0; i < query->n_boosts; i++) {
    if (check_boost(&query->boosts[i], attributes) != ERR_OK)
      FAIL(ERR_QUERY, "boosts[%zu].%s", i, err_message());
  }
  return ERR_OK;
}

err_t boosts_parse(struct query *query, const struct attributes *attributes, struct region *region)
{
  for (size_t i = 0; i < query->n_boosts; i++) {
    struct boost *boost = &query->boosts[i];
    if (boost->filter.n == 0)
      continue;
    err_code_t err =
        filter_parse(boost->filter, boost->parameters, boost->n_parameters, attributes, region, &boost->tree);
    if (err == ERR_QUERY)
      FAIL(ERR_QUERY, "boosts[%zu].%s", i, err_message());
    TRY(err);
    TRY(filter_print(boost->tree, attributes, region, &boost->tree_key));
  }
  return ERR_OK;
}

/* ---- Binding ---- */

err_t boosts_bind(const struct arena *arena, const struct attributes *attributes, const struct query *query,
                  struct region *region, struct boosts *out)
{
  *out = (struct boosts){ .arena = arena, .now_ms = (double)query->now_unix_ms, .n = query->n_boosts };
  for (size_t i = 0; i < query->n_boosts; i++) {
    const struct boost *from = &query->boosts[i];
    struct bound_boost *to = &out->v[i];
    *to = (struct bound_boost){ .boost = from, .weight = from->weight, .half_life_ms = (double)from->half_life_ms };
    if (from->tree)
      TRY(attribute_selection_bind(arena->attributes, from->tree, region, &to->filter));
    else
      to->attribute = attributes_find(attributes, from->attribute, 0);
  }
  return ERR_OK;
}

err_t boosts_evaluate(struct boosts *b, const struct admission_target *target, struct region *region,
                      struct admission *held)
{
  for (size_t i = 0; i < b->n; i++) {
    const struct boost *boost = b->v[i].boost;
    if (boost->tree)
      TRY(admission_find_words(target, boost->tree, boost->tree_key, region, held, &b->v[i].words));
  }
  return ERR_OK;
}

/* ---- Sums ---- */

static double clamp(double boost)
{
  return fmin(fmax(boost, -BOOST_MAX), BOOST_MAX);
}

bool boost_is_sparse(const struct boosts *b, size_t i)
{
  return attribute_columns_count(b->arena->attributes, b->v[i].attribute) < b->arena->n_slots;
}

double boosts_of_value(const struct boosts *b, size_t i, double value)
{
  const struct bound_boost *boost = &b->v[i];

  if (boost->filter)
    return clamp(boost->weight);
  if (boost->half_life_ms > 0)
    return clamp(boost->weight * decay(fmax(b->now_ms - value, 0.0) / boost->half_life_ms));
  return clamp(boost->weight * value);
}

/* Does the filter of a boost admit a slot? */
static bool is_matched(const struct bound_boost *boost, uint32_t slot)
{
  uint64_t word;

  if (boost->words)
    return bits_get(boost->words, slot);
  attribute_selection_words(boost->filter, slot / 64, 1, &word);
  return word >> slot % 64 & 1;
}

double boosts_of_slot(const struct boosts *b, uint32_t slot)
{
  double sum = 0.0, value = 0.0;

  for (size_t i = 0; i < b->n; i++) {
    const struct bound_boost *boost = &b->v[i];
    bool counts = boost->filter ? is_matched(boost, slot)
                                : attribute_columns_number(b->arena->attributes, boost->attribute, slot, &value);
    if (counts)
      sum += boosts_of_value(b, i, value);
  }
  return sum;
}

/* The score is rounded to float: half a step more than the float below may be enough. */
double boosts_least(float score, double most_similar)
{
  double slack = SLACK * (fabs((double)score) + fabs(most_similar));

  return score == -INFINITY ? -INFINITY : (double)nextafterf(score, -INFINITY) - most_similar - slack;
}

void boosts_add(const struct boosts *b, struct hit *hits, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    hits[i].key = keys_get(&b->arena->keys, hits[i].slot);
    hits[i].similarity = hits[i].score;
    hits[i].score = boosts_score(hits[i].similarity, boosts_of_slot(b, hits[i].slot));
  }
}
