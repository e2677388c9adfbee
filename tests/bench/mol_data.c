/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the Mixture-of-Logits model, its items and its queries. */
#include "tests/bench/mol_data.h"

#include <math.h>

#include "base/mem.h"
#include "tests/bench/bench_draw.h"
#include "tests/bench/bench_npy.h"
#include "tests/support/model_file.h"

static const struct mol_weight shapes[] = {
  { MOL_QUERY_NET "1._w", MOL_DIM, 2 * MOL_GLU, NULL },
  { MOL_QUERY_NET "1._b", 1, 2 * MOL_GLU, NULL },
  { MOL_QUERY_NET "2.weight", MOL_COMPONENTS *MOL_COMPONENT_DIM, MOL_GLU, NULL },
  { MOL_QUERY_NET "2.bias", 0, MOL_COMPONENTS *MOL_COMPONENT_DIM, NULL },
  { MOL_ITEM_NET "1.weight", MOL_COMPONENTS *MOL_COMPONENT_DIM, MOL_DIM, NULL },
  { MOL_ITEM_NET "1.bias", 0, MOL_COMPONENTS *MOL_COMPONENT_DIM, NULL },
  { MOL_GATE("query_only", "0.weight"), MOL_HIDDEN, MOL_DIM, NULL },
  { MOL_GATE("query_only", "0.bias"), 0, MOL_HIDDEN, NULL },
  { MOL_GATE("query_only", "2.weight"), MOL_LOGITS, MOL_HIDDEN, NULL },
  { MOL_GATE("item_only", "1.weight"), MOL_HIDDEN, MOL_DIM, NULL },
  { MOL_GATE("item_only", "1.bias"), 0, MOL_HIDDEN, NULL },
  { MOL_GATE("item_only", "3.weight"), MOL_LOGITS, MOL_HIDDEN, NULL },
  { MOL_GATE("qi", "1.weight"), MOL_HIDDEN, MOL_LOGITS, NULL },
  { MOL_GATE("qi", "1.bias"), 0, MOL_HIDDEN, NULL },
  { MOL_GATE("qi", "3.weight"), MOL_LOGITS, MOL_HIDDEN, NULL },
  { MOL_GATE("qi", "3.bias"), 0, MOL_LOGITS, NULL },
};

static const char metadata[] =
    "{\"__metadata__\":{\"sluice.similarity\":\"mol\",\"mol.Pq\":\"8\",\"mol.Px\":\"8\",\"mol.dP\":\"32\","
    "\"mol.Dq\":\"64\",\"mol.Dx\":\"64\",\"mol.temperature\":\"0.05\",\"mol.eps\":\"1e-06\",\"mol.qnl\":\"geglu\","
    "\"mol.inl\":\"geglu\",\"mol.query_hidden_dim\":\"512\",\"mol.item_hidden_dim\":\"-1\","
    "\"mol.gating_query_hidden_dim\":\"128\",\"mol.gating_item_hidden_dim\":\"128\","
    "\"mol.gating_qi_hidden_dim\":\"128\",\"mol.gating_combination_type\":\"glu_silu\","
    "\"mol.dot_product_l2_norm\":\"1\",\"mol.uid_hash\":\"[]\"}";

double mol_data_pair_fmas(void)
{
  return MOL_LOGITS * MOL_COMPONENT_DIM + 2 * MOL_LOGITS * MOL_HIDDEN;
}

/* rows 0 marks a bias, whose tensor has one dimension. */
static size_t weight_floats(const struct mol_weight *w)
{
  return (w->rows ? w->rows : 1) * w->cols;
}

static void draw_weights(struct dice *dice, struct mol_data *data)
{
  data->n_weights = sizeof shapes / sizeof shapes[0];
  for (size_t i = 0; i < data->n_weights; i++) {
    struct mol_weight *w = &data->weights[i];
    *w = shapes[i];
    bench_check(mem_array(weight_floats(w), sizeof *w->v, &w->v));
    draw_normals(dice, w->v, weight_floats(w), w->rows > 1 ? sqrt(2.0 / (double)(w->rows + w->cols)) : 0.1);
  }
}

