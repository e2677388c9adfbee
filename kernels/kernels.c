/* SPDX-License-Identifier: Apache-2.0 */
/* Filling the tables of kernels.h, level over level; and the functions that are the same on every machine: they run at
 * load or once for a query, where speed matters less. */
#include "kernels/kernels.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

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

  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
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

/* The norms of ROWS rows. Several independent sums hide the latency of the additions. The square of a float is exact in
 * double and cannot overflow, so a multiply and an add give the bits of a fused multiply-add. */
enum { ROWS = 4 };

static void find_norms(const float *rows, size_t dim, double norms[ROWS])
{
  double sums[ROWS] = { 0 };

  for (size_t i = 0; i < dim; i++) {
    UNROLL for (size_t r = 0; r < ROWS; r++) sums[r] += (double)rows[r * dim + i] * (double)rows[r * dim + i];
  }
  for (size_t r = 0; r < ROWS; r++)
    norms[r] = sqrt(sums[r]);
}

double kernels_norm(const float *x, size_t n)
{
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)x[i] * (double)x[i];
  return sqrt(sum);
}

typedef float floats2 __attribute__((vector_size(8)));
typedef double doubles2 __attribute__((vector_size(16)));

/* The processor divides two doubles in the time of one. */
static void divide(float *row, size_t dim, double divisor)
{
  size_t i = 0;

  for (; i + 2 <= dim; i += 2) {
    floats2 x;
    memcpy(&x, row + i, sizeof x);
    x = __builtin_convertvector(__builtin_convertvector(x, doubles2) / divisor, floats2);
    memcpy(row + i, &x, sizeof x);
  }
  if (i < dim)
    row[i] = (float)((double)row[i] / divisor);
}

void kernels_normalize(float *rows, size_t n, size_t dim, float eps)
{
  size_t r = 0;

  for (; r + ROWS <= n; r += ROWS) {
    double norms[ROWS];
    find_norms(rows + r * dim, dim, norms);
    for (size_t i = 0; i < ROWS; i++)
      divide(rows + (r + i) * dim, dim, norms[i] > (double)eps ? norms[i] : (double)eps);
  }
  for (; r < n; r++) {
    double norm = kernels_norm(rows + r * dim, dim);
    divide(rows + r * dim, dim, norm > (double)eps ? norm : (double)eps);
  }
}
