/* SPDX-License-Identifier: Apache-2.0 */
/* Queries that are rotated on the device compared with dots_f64() of the processor, to the last bit. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/vector_rotate.h"
#include "kernels/kernels.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { DIM_MAX = 770, ROWS_MAX = 70, VECTORS_MAX = 35, PAD = 5 };

/* How numbers are drawn. */
enum draw { DRAW_UNIFORM, DRAW_MIXED, DRAW_SPARSE, DRAW_SPECIAL, N_DRAWS };

/* Host arrays are pinned, device arrays have room for the largest case and PAD numbers more. */
struct world {
  struct dice dice;
  const struct kernels *kernels;
  struct device_stream *stream;
  double *u, *sigma, *q, *found;
  float *vectors;
  struct vector_rotation device;
  float *device_vectors;
  double *device_q;
};

static void open_world(struct world *w, uint64_t seed)
{
  *w = (struct world){ .dice.state = seed };
  CHECK_OK(kernels_get(isa_detect(), &w->kernels));
  CHECK_OK(device_stream_open(&w->stream));
  CHECK_OK(device_alloc_host(ROWS_MAX * DIM_MAX, sizeof *w->u, &w->u));
  CHECK_OK(device_alloc_host(ROWS_MAX, sizeof *w->sigma, &w->sigma));
  CHECK_OK(device_alloc_host(VECTORS_MAX * ROWS_MAX + PAD, sizeof *w->q, &w->q));
  CHECK_OK(device_alloc_host(VECTORS_MAX * ROWS_MAX + PAD, sizeof *w->found, &w->found));
  CHECK_OK(device_alloc_host(VECTORS_MAX * DIM_MAX, sizeof *w->vectors, &w->vectors));
  CHECK_OK(device_alloc(ROWS_MAX * DIM_MAX, sizeof *w->u, &w->device.u));
  CHECK_OK(device_alloc(ROWS_MAX, sizeof *w->sigma, &w->device.sigma));
  CHECK_OK(device_alloc(VECTORS_MAX * ROWS_MAX + PAD, sizeof *w->q, &w->device_q));
  CHECK_OK(device_alloc(VECTORS_MAX * DIM_MAX, sizeof *w->vectors, &w->device_vectors));
}

static void close_world(struct world *w)
{
  void *of_device[] = { w->device.u, w->device.sigma, w->device_vectors, w->device_q };
  void *of_host[] = { w->u, w->sigma, w->q, w->found, w->vectors };

  for (size_t i = 0; i < sizeof of_device / sizeof of_device[0]; i++)
    device_free(&of_device[i]);
  for (size_t i = 0; i < sizeof of_host / sizeof of_host[0]; i++)
    device_free_host(&of_host[i]);
  device_stream_close(&w->stream);
}

static float draw_number(struct dice *d, enum draw draw)
{
  static const float special[] = { INFINITY, -INFINITY, NAN, 3e38f, -3e38f, 1e-45f, 0.0f, -0.0f };
  float x = dice_float(d, 1.0f);

  switch (draw) {
  case DRAW_MIXED:
    return x * powf(10.0f, dice_float(d, 30.0f));
  case DRAW_SPARSE:
    return dice_below(d, 3) ? -0.0f : x;
  case DRAW_SPECIAL:
    return dice_below(d, 50) ? x : special[dice_below(d, sizeof special / sizeof special[0])];
  default:
    return x;
  }
}

static void fill(struct world *w, size_t n_rows, size_t n_vectors, size_t dim, enum draw draw)
{
  struct dice *d = &w->dice;

  for (size_t i = 0; i < n_rows * dim; i++) /* more bits than f32 has */
    w->u[i] = (double)dice_float(d, 1.0f) * (1 + (double)dice_float(d, 0x1p-26f));
  for (size_t r = 0; r < n_rows; r++)
    w->sigma[r] = exp((double)dice_float(d, 40.0f));
  for (size_t i = 0; i < n_vectors * dim; i++)
    w->vectors[i] = draw_number(d, draw);
  memset(w->q, 0xa5, (VECTORS_MAX * ROWS_MAX + PAD) * sizeof *w->q);
  CHECK_OK(device_copy_in(w->stream, w->device.u, w->u, n_rows * dim * sizeof *w->u));
  CHECK_OK(device_copy_in(w->stream, w->device.sigma, w->sigma, n_rows * sizeof *w->sigma));
  CHECK_OK(device_copy_in(w->stream, w->device_vectors, w->vectors, n_vectors * dim * sizeof *w->vectors));
  CHECK_OK(device_copy_in(w->stream, w->device_q, w->q, (VECTORS_MAX * ROWS_MAX + PAD) * sizeof *w->q));
}

/* The same bits, but a NaN may be any. */
static bool are_same(double x, double y)
{
  return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

/* Compare q' with the processor's. Numbers after them must stay as they were. */
static void check(struct world *w, size_t n_rows, size_t n_vectors, size_t dim, enum draw draw)
{
  static double wanted[VECTORS_MAX * ROWS_MAX + PAD];
  const float *pointers[VECTORS_MAX];
  size_t n = n_vectors * n_rows;

  fill(w, n_rows, n_vectors, dim, draw);
  for (size_t v = 0; v < n_vectors; v++)
    pointers[v] = w->vectors + v * dim;
  memcpy(wanted, w->q, sizeof wanted);
  w->kernels->dots_f64(w->u, n_rows, pointers, n_vectors, dim, wanted);
  for (size_t i = 0; i < n; i++)
    wanted[i] *= w->sigma[i % n_rows];
  w->device.dim = dim;
  CHECK_OK(vector_rotate(w->stream, &w->device, w->device_vectors, n_vectors, n_rows, w->device_q));
  CHECK_OK(device_copy_out(w->stream, w->found, w->device_q, (n + PAD) * sizeof *w->q));
  CHECK_OK(device_wait(w->stream));
  for (size_t i = 0; i < n + PAD; i++)
    CHECK(are_same(w->found[i], wanted[i]), "%zu rows, %zu vectors of %zu: number %zu is %.17g, not %.17g", n_rows,
          n_vectors, dim, i, w->found[i], wanted[i]);
}

int main(void)
{
  static const size_t dims[] = { 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 513, 768, 770 };
  static const size_t rows[] = { 1, 3, 4, 5, 33, 70 };
  static const size_t n_vectors[] = { 1, 2, 7, 8, 9, 16, 35 };
  static struct world w;
  size_t step = check_size(1, 3);

  check_begin("gpu_vector_rotate");
  open_world(&w, dice_seed());
  check(&w, 0, 3, 32, DRAW_UNIFORM);
  check(&w, 3, 0, 32, DRAW_UNIFORM);
  for (size_t i = dice_below(&w.dice, step); i < sizeof dims / sizeof dims[0]; i += step) {
    for (size_t j = 0; j < sizeof n_vectors / sizeof n_vectors[0]; j++)
      check(&w, rows[dice_below(&w.dice, sizeof rows / sizeof rows[0])], n_vectors[j], dims[i],
            (enum draw)dice_below(&w.dice, N_DRAWS));
  }
  for (enum draw draw = DRAW_UNIFORM; draw < N_DRAWS; draw++) {
    check(&w, 33, 9, 300, draw);
    check(&w, 70, 1, 770, draw);
  }
  close_world(&w);
  return check_end("gpu_vector_rotate");
}