void mol_data_draw_item(struct dice *dice, float *vector)
{
  for (size_t i = 0; i < MOL_DIM; i++)
    vector[i] = draw_rough_normal(dice);
}

void mol_data_finish_query(float *query)
{
  double sum = 0, square = 0;

  for (size_t i = 0; i < MOL_DIM; i++)
    sum += (double)query[i];
  for (size_t i = 0; i < MOL_DIM; i++)
    square += ((double)query[i] - sum / MOL_DIM) * ((double)query[i] - sum / MOL_DIM);
  for (size_t i = 0; i < MOL_DIM; i++)
    query[i] = (float)(((double)query[i] - sum / MOL_DIM) / sqrt(square / MOL_DIM));
}

void mol_data_begin(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out)
{
  *out = (struct mol_data){ .n_items = n_items, .n_queries = n_queries };
  bench_check(mem_array(n_items, MOL_DIM * sizeof(float), &out->items));
  bench_check(mem_array(n_queries, MOL_DIM * sizeof(float), &out->queries));
  draw_weights(dice, out);
}

void mol_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out)
{
  mol_data_begin(dice, n_items, n_queries, out);
  for (size_t i = 0; i < n_items; i++)
    mol_data_draw_item(dice, out->items + i * MOL_DIM);
  for (size_t i = 0; i < n_queries; i++) {
    draw_normals(dice, out->queries + i * MOL_DIM, MOL_DIM, 1);
    mol_data_finish_query(out->queries + i * MOL_DIM);
  }
}

void mol_data_close(struct mol_data *data)
{
  mem_free(&data->items);
  mem_free(&data->queries);
  for (size_t i = 0; i < data->n_weights; i++)
    mem_free(&data->weights[i].v);
}

static const char *write_model(const struct mol_data *data, const char *path)
{
  char header[8192];
  size_t n = (size_t)snprintf(header, sizeof header, "%s", metadata), at = 0;
  float *all;

  for (size_t i = 0; i < data->n_weights; i++) {
    const struct mol_weight *w = &data->weights[i];
    char rows[24] = "";
    if (w->rows)
      snprintf(rows, sizeof rows, "%zu,", w->rows);
    n += (size_t)snprintf(header + n, sizeof header - n,
                          ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s%zu],\"data_offsets\":[%zu,%zu]}", w->name, rows,
                          w->cols, at * 4, (at + weight_floats(w)) * 4);
    at += weight_floats(w);
  }
  snprintf(header + n, sizeof header - n, "}");
  bench_check(mem_array(at, sizeof *all, &all));
  at = 0;
  for (size_t i = 0; i < data->n_weights; i++) {
    memcpy(all + at, data->weights[i].v, weight_floats(&data->weights[i]) * sizeof *all);
    at += weight_floats(&data->weights[i]);
  }
  model_file_write(path, header, all, at * sizeof *all);
  mem_free(&all);
  return path;
}

const char *mol_data_write(const struct mol_data *data, const struct bench_options *options)
{
  if (options->peers) {
    npy_write(bench_path(options, "items.npy"), "<f4", data->items, data->n_items, MOL_DIM, 4);
    npy_write(bench_path(options, "queries.npy"), "<f4", data->queries, data->n_queries, MOL_DIM, 4);
  }
  return write_model(data, bench_path(options, "model.safetensors"));
}

void mol_data_part_of(const void *context, uint32_t item, struct part *part)
{
  const struct mol_data *data = context;

  part->vector = (struct floats){ data->items + (size_t)item * MOL_DIM, MOL_DIM };
}

float *mol_data_weight(const struct mol_data *data, const char *name)
{
  for (size_t i = 0; i < data->n_weights; i++) {
    if (strcmp(data->weights[i].name, name) == 0)
      return data->weights[i].v;
  }
  fprintf(stderr, "bench: error: no weight %s\n", name);
  exit(1);
}
