/* SPDX-License-Identifier: Apache-2.0 */
/* Loads Mixture-of-Logits models: reads every tensor and hyper-parameter, and refuses what cannot be served. */
#include "engine/mol/mol_model.h"

#include <jansson.h>
#include <stdio.h>

#include "base/mem.h"
#include "engine/mol/mol_range.h"

/* Limits far above any real model. They keep products of sizes far from overflow. */
enum { DIM_MAX = 16384, COMPONENTS_MAX = 256 };

enum { PREFIX_MAX_BYTES = 128, NAME_MAX_BYTES = PREFIX_MAX_BYTES + 16 };

/* out[i][o] = in[o][i] */
static err_t transpose(const float *in, size_t n_out, size_t n_in, float **out)
{
  TRY(mem_array(n_in * n_out, sizeof **out, out));
  for (size_t o = 0; o < n_out; o++)
    for (size_t i = 0; i < n_in; i++)
      (*out)[i * n_out + o] = in[o * n_in + i];
  return ERR_OK;
}

/* torch.nn.Linear: weight (out, in), bias (out). */
static err_t load_linear(const struct safetensors *f, const char *prefix, size_t n_in, size_t n_out, bool has_bias,
                         struct mol_linear *out)
{
  char name[NAME_MAX_BYTES];
  AUTO(mem_free) float *weight = NULL;

  snprintf(name, sizeof name, "%s.weight", prefix);
  TRY(safetensors_floats(f, name, &weight, 2, n_out, n_in));
  TRY(transpose(weight, n_out, n_in, &out->w));
  snprintf(name, sizeof name, "%s.bias", prefix);
  if (has_bias)
    TRY(safetensors_floats(f, name, &out->b, 1, n_out));
  out->n_in = n_in;
  out->n_out = n_out;
  return ERR_OK;
}

/* The authors' GLU: _w (in, 2 * hidden), the same layout as ours; _b (1, 2 * hidden). */
static err_t load_glu(const struct safetensors *f, const char *prefix, size_t n_in, size_t n_hidden,
                      struct mol_linear *out)
{
  char name[NAME_MAX_BYTES];

  snprintf(name, sizeof name, "%s._w", prefix);
  TRY(safetensors_floats(f, name, &out->w, 2, n_in, 2 * n_hidden));
  snprintf(name, sizeof name, "%s._b", prefix);
  TRY(safetensors_floats(f, name, &out->b, 2, (size_t)1, 2 * n_hidden));
  out->n_in = n_in;
  out->n_out = 2 * n_hidden;
  return ERR_OK;
}

static err_t load_nonlinearity(const struct safetensors *f, const char *key, bool *is_gelu)
{
  const char *text = safetensors_text(f, key);

  if (!text)
    FAIL(ERR_MODEL, "%s: __metadata__ lacks \"%s\", geglu or swiglu: the projection has a hidden layer, which needs it",
         safetensors_path(f), key);
  if (strcmp(text, "geglu") != 0 && strcmp(text, "swiglu") != 0)
    FAIL(ERR_MODEL, "%s: __metadata__ \"%s\" is \"%s\"; it must be geglu or swiglu", safetensors_path(f), key, text);
  *is_gelu = strcmp(text, "geglu") == 0;
  return ERR_OK;
}

static err_t load_layers(const struct safetensors *f, const char *prefix, int64_t n_hidden, const char *nonlinearity,
                         size_t n_in, size_t n_out, struct mol_projection *out)
{
  char first[PREFIX_MAX_BYTES], second[PREFIX_MAX_BYTES];

  snprintf(first, sizeof first, "%s.1", prefix);
  snprintf(second, sizeof second, "%s.2", prefix);
  if (n_hidden <= 0)
    return load_linear(f, first, n_in, n_out, true, &out->out);
  TRY(load_nonlinearity(f, nonlinearity, &out->is_gelu));
  TRY(load_glu(f, first, n_in, (size_t)n_hidden, &out->glu));
  return load_linear(f, second, (size_t)n_hidden, n_out, true, &out->out);
}

static err_t load_projection(const struct safetensors *f, const char *prefix, int64_t n_hidden,
                             const char *nonlinearity, size_t n_in, size_t n_out, struct mol_projection *out)
{
  TRY(load_layers(f, prefix, n_hidden, nonlinearity, n_in, n_out, out));
  return mol_range_verify(safetensors_path(f), prefix, out);
}

/* first, second   positions in the authors' nn.Sequential. They differ because some sequences begin with a Dropout */
static err_t load_mlp(const struct safetensors *f, const char *prefix, int first, int second, size_t n_in,
                      int64_t n_hidden, size_t n_out, bool has_output_bias, struct mol_mlp *out)
{
  char name[PREFIX_MAX_BYTES];

  snprintf(name, sizeof name, "%s.%d", prefix, first);
  TRY(load_linear(f, name, n_in, (size_t)n_hidden, true, &out->first));
  snprintf(name, sizeof name, "%s.%d", prefix, second);
  return load_linear(f, name, (size_t)n_hidden, n_out, has_output_bias, &out->second);
}

