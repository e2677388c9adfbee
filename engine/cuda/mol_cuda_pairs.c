/* TopKPerEmbedding on the device (MoL paper, section 3.2), for every shape: all dot products in f32, as many lists at a
 * time as there is room for, their N-th best, and what reaches it. */
#include "engine/cuda/mol_cuda.h"
#include "kernels/cuda/pair_dots.h"

static size_t n_words_of(const struct search_batch *batch)
{
  return (batch->n_slots + 31) / 32;
}

/* A list's dot products, one list a query; the set of what was found; ranks and thresholds of the lists. */
size_t mol_cuda_pairs_bytes(const struct funnel *f)
{
  size_t n_logits = mol_cuda_model(f)->n_logits;

  return f->batch->n_slots * sizeof(float) + n_words_of(f->batch) * sizeof(uint32_t) +
         n_logits * (sizeof(uint32_t) + sizeof(float));
}

/* ranks[q * L + p] = n_best[q] */
static err_t upload_ranks(const struct funnel *f, size_t n, const uint32_t *n_best, uint32_t **out)
{
  size_t n_logits = mol_cuda_model(f)->n_logits;
  uint32_t *ranks;

  TRY(region_array(f->batch->scratch, n * n_logits, sizeof *ranks, &ranks));
  for (size_t i = 0; i < n * n_logits; i++)
    ranks[i] = n_best[i / n_logits];
  return device_worker_upload(funnel_worker(f), ranks, n * n_logits, sizeof *ranks, out);
}

err_t mol_cuda_candidates_of_pairs(const struct funnel *f, const struct funnel_group *group,
                                   const struct mol_cuda_queries *queries, const uint32_t *n_best,
                                   const struct device_lists *candidates, float *nth_best)
{
  struct device_worker *w = funnel_worker(f);
  size_t n_logits = mol_cuda_model(f)->n_logits, n_lists = group->n * n_logits, n_words = n_words_of(f->batch);
  struct pair_dots dots = { .shape = mol_cuda_model(f)->shape,
                            .rows = f->columns->rows,
                            .components = queries->components,
                            .excluded = queries->excluded,
                            .n_slots = f->batch->n_slots };
  uint32_t *ranks, *seen, *firsts;
  float *thresholds;

  TRY(upload_ranks(f, group->n, n_best, &ranks));
  TRY(mol_cuda_ranks(f, group, 1, false, &firsts));
  TRY(device_worker_array(w, n_lists, sizeof *thresholds, &thresholds));
  TRY(device_worker_array(w, group->n * n_words, sizeof *seen, &seen));
  TRY(device_worker_array(w, group->n * dots.n_slots, sizeof *dots.dots, &dots.dots));
  TRY(device_fill(w->stream, seen, 0, group->n * n_words * sizeof *seen));
  for (; dots.first_list < n_lists; dots.first_list += group->n) {
    dots.n_lists = n_lists - dots.first_list < group->n ? n_lists - dots.first_list : group->n;
    TRY(pair_dots_find(w->stream, &dots));
    TRY(lists_threshold_of(w->stream, dots.dots, dots.n_lists, dots.n_slots, ranks + dots.first_list,
                           thresholds + dots.first_list));
    TRY(pair_dots_add(w->stream, &dots, thresholds + dots.first_list, seen, n_words, candidates));
  }
  return lists_threshold_of(w->stream, thresholds, group->n, n_logits, firsts, nth_best); /* the best of each query */
}
