/* SPDX-License-Identifier: Apache-2.0 */
/* The mol similarity: checks parts and queries, and runs the networks of items and queries. */
#include <math.h>

#include "engine/model/shape_check.h"
#include "engine/mol/mol_methods.h"
#include "engine/mol/mol_network.h"
#include "engine/mol/mol_sketch.h"
#include "engine/similarity/similarity.h"

/* Number of items that go through the item network together: enough to reuse the weights, few enough to stay in cache.
 */
enum { PREPARE_CHUNK = 128 };

static err_t check_part(const struct model *model, const struct part *part)
{
  const struct mol_model *m = mol_model_of(model);
  struct mol_item_layout layout = mol_item_layout(m);
  const char *where = shape_check_part_name(part);

  if (part->components.n == 0 && part->item_gate.n == 0) {
    TRY(shape_check_floats(ERR_ITEM, where, "vector", part->vector, m->item_dim));
  } else {
    TRY(shape_check_absent(ERR_ITEM, where, "vector", part->vector.n));
    TRY(shape_check_floats(ERR_ITEM, where, "components", part->components, layout.components));
    TRY(shape_check_floats(ERR_ITEM, where, "item_gate", part->item_gate, layout.gate));
  }
  return shape_check_absent(ERR_ITEM, where, "codes", part->codes.n);
}

static err_t check_query(const struct model *model, const struct query *query)
{
  const struct mol_model *m = mol_model_of(model);

  if (query->components.n == 0 && query->query_gate.n == 0)
    return shape_check_floats(ERR_QUERY, "query", "vector", query->vector, m->query_dim);
  TRY(shape_check_absent(ERR_QUERY, "query", "vector", query->vector.n));
  TRY(shape_check_floats(ERR_QUERY, "query", "components", query->components,
                         m->shape.n_query_components * m->shape.component_dim));
  return shape_check_floats(ERR_QUERY, "query", "query_gate", query->query_gate, m->n_logits);
}

static struct model_lengths lengths(const struct model *model)
{
  const struct mol_model *m = mol_model_of(model);

  return (struct model_lengths){ .item_vector = m->item_dim, .query_vector = m->query_dim };
}

static size_t prepared_bytes(const struct model *model)
{
  struct mol_item_layout layout = mol_item_layout(mol_model_of(model));

  return mol_item_bytes(&layout);
}

/* Collect the raw vectors. Ready-made parts have zeros here; their components and gates are filled in afterwards. */
static void gather_vectors(const struct mol_model *m, const struct part *const *parts, size_t n, float *x)
{
  for (size_t i = 0; i < n; i++) {
    if (parts[i]->vector.n)
      memcpy(x + i * m->item_dim, parts[i]->vector.v, m->item_dim * sizeof *x);
  }
}

static void use_ready_made(const struct part *part, float *components, float *gate)
{
  if (part->components.n) {
    memcpy(components, part->components.v, part->components.n * sizeof *components);
    memcpy(gate, part->item_gate.v, part->item_gate.n * sizeof *gate);
  }
}

static err_t prepare_chunk(const struct mol_model *m, const struct kernels *kernels, const struct part *const *parts,
                           size_t n, struct region *scratch, uint8_t *prepared)
{
  struct mol_item_layout layout = mol_item_layout(m);
  size_t n_components = m->shape.n_item_components;
  float *x, *components, *gates;

  TRY(region_array(scratch, n * m->item_dim, sizeof *x, &x));
  TRY(region_array(scratch, n * layout.components, sizeof *components, &components));
  TRY(region_array(scratch, n * layout.gate, sizeof *gates, &gates));
  gather_vectors(m, parts, n, x);
  TRY(mol_network_project(&m->item_projection, kernels, x, n, scratch, components));
  TRY(mol_network_gate(&m->item_gate, kernels, x, n, scratch, gates));
  for (size_t i = 0; i < n; i++) {
    struct mol_item item = mol_item_at(&layout, prepared + i * mol_item_bytes(&layout));
    memcpy(item.components, components + i * layout.components, layout.components * sizeof *components);
    memcpy(item.gate, gates + i * layout.gate, layout.gate * sizeof *gates);
    use_ready_made(parts[i], item.components, item.gate);
    kernels_normalize(item.components, n_components, layout.average, m->eps);
    mol_network_average(item.components, n_components, layout.average, item.average);
    mol_sketch_item(&m->shape, &item);
  }
  return ERR_OK;
}

static err_t prepare_parts(const struct model *model, const struct kernels *kernels, const struct part *const *parts,
                           size_t n, struct region *scratch, uint8_t *prepared)
{
  size_t bytes = prepared_bytes(model);

  for (size_t i = 0; i < n; i += PREPARE_CHUNK) {
    size_t n_chunk = n - i < PREPARE_CHUNK ? n - i : PREPARE_CHUNK;
    struct region_mark mark = region_mark(scratch); /* so that the next chunk uses the same memory, which is in cache */
    TRY(prepare_chunk(mol_model_of(model), kernels, parts + i, n_chunk, scratch, prepared + i * bytes));
    region_rewind(scratch, mark);
  }
  return ERR_OK;
}

