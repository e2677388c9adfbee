/* SPDX-License-Identifier: Apache-2.0 */
/* Models of vector spaces: valid ones load, and others are refused with the reason. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <lapacke.h>

#include "engine/arena/space.h"
#include "engine/engine.h"
#include "engine/vector/vector_model.h"
#include "tests/support/assert_ok.h"
#include "tests/support/check_model.h"
#include "tests/support/dice.h"
#include "tests/support/temp_dir.h"
#include "tests/support/vector_file.h"

static struct temp_dir dir;
static char path[PATH_MAX];
static struct dice dice;

static err_code_t check(size_t dim)
{
  return check_model(path, dim);
}

/* Counts the calls of LAPACK's function and passes them on. This definition takes precedence over the library's. */
static size_t n_decompositions;

lapack_int LAPACKE_dgesdd(int layout, char job, lapack_int m, lapack_int n, double *a, lapack_int lda, double *s,
                          double *u, lapack_int ldu, double *vt, lapack_int ldvt)
{
  lapack_int (*own)(int, char, lapack_int, lapack_int, double *, lapack_int, double *, double *, lapack_int, double *,
                    lapack_int);

  *(void **)&own = dlsym(RTLD_NEXT, "LAPACKE_dgesdd");
  n_decompositions++;
  return own(layout, job, m, n, a, lda, s, u, ldu, vt, ldvt);
}

/* Load the model as the daemon does. */
static err_code_t open_space(size_t dim)
{
  struct space space;
  err_code_t err = space_init(&(struct engine_space){ .name = "v", .model_path = path, .dim = dim }, &space);

  space_fini(&space);
  return err;
}

static void a_model_that_has_no_cells_refuses_to_leave_them_out(void **state)
{
  float numbers[4] = { 1, 2, 3, 4 };
  struct space space;

  (void)state;
  vector_file_write_matrix(path, numbers, 2, 2);
  err_code_t err = space_init(&(struct engine_space){ .name = "v", .model_path = path, .has_no_cells = true }, &space);
  space_fini(&space);
  assert_fails(err, ERR_MODEL, "is a bilinear model: only recjpq spaces have cells");
}

/* Decomposing a large matrix takes minutes: too long for a check before each start. */
static void a_check_does_not_decompose_what_is_large(void **state)
{
  enum { LARGE = 800 };
  float *numbers = calloc((size_t)2 * LARGE * LARGE, sizeof *numbers);

  (void)state;
  numbers[0] = 1;
  n_decompositions = 0;
  vector_file_write_matrix(path, numbers, LARGE, LARGE);
  assert_ok(check(0));
  assert_fails(check(3), ERR_MODEL, "for vectors of 800 numbers");
  vector_file_write_factors(path, numbers, LARGE, LARGE, LARGE);
  assert_ok(check(LARGE));
  assert_int_equal(n_decompositions, 0);
  numbers[LARGE] = NAN;
  vector_file_write_matrix(path, numbers, LARGE, LARGE);
  assert_fails(check(0), ERR_MODEL, "tensor \"W\": number 800");
  numbers[LARGE] = 1;
  vector_file_write_factors(path, numbers, LARGE, 3, 3); /* of rank 3 at most, which is quick */
  assert_ok(check(LARGE));
  assert_int_equal(n_decompositions, 1);
  assert_ok(open_space(LARGE));
  assert_int_equal(n_decompositions, 2);
  free(numbers);
}

static void tensors_of_other_names_are_refused_with_a_hint(void **state)
{
  static const struct {
    const char *similarity, *tensor, *hint;
  } rows[] = {
    { "bilinear", "module.W", "take the prefix \"module.\" off the names, as docs/models.md does" },
    { "bilinear", "weight", "the file has \"weight\" (docs/models.md has the names)" },
    { "weighted_dot", "_orig_mod.v", "take the prefix \"_orig_mod.\" off the names" },
    { "recjpq", "item_codes.centroids", "take the prefix \"item_codes.\" off the names" },
    { "recjpq", "item_centroids", "\"item_centroids\", which looks like it: rename it" },
    { "recjpq", "embedding", "the file has \"embedding\" (docs/models.md" },
  };
  char header[512];
  float number = 1;

  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"sluice.similarity\":\"%s\"},"
             "\"%s\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}",
             rows[i].similarity, rows[i].tensor);
    model_file_write(path, header, &number, 4);
    assert_fails(check(0), ERR_MODEL, rows[i].hint);
    assert_fails(open_space(0), ERR_MODEL, rows[i].hint);
  }
  model_file_write(path, "{\"__metadata__\":{\"sluice.similarity\":\"recjpq\"}}", NULL, 0);
  assert_fails(check(0), ERR_MODEL, "\"centroids\"; the file has none");
}

