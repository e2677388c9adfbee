/* SPDX-License-Identifier: Apache-2.0 */
/* The three catalogues of ops/bench gpu, their methods, and the work that each method does at least. */
#include "tests/bench/gpu_subjects.h"

#include <math.h>

#include "tests/bench/bilinear_data.h"
#include "tests/bench/mol_data.h"
#include "tests/bench/recjpq_data.h"

/* Enough that every batch of the first rounds has fresh queries. */
enum { QUERIES = 512 };

static struct mol_data mol;
static struct recjpq_data recjpq;
static struct bilinear_data bilinear;

double gpu_work_floor_ms(const struct gpu_work *work, const struct gpu_limits *limits)
{
  double ns = work->bytes / limits->memory;

  ns = fmax(ns, work->flops / limits->flops);
  ns = fmax(ns, work->tanhs / limits->tanh + work->exp2s / limits->exp2); /* one unit computes both */
  return fmax(ns, work->lookups / limits->shared) * 1e-6;
}

/* Mixture-of-Logits: the arrays in half precision are read once, candidates once for each query -------------------- */

enum {
  COMPONENT_BYTES = MOL_COMPONENTS * MOL_COMPONENT_DIM * 2,
  GATE_BYTES = MOL_LOGITS * 2,
  AVERAGE_BYTES = MOL_COMPONENT_DIM * 2
};

static void add_candidates(struct gpu_work *work, double batch, double n)
{
  work->bytes += batch * n * (COMPONENT_BYTES + GATE_BYTES);
  work->flops += batch * n * 2 * mol_data_pair_fmas();
  work->tanhs += batch * n * (MOL_HIDDEN + MOL_LOGITS);
  work->exp2s += batch * n * MOL_LOGITS;
}

static void add_averages(struct gpu_work *work, double batch, double n_items, double n)
{
  work->bytes += n_items * AVERAGE_BYTES;
  work->flops += batch * n_items * 2 * MOL_COMPONENT_DIM;
  add_candidates(work, batch, fmin(n, n_items));
}

static void add_pairs(struct gpu_work *work, double batch, double n_items, double n)
{
  work->bytes += n_items * COMPONENT_BYTES;
  work->flops += batch * n_items * 2 * MOL_LOGITS * MOL_COMPONENT_DIM;
  add_candidates(work, batch, fmin(MOL_LOGITS * n, n_items));
}

static struct gpu_work mol_exact(const struct gpu_case *c, double n_items)
{
  double n_pairs = (double)c->batch * n_items;

  return (struct gpu_work){ .bytes = n_items * (COMPONENT_BYTES + GATE_BYTES),
                            .flops = n_pairs * 2 * mol_data_pair_fmas(),
                            .tanhs = n_pairs * (MOL_HIDDEN + MOL_LOGITS),
                            .exp2s = n_pairs * MOL_LOGITS };
}

static struct gpu_work mol_average(const struct gpu_case *c, double n_items)
{
  struct gpu_work work = { 0 };

  add_averages(&work, (double)c->batch, n_items, 4000);
  return work;
}

static struct gpu_work mol_per_embedding(const struct gpu_case *c, double n_items)
{
  struct gpu_work work = { 0 };

  add_pairs(&work, (double)c->batch, n_items, 100);
  return work;
}

static struct gpu_work mol_combined(const struct gpu_case *c, double n_items)
{
  struct gpu_work work = { 0 };

  add_pairs(&work, (double)c->batch, n_items, 100);
  add_averages(&work, (double)c->batch, n_items, 1000);
  return work;
}

static void mol_open(struct gpu_subject *s, struct bench_options *options)
{
  mol_data_open(&options->dice, options->items, QUERIES, &mol);
  s->model = mol_data_write(&mol, options);
  s->queries = mol.queries;
}

static void mol_close(struct gpu_subject *s)
{
  (void)s;
  mol_data_close(&mol);
}

/* RecJPQ: every code is read once, and a word looked up for it, which serves two queries -------------------- */

static struct gpu_work recjpq_scan(const struct gpu_case *c, double n_items)
{
  size_t n_words = (c->batch + 1) / 2;

  return (struct gpu_work){ .bytes = n_items * RECJPQ_SPLITS, .lookups = (double)n_words * n_items * RECJPQ_SPLITS };
}

static void recjpq_open(struct gpu_subject *s, struct bench_options *options)
{
  recjpq_data_open(&options->dice, options->items, QUERIES, &recjpq);
  s->model = recjpq_data_write(&recjpq, options);
  s->queries = recjpq.queries;
}

static void recjpq_close(struct gpu_subject *s)
{
  (void)s;
  recjpq_data_close(&recjpq);
}

/* Bilinear: of every vector what the singular values of bilinear_data.h make the engine scan, in half precision; few
 * need more -------------------- */

enum { BILINEAR_SCANNED = 128 };

