/* SPDX-License-Identifier: Apache-2.0 */
/* A Mixture-of-Logits model that behaves like a trained one, and a catalogue to go with it. Nothing is trained: the
 * weights are planted.
 *
 * Items lie in topics, and topics have smaller groups. A query is a user with one to three interests: a
 * layer-normalised mean of items from one topic each.
 *
 * A planted part is added to Xavier weights. Component n of a query and component n of an item are projections by the
 * same matrix, so they agree when query and item do. The matrices of different n are alike, so other pairs agree too,
 * but less. The gate gives more weight to larger logits. GELU(x) - GELU(-x) = x and SiLU(x) - SiLU(-x) = x: two hidden
 * units pass a number on unchanged, so both parts are planted exactly.
 */
#include "tests/bench/mol_data.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"

enum { TOPICS = 400, GROUPS_PER_TOPIC = 20, INTERESTS_MAX = 3, ITEMS_PER_INTEREST = 4 };

/* Standard deviations. Topics, groups and items add up to about 1 in each dimension. */
static const double TOPIC = 0.8, GROUP = 0.5, ITEM = 0.6, QUERY_NOISE = 0.3;

/* How much of a component's matrix is its own, and not shared by all components. */
static const double OWN = 0.4;

/* The gate's preference for larger logits, and what is left of the Xavier weights of that network. With these numbers,
 * a gate spreads its weight over about 30 of the 64 logits. */
static const double GATE_SLOPE = 0.1;
static const float GATE_NOISE = 0.5f;

struct topics {
  struct dice *dice;
  float *groups; /* [TOPICS][GROUPS_PER_TOPIC][MOL_DIM]: centres */
};

/* Weights -------------------- */

/* Rows of W are outputs. Add `sign` times W to the columns of hidden units first_unit... */
static void add_block(float *weights, size_t n_units, const float *block, size_t n_out, size_t n_in, size_t first_unit,
                      float sign)
{
  for (size_t o = 0; o < n_out; o++)
    for (size_t i = 0; i < n_in; i++)
      weights[o * n_units + first_unit + i] += sign * block[o * n_in + i];
}

/* Let units 0..n-1 of the query's network hold GELU(q) and the next n hold GELU(-q): the multipliers are 1. */
static void plant_query_units(struct mol_data *data)
{
  float *w = mol_data_weight(data, MOL_QUERY_NET "1._w"), *b = mol_data_weight(data, MOL_QUERY_NET "1._b");

  for (size_t unit = 0; unit < (size_t)2 * MOL_DIM; unit++) {
    for (size_t i = 0; i < MOL_DIM; i++) {
      w[i * 2 * MOL_GLU + unit] = i != unit % MOL_DIM ? 0.0f : unit < MOL_DIM ? 1.0f : -1.0f;
      w[i * 2 * MOL_GLU + MOL_GLU + unit] = 0.0f;
    }
    b[unit] = 0.0f;
    b[MOL_GLU + unit] = 1.0f;
  }
}

static void plant_components(struct dice *dice, struct mol_data *data)
{
  enum { OUT = MOL_COMPONENTS * MOL_COMPONENT_DIM };
  static float shared[MOL_COMPONENT_DIM * MOL_DIM], block[OUT * MOL_DIM];
  float *query = mol_data_weight(data, MOL_QUERY_NET "2.weight");

  plant_query_units(data);
  draw_normals(dice, shared, sizeof shared / sizeof shared[0], (1 - OWN) / sqrt(MOL_DIM));
  draw_normals(dice, block, sizeof block / sizeof block[0], OWN / sqrt(MOL_DIM));
  for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
    block[i] += shared[i % (sizeof shared / sizeof shared[0])];
  for (size_t o = 0; o < OUT; o++)
    memset(query + o * MOL_GLU, 0, 2 * MOL_DIM * sizeof *query);
  add_block(query, MOL_GLU, block, OUT, MOL_DIM, 0, 1.0f);
  add_block(query, MOL_GLU, block, OUT, MOL_DIM, MOL_DIM, -1.0f);
  add_block(mol_data_weight(data, MOL_ITEM_NET "1.weight"), MOL_DIM, block, OUT, MOL_DIM, 0, 1.0f);
}

