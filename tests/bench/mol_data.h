/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits models and catalogues in the shape of the MoL paper's Books: 8 x 8 components of 32 dimensions.
 *
 * mol_data_open() draws weights from Xavier's distribution, and independent items and queries. They say nothing about
 * recall. mol_data_open_planted() plants what training would find (mol_planted.c). */
#ifndef TESTS_BENCH_MOL_DATA_H
#define TESTS_BENCH_MOL_DATA_H

#include "base/item.h"
#include "tests/bench/bench_options.h"

/* Names in the reference implementation's state dictionary. */
#define MOL_GATE(part, layer) "_gating_fn._" part "_partial_module." layer
#define MOL_QUERY_NET         "_query_embeddings_fn._query_emb_proj_module."
#define MOL_ITEM_NET          "_item_embeddings_fn._item_emb_proj_module."

enum {
  MOL_DIM = 64,       /* dimension of raw vectors, of queries and items */
  MOL_COMPONENTS = 8, /* components of a query, and of an item */
  MOL_COMPONENT_DIM = 32,
  MOL_LOGITS = MOL_COMPONENTS * MOL_COMPONENTS,
  MOL_HIDDEN = 128, /* of the gates */
  MOL_GLU = 512,
  MOL_WEIGHTS_MAX = 20,
};

struct mol_weight {
  const char *name; /* named as in the reference implementation's state dictionary */
  size_t rows, cols;
  float *v;
};

struct mol_data {
  size_t n_items, n_queries;
  float *items;   /* [n_items][DIM] */
  float *queries; /* [n_queries][DIM] */
  size_t n_weights;
  struct mol_weight weights[MOL_WEIGHTS_MAX];
};

void mol_data_open(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out);
void mol_data_open_planted(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out);
void mol_data_close(struct mol_data *data);

/* Allocate everything and draw the weights. Items and queries are left to the caller. */
void mol_data_begin(struct dice *dice, size_t n_items, size_t n_queries, struct mol_data *out);

/* Normalise a query like the last layer of a sequence encoder: a layer normalisation without weights. */
void mol_data_finish_query(float *query);

/* Draw the raw vector of a new item. */
void mol_data_draw_item(struct dice *dice, float *vector);

/* Write the model, and items.npy and queries.npy for peers. Return the model's path. */
const char *mol_data_write(const struct mol_data *data, const struct bench_options *options);

/* A callback for bench_engine_fill(); context: the data. */
void mol_data_part_of(const void *context, uint32_t item, struct part *part);

float *mol_data_weight(const struct mol_data *data, const char *name);

/* Fused multiply-adds to score one item for one query: logits and cross gate. */
double mol_data_pair_fmas(void);

#endif