static void print_table_name(size_t i, char name[NAME_MAX_BYTES])
{
  snprintf(name, NAME_MAX_BYTES, "_query_embeddings_fn._uid_embeddings_%zu.weight", i);
}

/* A file without user tables may omit mol.uid_hash. Verify that it really has none. */
static err_t verify_no_user_tables(const struct safetensors *f)
{
  char name[NAME_MAX_BYTES], sizes[MOL_USER_TABLES_MAX * 24] = "";
  struct tensor_shape shape;
  size_t i = 0, n = 0;

  for (; i < MOL_USER_TABLES_MAX; i++) {
    print_table_name(i, name);
    if (!safetensors_has(f, name))
      break;
    TRY(safetensors_shape(f, name, &shape));
    n += (size_t)snprintf(sizes + n, sizeof sizes - n, "%s%zu", i ? ", " : "", shape.dim[0] ? shape.dim[0] - 1 : 0);
  }
  if (i > 0)
    FAIL(ERR_MODEL,
         "%s: __metadata__ lacks \"mol.uid_hash\", but the file has user tables: add \"mol.uid_hash\": \"[%s]\"",
         safetensors_path(f), sizes);
  return ERR_OK;
}

static err_t load_user_tables(const struct safetensors *f, struct mol_model *m)
{
  const char *text = safetensors_text(f, "mol.uid_hash");
  json_int_t hash[MOL_USER_TABLES_MAX] = { 0 };

  if (!text)
    return verify_no_user_tables(f);
  json_t *sizes = json_loads(text, 0, NULL);
  size_t n = json_array_size(sizes);
  bool is_valid = json_is_array(sizes) && n <= MOL_USER_TABLES_MAX;
  for (size_t i = 0; is_valid && i < n; i++) {
    hash[i] = json_integer_value(json_array_get(sizes, i));
    is_valid = hash[i] >= 1 && hash[i] < UINT32_MAX;
  }
  json_decref(sizes);
  if (!is_valid || n >= m->shape.n_query_components)
    FAIL(ERR_MODEL,
         "%s: __metadata__ \"mol.uid_hash\" is \"%s\", not a JSON list of table sizes with fewer than mol.Pq entries",
         safetensors_path(f), text);
  for (size_t i = 0; i < n; i++) {
    char name[NAME_MAX_BYTES];
    print_table_name(i, name);
    m->user_tables[i].n_hash = (size_t)hash[i];
    TRY(safetensors_floats(f, name, &m->user_tables[i].rows, 2, (size_t)hash[i] + 1, m->shape.component_dim));
    m->n_user_tables = i + 1;
  }
  return ERR_OK;
}

/* Hyper-parameters that cannot be derived from the tensors, each with the one value that can be served. A model trained
 * with another value would load but score wrongly, so the file must state the value. */
static const struct {
  const char *key;
  const char *value;
  const char *spellings[3]; /* ways in which Python writes the value */
} constants[] = {
  { "mol.gating_combination_type", "glu_silu", { "glu_silu" } },
  { "mol.dot_product_l2_norm", "1", { "1", "True", "true" } },
};

static err_t verify_constants(const struct safetensors *f)
{
  for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
    const char *key = constants[i].key, *text = safetensors_text(f, key);
    bool is_served = false;
    if (!text)
      FAIL(ERR_MODEL,
           "%s: __metadata__ lacks \"%s\": add \"%s\": \"%s\" if the model was trained with that, the default of the "
           "authors' code (docs/models.md says how to find out); no other value can be served",
           safetensors_path(f), key, key, constants[i].value);
    for (size_t j = 0; j < 3 && constants[i].spellings[j]; j++)
      is_served = is_served || strcmp(text, constants[i].spellings[j]) == 0;
    if (!is_served)
      FAIL(ERR_MODEL, "%s: __metadata__ \"%s\" is \"%s\"; only \"%s\" can be served", safetensors_path(f), key, text,
           constants[i].value);
  }
  return ERR_OK;
}

