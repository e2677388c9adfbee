#include "kernels/kernels.h"

#include <math.h>
#include <pthread.h>

#include "kernels/variants.h"

static struct kernels tables[N_ISAS];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
  static void (*const overlays[N_ISAS])(struct kernels *) = {
    [ISA_REF] = variant_ref,
    [ISA_AVX2] = variant_avx2,
    [ISA_AVX512] = variant_avx512,
    [ISA_AVX512_VNNI] = variant_avx512_vnni,
    [ISA_AVX512_VBMI] = variant_avx512_vbmi,
    [ISA_AMX] = variant_amx,
  };
  struct kernels table = { 0 };

  for (int isa = ISA_REF; isa < N_ISAS; isa++) {
    overlays[isa](&table);
    table.name = isa_name((enum isa)isa);
    tables[isa] = table;
  }
}

err_t kernels_get(enum isa isa, const struct kernels **out)
{
  enum isa best = isa_detect();

  if (isa > best)
    FAIL(ERR_CONFIG, "this machine has no %s, its best level is %s", isa_name(isa), isa_name(best));
  pthread_once(&tables_once, fill_tables);
  *out = &tables[isa];
  return ERR_OK;
}

size_t mol_scratch_floats(const struct mol_shape *shape)
{
  size_t n_logits = shape->n_query_components * shape->n_item_components;

  return (2 * n_logits + shape->gate_hidden) * MOL_LANES + shape->n_query_components * shape->component_dim;
}

void mol_pack(const float *w, size_t n_in, size_t n_out, float *packed)
{
  for (size_t j = 0; j < n_out; j++) {
    size_t step, at = mol_packed_at(n_in, n_out, j, &step);
    for (size_t k = 0; k < n_in; k++)
      packed[at + k * step] = w[k * n_out + j];
  }
}

void kernels_gelu(float *x, size_t n)
{
  const double sqrt_half = 0x1.6a09e667f3bcdp-1;

  for (size_t i = 0; i < n; i++)
    x[i] = (float)(0.5 * x[i] * (1.0 + erf(x[i] * sqrt_half)));
}

/* In double a square of a float is exact, so that multiply and add here is a fused multiply-add. It cannot overflow. */
static double norm_of(const float *row, size_t dim)
{
  double sum = 0;

  for (size_t i = 0; i < dim; i++)
    sum += (double)row[i] * (double)row[i];
  return sqrt(sum);
}

void kernels_normalize(float *rows, size_t n, size_t dim, float eps)
{
  for (size_t r = 0; r < n; r++) {
    float *row = rows + r * dim;
    double norm = norm_of(row, dim);
    double divisor = norm > (double)eps ? norm : (double)eps;
    for (size_t i = 0; i < dim; i++)
      row[i] = (float)((double)row[i] / divisor);
  }
}