static void a_model_without_tensors_needs_a_dimension_from_somewhere(void **state)
{
  static const char *const names[] = { "dot", "cosine" };

  (void)state;
  for (size_t i = 0; i < 2; i++) {
    vector_file_write_plain(path, names[i], 0);
    assert_fails(check(0), ERR_MODEL, "set the space's dim in the configuration");
    assert_ok(check(12));
    assert_fails(check(70000), ERR_MODEL, "\"70000\", not a whole number from 1 to 65536");
    vector_file_write_plain(path, names[i], 12);
    assert_ok(check(0));
    assert_ok(check(12));
    assert_fails(check(13), ERR_MODEL, "\"sluice.dim\" is \"12\", the configuration says 13");
  }
}

static void a_dimension_beside_tensors_must_be_theirs(void **state)
{
  float numbers[16] = { 1, 2, 3, 4 };

  (void)state;
  vector_file_write_weights(path, numbers, 4);
  assert_ok(check(4));
  assert_fails(check(5), ERR_MODEL, "for vectors of 4 numbers, but its sluice.dim or the space's dim is 5");
  vector_file_write_matrix(path, numbers, 4, 4);
  assert_ok(check(4));
  assert_fails(check(3), ERR_MODEL, "for vectors of 4 numbers");
  vector_file_write_factors(path, numbers, 4, 2, 2);
  assert_ok(check(4));
  assert_fails(check(2), ERR_MODEL, "for vectors of 4 numbers");
}

static void a_name_that_is_no_similarity_is_refused_with_all_names(void **state)
{
  (void)state;
  vector_file_write_plain(path, "euclid", 3);
  assert_fails(check(0), ERR_MODEL, "\"euclid\" is not one of mol, recjpq, dot, cosine, weighted_dot, bilinear");
}

static void tensors_of_wrong_shapes_are_refused(void **state)
{
  float numbers[64] = { 1, 2, 3 };

  (void)state;
  vector_file_write_matrix(path, numbers, 3, 4);
  assert_fails(check(0), ERR_MODEL, "\"W\" is 3 x 4, but must be square");
  vector_file_write_matrix(path, numbers, 0, 0);
  assert_fails(check(0), ERR_MODEL, "tensor \"W\"");
  vector_file_write_factors(path, numbers, 4, 2, 3);
  assert_fails(check(0), ERR_MODEL, "they are 4 x 2 and 4 x 3");
  vector_file_write_weights(path, numbers, 0);
  assert_fails(check(0), ERR_MODEL, "tensor \"v\"");
  model_file_write(path, "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"}}", NULL, 0);
  assert_fails(check(0), ERR_MODEL, "either a tensor \"W\" or tensors \"P\" and \"Q\"");
  model_file_write(path, "{\"__metadata__\":{\"sluice.similarity\":\"weighted_dot\"}}", NULL, 0);
  assert_fails(check(0), ERR_MODEL, "no tensor \"v\"");
  model_file_write(path,
                   "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"},"
                   "\"P\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]}}",
                   numbers, 4);
  assert_fails(check(0), ERR_MODEL, "no tensor \"Q\"");
  model_file_write(path,
                   "{\"__metadata__\":{\"sluice.similarity\":\"bilinear\"},"
                   "\"W\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   numbers, 4);
  assert_fails(check(0), ERR_MODEL, "has 1 dimensions, not 2");
}

static void numbers_that_are_none_are_refused(void **state)
{
  static const float bad[] = { NAN, INFINITY, -INFINITY, 1e7f };

  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    float numbers[16] = { 1, 2, 3 };
    numbers[3] = bad[i];
    vector_file_write_weights(path, numbers, 4);
    assert_fails(check(0), ERR_MODEL, "tensor \"v\": number 3");
    vector_file_write_matrix(path, numbers, 4, 4);
    assert_fails(check(0), ERR_MODEL, "tensor \"W\": number 3");
    vector_file_write_factors(path, numbers, 2, 4, 4);
    assert_fails(check(0), ERR_MODEL, "tensor \"P\": number 3");
  }
}