static void scale(float *v, size_t n, float factor)
{
  for (size_t i = 0; i < n; i++)
    v[i] *= factor;
}

static_assert(MOL_HIDDEN == 2 * MOL_LOGITS, "two hidden units for each logit");

/* Add GATE_SLOPE times each logit to its own output. */
static void plant_gate(struct mol_data *data)
{
  float *first = mol_data_weight(data, MOL_GATE("qi", "1.weight"));
  float *second = mol_data_weight(data, MOL_GATE("qi", "3.weight"));

  scale(first, MOL_HIDDEN * MOL_LOGITS, GATE_NOISE);
  scale(second, MOL_HIDDEN * MOL_LOGITS, GATE_NOISE);
  for (size_t p = 0; p < MOL_LOGITS; p++) {
    first[p * MOL_LOGITS + p] += 1.0f;
    first[(MOL_LOGITS + p) * MOL_LOGITS + p] -= 1.0f;
    second[p * MOL_HIDDEN + p] += (float)GATE_SLOPE;
    second[p * MOL_HIDDEN + MOL_LOGITS + p] -= (float)GATE_SLOPE;
  }
}

/* Items and queries -------------------- */

static const float *group_at(const struct topics *t, size_t topic, size_t group)
{
  return t->groups + (topic * GROUPS_PER_TOPIC + group) * MOL_DIM;
}

static void draw_groups(struct topics *t)
{
  bench_check(mem_array(TOPICS * GROUPS_PER_TOPIC, MOL_DIM * sizeof *t->groups, &t->groups));
  for (size_t topic = 0; topic < TOPICS; topic++) {
    double centre[MOL_DIM];
    for (size_t i = 0; i < MOL_DIM; i++)
      centre[i] = TOPIC * draw_normal(t->dice);
    for (size_t i = 0; i < (size_t)GROUPS_PER_TOPIC * MOL_DIM; i++)
      t->groups[topic * GROUPS_PER_TOPIC * MOL_DIM + i] = (float)(centre[i % MOL_DIM] + GROUP * draw_normal(t->dice));
  }
}

static void draw_item(const struct topics *t, size_t topic, float *item)
{
  const float *centre = group_at(t, topic, dice_below(t->dice, GROUPS_PER_TOPIC));

  for (size_t i = 0; i < MOL_DIM; i++)
    item[i] = centre[i] + (float)ITEM * draw_rough_normal(t->dice);
}

/* A few topics have most items: the density falls like 1 / sqrt(rank). */
static size_t draw_topic(const struct topics *t)
{
  double x = draw_unit(t->dice);

  return (size_t)(TOPICS * x * x);
}

static void draw_query(const struct topics *t, float *query)
{
  size_t n_interests = 1 + dice_below(t->dice, INTERESTS_MAX);
  float item[MOL_DIM];

  draw_normals(t->dice, query, MOL_DIM, QUERY_NOISE * (double)n_interests);
  for (size_t n = 0; n < n_interests; n++) {
    size_t topic = draw_topic(t);
    for (size_t i = 0; i < ITEMS_PER_INTEREST; i++) {
      draw_item(t, topic, item);
      for (size_t k = 0; k < MOL_DIM; k++)
        query[k] += item[k] / ITEMS_PER_INTEREST;
    }
  }
  mol_data_finish_query(query);
}

void mol_data_open_planted(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out)
{
  struct topics topics = { .dice = dice };

  mol_data_begin(dice, n_items, n_queries, out);
  plant_components(dice, out);
  plant_gate(out);
  draw_groups(&topics);
  for (size_t i = 0; i < n_items; i++)
    draw_item(&topics, draw_topic(&topics), out->items + i * MOL_DIM);
  for (size_t i = 0; i < n_queries; i++)
    draw_query(&topics, out->queries + i * MOL_DIM);
  mem_free(&topics.groups);
}
