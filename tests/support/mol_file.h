/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a Mixture-of-Logits model with random weights, for tests. Its projections are single linear layers. */
#ifndef TESTS_SUPPORT_MOL_FILE_H
#define TESTS_SUPPORT_MOL_FILE_H

#include "tests/support/dice.h"
#include "tests/support/model_file.h"

struct mol_file {
  size_t n_query, n_item, dim, hidden; /* P_q, P_x, d_P, and the hidden size of the cross gate */
  size_t vector_dim;                   /* D_q and D_x */
  size_t n_hash;                       /* rows of its one user table; 0: it has none */
  float weight;                        /* size of the gates' weights */
};

struct mol_file_writer {
  struct dice *dice;
  char header[8192];
  size_t n_header;
  float *data;
  size_t n_data;
};

static inline void mol_file_tensor(struct mol_file_writer *w, const char *name, size_t rows, size_t columns,
                                   float scale)
{
  size_t n = (rows ? rows : 1) * columns;
  char shape[64];

  if (rows)
    snprintf(shape, sizeof shape, "[%zu,%zu]", rows, columns);
  else
    snprintf(shape, sizeof shape, "[%zu]", columns);
  w->n_header += (size_t)snprintf(w->header + w->n_header, sizeof w->header - w->n_header,
                                  ",\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", name, shape,
                                  w->n_data * sizeof(float), (w->n_data + n) * sizeof(float));
  w->data = realloc(w->data, (w->n_data + n) * sizeof(float));
  dice_fill(w->dice, w->data + w->n_data, n, scale);
  w->n_data += n;
}

/* Add the weights of n_out outputs, and their biases if has_bias. */
static inline void mol_file_linear(struct mol_file_writer *w, const char *name, size_t n_in, size_t n_out, float scale,
                                   int has_bias)
{
  char text[128];

  snprintf(text, sizeof text, "%s.weight", name);
  mol_file_tensor(w, text, n_out, n_in, scale);
  snprintf(text, sizeof text, "%s.bias", name);
  if (has_bias)
    mol_file_tensor(w, text, 0, n_out, scale);
}

static inline void mol_file_write(const char *path, const struct mol_file *f, struct dice *dice)
{
  enum { GATE_HIDDEN = 6 };
  struct mol_file_writer w = { .dice = dice };
  size_t n_logits = f->n_query * f->n_item, n_users = f->n_hash ? 1 : 0;

  w.n_header = (size_t)snprintf(
      w.header, sizeof w.header,
      "{\"__metadata__\":{\"sluice.similarity\":\"mol\",\"mol.Pq\":\"%zu\",\"mol.Px\":\"%zu\",\"mol.dP\":\"%zu\","
      "\"mol.Dq\":\"%zu\",\"mol.Dx\":\"%zu\",\"mol.temperature\":\"0.05\",\"mol.eps\":\"1e-6\","
      "\"mol.query_hidden_dim\":\"-1\",\"mol.item_hidden_dim\":\"-1\",\"mol.gating_query_hidden_dim\":\"%d\","
      "\"mol.gating_item_hidden_dim\":\"%d\",\"mol.gating_qi_hidden_dim\":\"%zu\","
      "\"mol.gating_combination_type\":\"glu_silu\",\"mol.dot_product_l2_norm\":\"1\",\"mol.uid_hash\":\"",
      f->n_query, f->n_item, f->dim, f->vector_dim, f->vector_dim, GATE_HIDDEN, GATE_HIDDEN, f->hidden);
  w.n_header += n_users ? (size_t)sprintf(w.header + w.n_header, "[%zu]\"}", f->n_hash)
                        : (size_t)sprintf(w.header + w.n_header, "[]\"}");
  mol_file_linear(&w, "_query_embeddings_fn._query_emb_proj_module.1", f->vector_dim, (f->n_query - n_users) * f->dim,
                  1.0f, 1);
  mol_file_linear(&w, "_item_embeddings_fn._item_emb_proj_module.1", f->vector_dim, f->n_item * f->dim, 1.0f, 1);
  mol_file_linear(&w, "_gating_fn._query_only_partial_module.0", f->vector_dim, GATE_HIDDEN, 1.0f, 1);
  mol_file_linear(&w, "_gating_fn._query_only_partial_module.2", GATE_HIDDEN, n_logits, 1.0f, 0);
  mol_file_linear(&w, "_gating_fn._item_only_partial_module.1", f->vector_dim, GATE_HIDDEN, 1.0f, 1);
  mol_file_linear(&w, "_gating_fn._item_only_partial_module.3", GATE_HIDDEN, n_logits, 1.0f, 0);
  mol_file_linear(&w, "_gating_fn._qi_partial_module.1", n_logits, f->hidden, f->weight, 1);
  mol_file_linear(&w, "_gating_fn._qi_partial_module.3", f->hidden, n_logits, f->weight, 1);
  if (n_users)
    mol_file_tensor(&w, "_query_embeddings_fn._uid_embeddings_0.weight", f->n_hash + 1, f->dim, 1.0f);
  w.n_header += (size_t)snprintf(w.header + w.n_header, sizeof w.header - w.n_header, "}");
  model_file_write(path, w.header, w.data, w.n_data * sizeof(float));
  free(w.data);
}

#endif
