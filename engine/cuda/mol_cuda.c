/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits columns on the device: rows in f32 for scores, half-precision copies for bounds, and the model's
 * weights. */
#include "engine/cuda/mol_cuda.h"

#include "base/mem.h"
#include "kernels/cuda/mol_derive.h"

enum { COMPONENTS_GROUP = 8, GATES_GROUP = 8, AVERAGES_GROUP = 16 };

static struct device_layout layout(const struct model *model)
{
  struct mol_item_layout item = mol_item_layout(mol_model_of(model));
  struct device_layout out = { .row_bytes =
                                   (item.components + item.gate + item.average + item.residual) * sizeof(float) };

  out.derived[MOL_DERIVED_COMPONENTS] = mol_halves_stride(item.components, COMPONENTS_GROUP) * sizeof(uint16_t);
  out.derived[MOL_DERIVED_GATES] = mol_halves_stride(item.gate, GATES_GROUP) * sizeof(uint16_t);
  out.derived[MOL_DERIVED_AVERAGES] = mol_halves_stride(item.average, AVERAGES_GROUP) * sizeof(uint16_t);
  out.derived[MOL_DERIVED_RESIDUALS] = MOL_RESIDUALS * sizeof(float);
  return out;
}

struct mol_halves mol_cuda_halves(const struct device_columns *c)
{
  return (struct mol_halves){ .components = c->derived[MOL_DERIVED_COMPONENTS],
                              .gates = c->derived[MOL_DERIVED_GATES],
                              .averages = c->derived[MOL_DERIVED_AVERAGES],
                              .residuals = c->derived[MOL_DERIVED_RESIDUALS] };
}

static void close_shared(void **shared)
{
  struct mol_cuda_shared *s = *shared;

  if (!s)
    return;
  device_free(&s->gate.w1);
  device_free(&s->gate.b1);
  device_free(&s->gate.w2);
  device_free(&s->gate.b2);
  mol_half_gate_close(&s->bound);
  mem_free(shared);
}

static void free_host(float **memory)
{
  device_free_host(memory);
}

/* Unpack a layer's weights and upload them: one row of n_out numbers per input, padded with zeros. */
static err_t upload_weights(const float *packed, size_t n_in, size_t n_out, struct device_stream *stream,
                            const float **out)
{
  AUTO(free_host) float *pinned = NULL;
  size_t stride = mol_score_pad(n_out);

  TRY(device_alloc_host(n_in * stride, sizeof *pinned, &pinned));
  memset(pinned, 0, n_in * stride * sizeof *pinned);
  for (size_t j = 0; j < n_out; j++) {
    size_t step, at = mol_packed_at(n_in, n_out, j, &step);
    for (size_t i = 0; i < n_in; i++)
      pinned[i * stride + j] = packed[at + i * step];
  }
  TRY(device_alloc(n_in * stride, sizeof *pinned, out));
  TRY(device_copy_in(stream, (void *)(uintptr_t)*out, pinned, n_in * stride * sizeof *pinned));
  return device_wait(stream);
}

static err_t open_shared(const struct model *model, struct device_stream *stream, void **out)
{
  const struct mol_model *m = mol_model_of(model);
  struct mol_gate gate = mol_model_gate(m);
  size_t n_logits = m->n_logits, hidden = m->shape.gate_hidden;
  AUTO(close_shared) void *shared = NULL;
  struct mol_cuda_shared *s;

  TRY(mem_array(1, sizeof *s, &s));
  shared = s;
  TRY(upload_weights(gate.w1, n_logits, hidden, stream, &s->gate.w1));
  TRY(upload_weights(gate.b1, 1, hidden, stream, &s->gate.b1));
  TRY(upload_weights(gate.w2, hidden, n_logits, stream, &s->gate.w2));
  TRY(upload_weights(gate.b2, 1, n_logits, stream, &s->gate.b2));
  TRY(mol_half_gate_open(&m->shape, &gate, stream, &s->bound));
  *out = shared;
  shared = NULL;
  return ERR_OK;
}

static err_t derive(struct device_columns *c, const uint32_t *slots, size_t n, struct device_stream *stream)
{
  struct mol_derive_arrays to = { .components = c->derived[MOL_DERIVED_COMPONENTS],
                                  .gates = c->derived[MOL_DERIVED_GATES],
                                  .averages = c->derived[MOL_DERIVED_AVERAGES],
                                  .residuals = c->derived[MOL_DERIVED_RESIDUALS] };

  return mol_derive(stream, &mol_model_of(c->model)->shape, &c->rows, slots, n, &to);
}

static const struct device_columns_ops mol_ops = {
  .layout = layout,
  .open = open_shared,
  .close = close_shared,
  .derive = derive,
};

DEVICE_COLUMNS(mol_columns_cuda, mol_ops);
