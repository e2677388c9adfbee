/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of methods: complete, without duplicates, and the messages of refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/method.h"
#include "engine/backend/backend.h"
#include "engine/recjpq/recjpq_methods.h"
#include "engine/recjpq/recjpq_model.h"
#include "engine/similarity/similarity.h"
#include "engine/vector/vector_methods.h"
#include "engine/vector/vector_model.h"
#include "tests/support/assert_ok.h"

static struct recjpq_model recjpq = { .base = { SIMILARITY_RECJPQ } };
static struct vector_model bilinear = { .base = { SIMILARITY_BILINEAR }, .dim = 7 };

static struct method parse(const char *text)
{
  struct method method;

  assert_ok(method_parse(span_of_str(text), &method));
  return method;
}

static void every_row_is_searched_on_every_backend(void **state)
{
  (void)state;
  for (int s = 0; s < N_SIMILARITIES; s++) {
    const struct methods *methods = similarity_at((enum similarity_kind)s)->methods;
    assert_int_equal(similarity_at((enum similarity_kind)s)->kind, s);
    assert_true(methods->n >= 2);
    for (size_t i = 0; i < methods->n; i++) {
      assert_non_null(backend_cpu.search_of(&methods->rows[i]));
#ifdef SLUICE_CUDA
      assert_non_null(backend_cuda.search_of(&methods->rows[i]));
#endif
      assert_true(strlen(methods->rows[i].summary) > 10);
    }
  }
}

static void a_method_is_its_name_and_its_number_of_arguments(void **state)
{
  struct method right = parse("average(5)"), wrong = parse("average"), other = parse("averag(5)");

  (void)state;
  const struct methods *methods = similarity_at(SIMILARITY_MOL)->methods;
  assert_string_equal(methods_find(methods, &right)->name, "average");
  assert_null(methods_find(methods, &wrong));
  assert_null(methods_find(methods, &other));
  for (size_t i = 0; i < methods->n; i++) {
    struct method method = { .n_args = 0 };
    snprintf(method.name, sizeof method.name, "%s", methods->rows[i].name);
    while (method.n_args < METHOD_ARGS_MAX && methods->rows[i].args[method.n_args].name)
      method.args[method.n_args++] = 1;
    assert_ptr_equal(methods_find(methods, &method), &methods->rows[i]); /* no row hides another */
  }
}

static void a_list_names_every_method_with_its_arguments(void **state)
{
  char text[METHODS_TEXT_MAX];

  (void)state;
  methods_print(similarity_at(SIMILARITY_MOL)->methods, text);
  assert_string_equal(text, "exact, brute_force, two_pass, average(N), per_embedding(N) or combined(N1,N2)");
  methods_print(similarity_at(SIMILARITY_DOT)->methods, text);
  assert_string_equal(text, "exact or brute_force");
  methods_print_row(&similarity_at(SIMILARITY_RECJPQ)->methods->rows[4], text);
  assert_string_equal(text, "prune_inflated(BS,PERCENT)");
}

static void arguments_have_the_bounds_of_their_row(void **state)
{
  static const struct {
    const char *text;
    bool is_fine;
  } cases[] = {
    { "prune(1)", true },
    { "prune(256)", true },
    { "prune(257)", false },
    { "prune_inflated(8,100)", true },
    { "prune_inflated(8,99)", false },
    { "prune_limited(8,4294967295)", true },
    { "prune", false },
  };

  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct method method = parse(cases[i].text);
    err_code_t err = methods_verify(&recjpq_methods, "recjpq", &recjpq.base, &method);
    assert_int_equal(err, cases[i].is_fine ? ERR_OK : ERR_METHOD);
  }
  assert_string_equal(err_message(),
                      "a recjpq space has no method \"prune\": use exact, pqtopk, default, prune(BS), "
                      "prune_inflated(BS,PERCENT) or prune_limited(BS,ITERATIONS), with BS from 1 to 256 and "
                      "PERCENT from 100");
}

static void a_bound_may_come_from_the_model(void **state)
{
  struct method fits = parse("low_rank(7)"), exceeds = parse("low_rank(8)");

  (void)state;
  assert_ok(methods_verify(&bilinear_methods, "bilinear", &bilinear.base, &fits));
  assert_fails(methods_verify(&bilinear_methods, "bilinear", &bilinear.base, &exceeds), ERR_METHOD, "R from 1 to 7");
  assert_fails(methods_verify(&vector_methods, "dot", &bilinear.base, &fits), ERR_METHOD,
               "a dot space has no method \"low_rank(7)\": use exact or brute_force");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_row_is_searched_on_every_backend),
    cmocka_unit_test(a_method_is_its_name_and_its_number_of_arguments),
    cmocka_unit_test(a_list_names_every_method_with_its_arguments),
    cmocka_unit_test(arguments_have_the_bounds_of_their_row),
    cmocka_unit_test(a_bound_may_come_from_the_model),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