static void products_too_large_for_f32_are_refused(void **state)
{
  enum { DIM = 100, RANK = 100 };
  float *pq = calloc(2 * DIM * RANK, sizeof *pq);

  (void)state;
  for (size_t i = 0; i < 2 * DIM * RANK; i++)
    pq[i] = 1e6f;
  vector_file_write_factors(path, pq, DIM, RANK, RANK);
  assert_fails(check(0), ERR_MODEL, "scores would not fit into f32");
  free(pq);
}

/* The sketch dimension that a diagonal matrix gets. */
static size_t sketch_dim_of(const float *sigma, size_t n)
{
  float *w = calloc(n * n, sizeof *w);
  struct space space;
  size_t s;

  for (size_t k = 0; k < n; k++)
    w[k * n + k] = sigma[k];
  vector_file_write_matrix(path, w, n, n);
  assert_ok(space_init(&(struct engine_space){ .name = "v", .model_path = path }, &space));
  s = ((struct vector_model *)space.model)->sketch_dim;
  space_fini(&space);
  free(w);
  return s;
}

static void the_sketch_is_as_long_as_the_spectrum_needs(void **state)
{
  enum { DIM = 200 };
  float sigma[DIM];

  (void)state;
  for (size_t k = 0; k < DIM; k++)
    sigma[k] = 1;
  /* The sum of the last 3 is 3 <= sqrt(200) / 4: 197, rounded up to a multiple of 32 or to all. */
  assert_int_equal(sketch_dim_of(sigma, DIM), 200);
  for (size_t k = 0; k < DIM; k++)
    sigma[k] = powf(0.5f, (float)k);
  assert_int_equal(sketch_dim_of(sigma, DIM), 32);
  assert_int_equal(sketch_dim_of(sigma, 5), 5);
  for (size_t k = 0; k < DIM; k++)
    sigma[k] = k < 50 ? 1 : 0.001f;
  assert_int_equal(sketch_dim_of(sigma, DIM), 64);
}

/* The loader must survive any file: headers and data are cut and changed. */
static void mutated_files_never_break_the_loader(void **state)
{
  uint8_t bytes[1024];
  float numbers[18] = { 1, 0.5f, 2 };

  (void)state;
  for (int i = 0; i < 3000; i++) {
    if (i % 3 == 0)
      vector_file_write_matrix(path, numbers, 3, 3);
    else if (i % 3 == 1)
      vector_file_write_factors(path, numbers, 3, 2, 2);
    else
      vector_file_write_weights(path, numbers, 3);
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t c = dice_below(&dice, 4); c > 0; c--)
      bytes[dice_below(&dice, n)] = (uint8_t)dice_u64(&dice);
    if (dice_below(&dice, 4) == 0)
      n = dice_below(&dice, n);
    file = fopen(path, "wb");
    fwrite(bytes, 1, n, file);
    fclose(file);
    size_t dim = dice_below(&dice, 2) * 3;
    err_code_t err = check(dim);
    assert_true(err == ERR_OK || err == ERR_MODEL);
    assert_int_equal(open_space(dim), err); /* the check gives the same verdict as the daemon */
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_model_that_has_no_cells_refuses_to_leave_them_out),
    cmocka_unit_test(a_check_does_not_decompose_what_is_large),
    cmocka_unit_test(tensors_of_other_names_are_refused_with_a_hint),
    cmocka_unit_test(a_model_without_tensors_needs_a_dimension_from_somewhere),
    cmocka_unit_test(a_dimension_beside_tensors_must_be_theirs),
    cmocka_unit_test(a_name_that_is_no_similarity_is_refused_with_all_names),
    cmocka_unit_test(tensors_of_wrong_shapes_are_refused),
    cmocka_unit_test(numbers_that_are_none_are_refused),
    cmocka_unit_test(products_too_large_for_f32_are_refused),
    cmocka_unit_test(the_sketch_is_as_long_as_the_spectrum_needs),
    cmocka_unit_test(mutated_files_never_break_the_loader),
  };

  dice.state = dice_seed();
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/m.safetensors", dir.path);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
