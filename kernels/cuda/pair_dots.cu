/* A thread has a slot, a row of blocks a list. */
#include "kernels/cuda/pair_dots.h"

#include "kernels/cuda/append.cuh"
#include "kernels/cuda/excluded.cuh"

enum { THREADS = 128 };

static __global__ void __launch_bounds__(THREADS) find(struct pair_dots in)
{
  size_t slot = (size_t)blockIdx.x * THREADS + threadIdx.x, dim = in.shape.component_dim;
  size_t n_item = in.shape.n_item_components, n_logits = n_item * in.shape.n_query_components;

  for (size_t i = blockIdx.y; i < in.n_lists && slot < in.n_slots; i += gridDim.y) {
    size_t q = (in.first_list + i) / n_logits, p = (in.first_list + i) % n_logits;
    const float *query = in.components + (q * in.shape.n_query_components + p / n_item) * dim;
    const float *item = reinterpret_cast<const float *>(in.rows.bytes + slot * in.rows.row_bytes) + p % n_item * dim;
    float sum = 0.0f;
    for (size_t k = 0; k < dim && in.rows.present[slot]; k++)
      sum = fmaf(query[k], item[k], sum);
    bool is_in = in.rows.present[slot] && sum == sum && !is_excluded(in.excluded, q, (uint32_t)slot);
    in.dots[i * in.n_slots + slot] = is_in ? sum : -INFINITY;
  }
}

static __global__ void __launch_bounds__(THREADS)
    add(struct pair_dots in, const float *thresholds, uint32_t *seen, size_t n_words, struct device_lists to)
{
  size_t slot = (size_t)blockIdx.x * THREADS + threadIdx.x;
  size_t n_logits = in.shape.n_item_components * in.shape.n_query_components;

  for (size_t i = blockIdx.y; i < in.n_lists && slot < in.n_slots; i += gridDim.y) {
    size_t q = (in.first_list + i) / n_logits;
    float dot = in.dots[i * in.n_slots + slot];
    uint32_t bit = 1u << slot % 32;
    if (dot > -INFINITY && dot >= thresholds[i] && !(atomicOr(&seen[q * n_words + slot / 32], bit) & bit))
      append(to, q, (uint32_t)slot, 0.0f);
  }
}

static dim3 grid_of(const struct pair_dots *p)
{
  const size_t rows_max = 32768;

  return dim3(blocks_for(p->n_slots, THREADS), (unsigned)(p->n_lists < rows_max ? p->n_lists : rows_max));
}

err_code_t pair_dots_find(struct device_stream *stream, const struct pair_dots *p)
{
  return p->n_slots && p->n_lists ? launch(stream, grid_of(p), THREADS, 0, find, *p) : ERR_OK;
}

err_code_t pair_dots_add(struct device_stream *stream, const struct pair_dots *p, const float *thresholds,
                         uint32_t *seen, size_t n_words, const struct device_lists *to)
{
  if (p->n_slots == 0 || p->n_lists == 0)
    return ERR_OK;
  return launch(stream, grid_of(p), THREADS, 0, add, *p, thresholds, seen, n_words, *to);
}