static err_t load_sizes(const struct safetensors *f, struct mol_model *m)
{
  int64_t n_query, n_item, dim, query_dim, item_dim;
  double tau, eps;

  TRY(verify_constants(f));
  TRY(safetensors_integer(f, "mol.Pq", 1, COMPONENTS_MAX, &n_query));
  TRY(safetensors_integer(f, "mol.Px", 1, COMPONENTS_MAX, &n_item));
  TRY(safetensors_integer(f, "mol.dP", 1, DIM_MAX, &dim));
  TRY(safetensors_integer(f, "mol.Dq", 1, DIM_MAX, &query_dim));
  TRY(safetensors_integer(f, "mol.Dx", 1, DIM_MAX, &item_dim));
  TRY(safetensors_real(f, "mol.temperature", 1e-6, 1e6, &tau));
  TRY(safetensors_real(f, "mol.eps", 1e-30, 1.0, &eps));
  m->shape.n_query_components = (size_t)n_query;
  m->shape.n_item_components = (size_t)n_item;
  m->shape.component_dim = (size_t)dim;
  m->shape.inv_temperature = (float)(1.0 / tau);
  m->n_logits = (size_t)(n_query * n_item);
  m->query_dim = (size_t)query_dim;
  m->item_dim = (size_t)item_dim;
  m->eps = (float)eps;
  return ERR_OK;
}

static err_t pack(struct mol_linear *l)
{
  AUTO(mem_free) float *plain = l->w;

  l->w = NULL;
  TRY(mem_array(l->n_in * l->n_out, sizeof *l->w, &l->w));
  mol_pack(plain, l->n_in, l->n_out, l->w);
  return ERR_OK;
}

static err_t load_gates(const struct safetensors *f, struct mol_model *m)
{
  int64_t n_query, n_item, n_cross;

  TRY(safetensors_integer(f, "mol.gating_query_hidden_dim", 1, DIM_MAX, &n_query));
  TRY(safetensors_integer(f, "mol.gating_item_hidden_dim", 1, DIM_MAX, &n_item));
  TRY(safetensors_integer(f, "mol.gating_qi_hidden_dim", 1, DIM_MAX, &n_cross));
  TRY(load_mlp(f, "_gating_fn._query_only_partial_module", 0, 2, m->query_dim, n_query, m->n_logits, false,
               &m->query_gate));
  TRY(load_mlp(f, "_gating_fn._item_only_partial_module", 1, 3, m->item_dim, n_item, m->n_logits, false,
               &m->item_gate));
  TRY(load_mlp(f, "_gating_fn._qi_partial_module", 1, 3, m->n_logits, n_cross, m->n_logits, true, &m->cross_gate));
  m->shape.gate_hidden = (size_t)n_cross;
  TRY(pack(&m->cross_gate.first));
  return pack(&m->cross_gate.second);
}

static err_t load_projections(const struct safetensors *f, struct mol_model *m)
{
  size_t dim = m->shape.component_dim;
  int64_t n_query, n_item;

  TRY(safetensors_integer(f, "mol.query_hidden_dim", -1, DIM_MAX, &n_query));
  TRY(safetensors_integer(f, "mol.item_hidden_dim", -1, DIM_MAX, &n_item));
  TRY(load_projection(f, "_query_embeddings_fn._query_emb_proj_module", n_query, "mol.qnl", m->query_dim,
                      (m->shape.n_query_components - m->n_user_tables) * dim, &m->query_projection));
  return load_projection(f, "_item_embeddings_fn._item_emb_proj_module", n_item, "mol.inl", m->item_dim,
                         m->shape.n_item_components * dim, &m->item_projection);
}

static void close_linear(struct mol_linear *l)
{
  mem_free(&l->w);
  mem_free(&l->b);
}

static void close_model(struct mol_model **m)
{
  if (!*m)
    return;
  struct mol_linear *linears[] = {
    &(*m)->query_projection.glu, &(*m)->query_projection.out, &(*m)->item_projection.glu, &(*m)->item_projection.out,
    &(*m)->query_gate.first,     &(*m)->query_gate.second,    &(*m)->item_gate.first,     &(*m)->item_gate.second,
    &(*m)->cross_gate.first,     &(*m)->cross_gate.second,
  };
  for (size_t i = 0; i < sizeof linears / sizeof linears[0]; i++)
    close_linear(linears[i]);
  mol_reduced_gate_close(&(*m)->reduced_gate);
  for (size_t i = 0; i < MOL_USER_TABLES_MAX; i++)
    mem_free(&(*m)->user_tables[i].rows);
  mem_free(m);
}

void mol_model_close(struct model **model)
{
  struct mol_model *m = (struct mol_model *)*model;

  close_model(&m);
  *model = NULL;
}

err_t mol_model_open(const struct safetensors *file, struct model **out)
{
  AUTO(close_model) struct mol_model *m = NULL;

  TRY(mem_array(1, sizeof *m, &m));
  m->base.kind = SIMILARITY_MOL;
  TRY(load_sizes(file, m));
  TRY(load_user_tables(file, m));
  TRY(load_projections(file, m));
  TRY(load_gates(file, m));
  struct mol_gate gate = mol_model_gate(m);
  TRY(mol_reduced_gate_open(&m->shape, &gate, &m->reduced_gate));
  *out = &m->base;
  m = NULL;
  return ERR_OK;
}