/* Append the user's rows to the projected components. A query without a user id has zeros there: the authors' code does
 * not define that case. */
static void add_user_components(const struct mol_model *m, const struct query *query, float *components)
{
  size_t dim = m->shape.component_dim;
  float *out = components + (m->shape.n_query_components - m->n_user_tables) * dim;

  for (size_t i = 0; i < m->n_user_tables && query->has_user_id; i++) {
    const struct mol_user_table *table = &m->user_tables[i];
    int64_t n_hash = (int64_t)table->n_hash;
    int64_t row = ((query->user_id % n_hash) + n_hash) % n_hash + 1; /* floored modulo; row 0 is padding */
    memcpy(out + i * dim, table->rows + (size_t)row * dim, dim * sizeof *out);
  }
}

/* Bounds are proven with it, so it is rounded up. */
static float max_norm(const float *components, size_t n, size_t dim)
{
  double max = 0;

  for (size_t i = 0; i < n; i++)
    max = fmax(max, kernels_norm(components + i * dim, dim));
  return max > 0 ? nextafterf((float)max, INFINITY) : 0.0f;
}

/* Run the networks of all queries that have a vector, so that the weights are read once. Others bring what the networks
 * would compute. */
static err_t run_networks(const struct mol_model *m, const struct kernels *kernels, const struct query *const *queries,
                          size_t n, struct region *region, struct mol_query *out)
{
  size_t dim = (m->shape.n_query_components - m->n_user_tables) * m->shape.component_dim, n_raw = 0, row = 0;
  float *x, *projected, *gates;

  for (size_t i = 0; i < n; i++)
    n_raw += queries[i]->vector.n > 0;
  if (n_raw == 0)
    return ERR_OK;
  TRY(region_array(region, n_raw * m->query_dim, sizeof *x, &x));
  TRY(region_array(region, n_raw * dim, sizeof *projected, &projected));
  TRY(region_array(region, n_raw * m->n_logits, sizeof *gates, &gates));
  for (size_t i = 0; i < n; i++) {
    if (queries[i]->vector.n)
      memcpy(x + row++ * m->query_dim, queries[i]->vector.v, m->query_dim * sizeof *x);
  }
  row = 0;
  TRY(mol_network_project(&m->query_projection, kernels, x, n_raw, region, projected));
  TRY(mol_network_gate(&m->query_gate, kernels, x, n_raw, region, gates));
  for (size_t i = 0; i < n; i++) {
    if (!queries[i]->vector.n)
      continue;
    memcpy(out[i].components, projected + row * dim, dim * sizeof *projected);
    memcpy(out[i].gate, gates + row++ * m->n_logits, m->n_logits * sizeof *gates);
    add_user_components(m, queries[i], out[i].components);
  }
  return ERR_OK;
}

static void use_ready_made_query(const struct query *query, struct mol_query *out)
{
  if (query->vector.n)
    return;
  memcpy(out->components, query->components.v, query->components.n * sizeof *out->components);
  memcpy(out->gate, query->query_gate.v, query->query_gate.n * sizeof *out->gate);
}

static err_t prepare_queries(const struct model *model, const struct kernels *kernels,
                             const struct query *const *queries, size_t n, struct region *region,
                             struct prepared_queries **prepared)
{
  const struct mol_model *m = mol_model_of(model);
  size_t n_components = m->shape.n_query_components, dim = m->shape.component_dim;
  struct mol_query *out;

  TRY(region_array(region, n, sizeof *out, &out));
  for (size_t i = 0; i < n; i++) {
    TRY(region_array(region, n_components * dim, sizeof *out->components, &out[i].components));
    TRY(region_array(region, m->n_logits, sizeof *out->gate, &out[i].gate));
    TRY(region_array(region, dim, sizeof *out->average, &out[i].average));
  }
  TRY(run_networks(m, kernels, queries, n, region, out));
  for (size_t i = 0; i < n; i++) {
    use_ready_made_query(queries[i], &out[i]);
    kernels_normalize(out[i].components, n_components, dim, m->eps);
    mol_network_average(out[i].components, n_components, dim, out[i].average);
    out[i].max_norm = max_norm(out[i].components, n_components, dim);
  }
  *prepared = (struct prepared_queries *)out;
  return ERR_OK;
}

const struct similarity similarity_mol = {
  .kind = SIMILARITY_MOL,
  .name = "mol",
  .methods = &mol_methods,
  .model_open = mol_model_open,
  .model_close = mol_model_close,
  .check_part = check_part,
  .check_query = check_query,
  .lengths = lengths,
  .prepared_bytes = prepared_bytes,
  .prepare_parts = prepare_parts,
  .parts_per_piece = PREPARE_CHUNK,
  .prepared_query_bytes = sizeof(struct mol_query),
  .prepare_queries = prepare_queries,
};