static struct gpu_work bilinear_scan(const struct gpu_case *c, double n_items)
{
  return (struct gpu_work){ .bytes = n_items * BILINEAR_SCANNED * 2,
                            .flops = (double)c->batch * n_items * 2 * BILINEAR_SCANNED };
}

static void bilinear_open(struct gpu_subject *s, struct bench_options *options)
{
  bilinear_data_open(&options->dice, options->items, QUERIES, &bilinear);
  s->model = bilinear_data_write(&bilinear, options);
  s->queries = bilinear.queries;
}

static void bilinear_close(struct gpu_subject *s)
{
  (void)s;
  bilinear_data_close(&bilinear);
}

/* Under a filter: how much must be read depends on where the admitted items are. */
static struct gpu_work unknown_work(const struct gpu_case *c, double n_items)
{
  (void)c;
  (void)n_items;
  return (struct gpu_work){ 0 };
}

static struct gpu_subject subjects[] = {
  { .name = "mol",
    .title = "Mixture-of-Logits: 8 x 8 components of dimension 32, gates of 128 (Books)",
    .default_items = 674044,
    .dim = MOL_DIM,
    .n_queries = QUERIES,
    .live_method = "average(4000)",
    .live_k = 100,
    .cases = { { "mol exact", "exact", 32, 100, 2.5, true, mol_exact, 0, 0 },
               { "mol average(4000)", "average(4000)", 32, 100, 0.12, false, mol_average, 0, 0 },
               { "mol per_embedding(100)", "per_embedding(100)", 32, 100, 0.45, false, mol_per_embedding, 0, 0 },
               { "mol combined(100,1000)", "combined(100,1000)", 32, 100, 0.5, false, mol_combined, 0, 0 },
               { "mol exact", "exact", 1, 100, 0, true, mol_exact, 0, 0 },
               { "mol average(4000)", "average(4000)", 1, 100, 0, false, mol_average, 0, 0 },
               { "mol per_embedding(100)", "per_embedding(100)", 1, 100, 0, false, mol_per_embedding, 0, 0 },
               { "mol combined(100,1000)", "combined(100,1000)", 1, 100, 0, false, mol_combined, 0, 0 },
               { "mol exact, 10 % admitted", "exact", 32, 100, 0, true, unknown_work, 100, 1 },
               { "mol exact, 1 % admitted", "exact", 32, 100, 0, true, unknown_work, 10, 1 },
               { "mol exact, 10 % by 32 filters", "exact", 32, 100, 0, true, unknown_work, 100, 32 } },
    .n_cases = 11,
    .open = mol_open,
    .close = mol_close,
    .part_of = mol_data_part_of,
    .data = &mol },
  { .name = "recjpq",
    .title = "RecJPQ: 8 splits of 256 sub-items",
    .default_items = 10000000,
    .dim = RECJPQ_DIM,
    .n_queries = QUERIES,
    .live_method = "pqtopk",
    .live_k = 10,
    .cases = { { "recjpq pqtopk", "pqtopk", 1, 10, 0.05, true, recjpq_scan, 0, 0 },
               { "recjpq pqtopk", "pqtopk", 32, 10, 0.6, true, recjpq_scan, 0, 0 },
               { "recjpq pqtopk, 10 % admitted", "pqtopk", 32, 10, 0, true, unknown_work, 100, 1 },
               { "recjpq pqtopk, 1 % admitted", "pqtopk", 32, 10, 0, true, unknown_work, 10, 1 },
               { "recjpq pqtopk, 10 % by 32 filters", "pqtopk", 32, 10, 0, true, unknown_work, 100, 32 } },
    .n_cases = 5,
    .open = recjpq_open,
    .close = recjpq_close,
    .part_of = recjpq_data_part_of,
    .data = &recjpq },
  { .name = "bilinear",
    .title = "Bilinear: vectors of 768",
    .default_items = 1000000,
    .dim = BILINEAR_DIM,
    .n_queries = QUERIES,
    .cases = { { "bilinear exact", "exact", 1, 10, 0, true, bilinear_scan, 0, 0 },
               { "bilinear exact", "exact", 32, 10, 0, true, bilinear_scan, 0, 0 },
               { "bilinear exact, 10 % admitted", "exact", 32, 10, 0, true, unknown_work, 100, 1 },
               { "bilinear exact, 1 % admitted", "exact", 32, 10, 0, true, unknown_work, 10, 1 },
               { "bilinear exact, 10 % by 32 filters", "exact", 32, 10, 0, true, unknown_work, 100, 32 } },
    .n_cases = 5,
    .open = bilinear_open,
    .close = bilinear_close,
    .part_of = bilinear_data_part_of,
    .data = &bilinear },
};

struct gpu_subject *gpu_subjects(size_t *n)
{
  *n = sizeof subjects / sizeof subjects[0];
  return subjects;
}
