/* SPDX-License-Identifier: Apache-2.0 */
/* Whole searches over the golden Mixture-of-Logits models. Weights, inputs and expected outputs come from the authors'
 * implementation (tests/golden/README.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <math.h>

#include "engine/engine.h"
#include "engine/mol/mol_columns.h"
#include "engine/similarity/similarity.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/golden.h"

struct fixture_case {
  const char *name;
  bool has_ties; /* if so, ids are compared up to ties */
};

enum { MIXED = 6 /* queries of a batch */ };

static const struct fixture_case cases[] = { { "small_uid", false }, { "books", false }, { "edge", true } };

struct golden_case {
  struct golden *inputs, *expected;
  size_t n_items, n_queries, item_dim, query_dim, k;
  const float *items, *queries;
  const int64_t *user_ids;
  const double *phi;
  struct engine *engine;
  struct searcher *searcher;
};

/* The key of a position. Keys sort as positions do, so ties go to the lower position, as in the golden data. */
static struct span key_of(size_t position, char *text)
{
  return span_of(text, (size_t)sprintf(text, "item-%06zu", position));
}

static size_t position_of(struct span key)
{
  return strtoul((const char *)key.p + 5, NULL, 10);
}

static void open_case(const char *name, enum isa isa, struct golden_case *c)
{
  char path[256];
  struct engine_space space = { .name = "space", .model_path = path };
  struct engine_config config = { &space, 1, 1000, 1000, 64, isa, ENGINE_CPU, 1, { 0 }, { 0 } };

  snprintf(path, sizeof path, "%s/inputs.safetensors", name);
  c->inputs = golden_open(path);
  snprintf(path, sizeof path, "%s/expected.safetensors", name);
  c->expected = golden_open(path);
  c->n_items = golden_extent(c->inputs, "item_embeddings", 0);
  c->item_dim = golden_extent(c->inputs, "item_embeddings", 1);
  c->n_queries = golden_extent(c->inputs, "query_embeddings", 0);
  c->query_dim = golden_extent(c->inputs, "query_embeddings", 1);
  c->k = golden_extent(c->expected, "top_pos", 1);
  c->items = GOLDEN_F32(c->inputs, "item_embeddings", 0, 0);
  c->queries = GOLDEN_F32(c->inputs, "query_embeddings", 0, 0);
  c->user_ids = GOLDEN_I64(c->inputs, "user_ids", 0);
  c->phi = GOLDEN_F64(c->expected, "phi_f64", 0, 0);
  snprintf(path, sizeof path, "%s/%s/weights.safetensors", SLUICE_GOLDEN_DIR, name);
  assert_ok(engine_open(&config, &c->engine));
  assert_ok(searcher_open(c->engine, &c->searcher));
  for (size_t i = 0; i < c->n_items; i++) {
    char text[32];
    fixture_put_vector(c->engine, key_of(i, text), "space", c->items + i * c->item_dim, c->item_dim);
  }
}

static void close_case(struct golden_case *c)
{
  searcher_close(&c->searcher);
  engine_close(&c->engine);
  golden_close(&c->inputs);
  golden_close(&c->expected);
}

static struct query query_of(const struct golden_case *c, size_t q, size_t k, const char *method)
{
  return (struct query){
    .space = span_of_str("space"),
    .method = span_of_str(method),
    .k = (uint32_t)k,
    .vector = { c->queries + q * c->query_dim, c->query_dim },
    .has_user_id = true,
    .user_id = c->user_ids[q],
  };
}

/* Search all queries of a case in one batch, so that batching is tested too. */
static struct answer *search_all(const struct golden_case *c, size_t k, const char *method)
{
  struct query *queries = calloc(c->n_queries, sizeof *queries);
  struct answer *answers = calloc(c->n_queries, sizeof *answers);

  for (size_t q = 0; q < c->n_queries; q++)
    queries[q] = query_of(c, q, k, method);
  fixture_search(c->engine, c->searcher, queries, c->n_queries, answers);
  free(queries);
  return answers;
}

/* Compare hits with the expected positions. -1 pads the golden lists. */
static void assert_hits(const struct golden_case *c, bool has_ties, size_t q, const struct answer *answer,
                        const int64_t *positions, const double *scores, size_t n)
{
  while (n > 0 && positions[n - 1] < 0)
    n--;
  assert_int_equal(answer->n_hits, n);
  for (size_t i = 0; i < n; i++) {
    size_t position = position_of(answer->hits[i].key);
    assert_true(fabs(answer->hits[i].score - scores[i]) <= 1e-4);
    assert_true(fabs(answer->hits[i].score - c->phi[q * c->n_items + position]) <= 1e-4);
    if (!has_ties)
      assert_int_equal(position, positions[i]);
  }
}

/* Print a method with the arguments that a case's golden lists were made with. */
static void method_of(const struct golden_case *c, const char *name, char text[32])
{
  int n_average = (int)golden_extent(c->expected, "avg_cand_pos", 1);
  int n_pairs = (int)golden_extent(c->expected, "peremb_cand_pos", 2);

  if (strcmp(name, "average") == 0)
    snprintf(text, 32, "average(%d)", n_average);
  else if (strcmp(name, "per_embedding") == 0)
    snprintf(text, 32, "per_embedding(%d)", n_pairs);
  else if (strcmp(name, "combined") == 0)
    snprintf(text, 32, "combined(%d,%d)", n_pairs, n_average / 2);
  else
    snprintf(text, 32, "%s", name);
}

static void check_method(enum isa isa, const char *method, const char *positions_name, const char *scores_name,
                         bool is_exact)
{
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct golden_case c = { 0 };
    open_case(cases[i].name, isa, &c);
    char text[32];
    method_of(&c, method, text);
    struct answer *answers = search_all(&c, c.k, text);
    const int64_t *positions = GOLDEN_I64(c.expected, positions_name, 0, 0);
    const double *scores = GOLDEN_F64(c.expected, scores_name, 0, 0);
    for (size_t q = 0; q < c.n_queries; q++) {
      assert_hits(&c, cases[i].has_ties, q, &answers[q], positions + q * c.k, scores + q * c.k, c.k);
      assert_int_equal(answers[q].receipt.is_exact, is_exact);
      assert_int_equal(answers[q].counts.items, c.n_items);
    }
    free(answers);
    close_case(&c);
  }
}

static void exact_methods_return_the_golden_top_k_on_every_isa(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    check_method((enum isa)isa, "brute_force", "top_pos", "top_phi_f64", true);
    check_method((enum isa)isa, "two_pass", "top_pos", "top_phi_f64", true);
    check_method((enum isa)isa, "exact", "top_pos", "top_phi_f64", true);
  }
}

static void average_returns_the_golden_candidates_rescored(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++)
    check_method((enum isa)isa, "average", "avg_top_pos", "avg_top_phi_f64", false);
}

static void lists_of_pairs_return_the_golden_candidates_rescored(void **state)
{
  (void)state;
  for (int isa = ISA_REF; isa <= (int)isa_detect(); isa++) {
    check_method((enum isa)isa, "per_embedding", "peremb_top_pos", "peremb_top_phi_f64", false);
    check_method((enum isa)isa, "combined", "comb_top_pos", "comb_top_phi_f64", false);
  }
}

/* Receipts of average(N) for every N: no item that was not returned scores above the bound. */
static void average_receipts_hold_for_every_n(void **state)
{
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct golden_case c = { 0 };
    open_case(cases[i].name, isa_detect(), &c);
    for (size_t n = 1; n <= c.n_items + 3; n += 1 + n / 3) {
      char method[32];
      snprintf(method, sizeof method, "average(%zu)", n);
      struct answer *answers = search_all(&c, 10, method);
      for (size_t q = 0; q < c.n_queries; q++)
        fixture_assert_receipt(&answers[q], 10, c.phi + q * c.n_items, c.n_items, position_of, 1e-4);
      if (n >= c.n_items)
        assert_true(answers[0].receipt.is_exact);
      assert_int_equal(answers[0].counts.candidates, n < c.n_items ? n : c.n_items);
      free(answers);
    }
    close_case(&c);
  }
}

static void a_batch_and_single_queries_give_the_same_bytes(void **state)
{
  struct golden_case c = { 0 };

  (void)state;
  open_case("books", isa_detect(), &c);
  struct answer *batch = search_all(&c, 20, "brute_force");
  struct searcher *second;
  assert_ok(searcher_open(c.engine, &second));
  for (size_t q = 0; q < c.n_queries; q++) {
    struct query query = query_of(&c, q, 20, "exact");
    struct answer one;
    fixture_search(c.engine, second, &query, 1, &one);
    fixture_assert_same_hits(&one, &batch[q]);
  }
  searcher_close(&second);
  free(batch);
  close_case(&c);
}

/* Every other query brings its components and gate, so rows of the query networks are not those of the batch. */
static void a_batch_may_mix_raw_and_ready_made_queries(void **state)
{
  struct golden_case c = { 0 };
  struct query queries[MIXED];
  struct answer batch[MIXED], one;
  struct searcher *second;

  (void)state;
  open_case("small_uid", isa_detect(), &c);
  assert_true(c.n_queries >= MIXED);
  const float *components = GOLDEN_F32(c.expected, "q_comp", 0, 0, 0);
  const float *gates = GOLDEN_F32(c.expected, "gate_q", 0, 0);
  size_t n_components = golden_extent(c.expected, "q_comp", 1) * golden_extent(c.expected, "q_comp", 2);
  size_t n_gate = golden_extent(c.expected, "gate_q", 1);
  for (size_t q = 0; q < MIXED; q++) {
    queries[q] = query_of(&c, q, 20, "exact");
    if (q % 2 == 0) {
      queries[q].vector = (struct floats){ 0 };
      queries[q].components = (struct floats){ components + q * n_components, n_components };
      queries[q].query_gate = (struct floats){ gates + q * n_gate, n_gate };
    }
  }
  fixture_search(c.engine, c.searcher, queries, MIXED, batch);
  assert_ok(searcher_open(c.engine, &second));
  for (size_t q = 0; q < MIXED; q++) {
    fixture_search(c.engine, second, &queries[q], 1, &one);
    fixture_assert_same_hits(&one, &batch[q]);
  }
  searcher_close(&second);
  close_case(&c);
}

static void every_isa_gives_the_same_bytes(void **state)
{
  struct golden_case reference = { 0 };

  (void)state;
  open_case("small_uid", ISA_REF, &reference);
  struct answer *want = search_all(&reference, 100, "average(50)");
  for (int isa = ISA_REF + 1; isa <= (int)isa_detect(); isa++) {
    struct golden_case c = { 0 };
    open_case("small_uid", (enum isa)isa, &c);
    struct answer *have = search_all(&c, 100, "average(50)");
    for (size_t q = 0; q < c.n_queries; q++)
      fixture_assert_same_hits(&have[q], &want[q]);
    free(have);
    close_case(&c);
  }
  free(want);
  close_case(&reference);
}

/* Items and queries are given as the components and gates that the authors' code computed. */
static void ready_made_components_score_like_raw_vectors(void **state)
{
  struct golden_case c = { 0 };
  char text[32];

  (void)state;
  open_case("books", isa_detect(), &c);
  const float *item_components = GOLDEN_F32(c.expected, "x_comp", 0, 0, 0);
  const float *item_gates = GOLDEN_F32(c.expected, "gate_x", 0, 0);
  const float *query_components = GOLDEN_F32(c.expected, "q_comp", 0, 0, 0);
  const float *query_gates = GOLDEN_F32(c.expected, "gate_q", 0, 0);
  size_t n_item = golden_extent(c.expected, "x_comp", 1) * golden_extent(c.expected, "x_comp", 2);
  size_t n_query = golden_extent(c.expected, "q_comp", 1) * golden_extent(c.expected, "q_comp", 2);
  size_t n_gate = golden_extent(c.expected, "gate_q", 1);
  for (size_t i = 0; i < c.n_items; i++) {
    struct part part = {
      .space = span_of_str("space"),
      .components = { item_components + i * n_item, n_item },
      .item_gate = { item_gates + i * n_gate, n_gate },
    };
    fixture_put(c.engine, key_of(i, text), &part, 1);
  }
  for (size_t q = 0; q < c.n_queries; q++) {
    struct query query = query_of(&c, q, 10, "exact");
    struct answer answer;
    query.vector = (struct floats){ 0 };
    query.components = (struct floats){ query_components + q * n_query, n_query };
    query.query_gate = (struct floats){ query_gates + q * n_gate, n_gate };
    fixture_search(c.engine, c.searcher, &query, 1, &answer);
    assert_hits(&c, false, q, &answer, GOLDEN_I64(c.expected, "top_pos", 0, 0) + q * c.k,
                GOLDEN_F64(c.expected, "top_phi_f64", 0, 0) + q * c.k, 10);
  }
  close_case(&c);
}

static void excluded_keys_are_not_returned_and_the_rest_is_still_exact(void **state)
{
  struct golden_case c = { 0 };
  char texts[2][32];

  (void)state;
  open_case("books", isa_detect(), &c);
  const int64_t *positions = GOLDEN_I64(c.expected, "top_pos", 0, 0);
  for (size_t q = 0; q < c.n_queries; q++) {
    struct span exclude[] = {
      key_of((size_t)positions[q * c.k], texts[0]),
      key_of((size_t)positions[q * c.k + 2], texts[1]),
      span_of_str("no such item"),
      key_of((size_t)positions[q * c.k], texts[0]),
    };
    struct query query = query_of(&c, q, 3, "exact");
    struct answer answer;
    query.exclude = exclude;
    query.n_exclude = 4;
    fixture_search(c.engine, c.searcher, &query, 1, &answer);
    assert_int_equal(answer.n_hits, 3);
    assert_int_equal(position_of(answer.hits[0].key), positions[q * c.k + 1]);
    assert_int_equal(position_of(answer.hits[1].key), positions[q * c.k + 3]);
    assert_int_equal(position_of(answer.hits[2].key), positions[q * c.k + 4]);
  }
  close_case(&c);
}

static void assert_refused(const struct golden_case *c, const struct query *query, err_code_t want)
{
  struct method method;
  size_t space;

  assert_int_equal(engine_check_query(c->engine, query, &space, &method), want);
}

static void queries_that_cannot_be_served_are_refused_with_the_reason(void **state)
{
  struct golden_case c = { 0 };
  struct query query;

  (void)state;
  open_case("books", isa_detect(), &c);
  query = query_of(&c, 0, 0, "exact");
  assert_refused(&c, &query, ERR_QUERY);
  query = query_of(&c, 0, 1001, "exact");
  assert_refused(&c, &query, ERR_QUERY);
  query = query_of(&c, 0, 5, "prune(8)");
  assert_refused(&c, &query, ERR_METHOD);
  query = query_of(&c, 0, 5, "average");
  assert_refused(&c, &query, ERR_METHOD);
  query = query_of(&c, 0, 5, "average(0)");
  assert_refused(&c, &query, ERR_METHOD);
  query = query_of(&c, 0, 5, "exact");
  query.vector.n--;
  assert_refused(&c, &query, ERR_QUERY);
  assert_non_null(strstr(err_message(), "63 numbers where the model needs 64"));
  query = query_of(&c, 0, 5, "exact");
  query.space = span_of_str("other");
  assert_refused(&c, &query, ERR_SPACE);
  close_case(&c);
}

static struct answer ask_as(const struct golden_case *c, bool has_user_id, int64_t user_id)
{
  struct query query = query_of(c, 0, 20, "exact");
  struct answer answer;

  query.has_user_id = has_user_id;
  query.user_id = user_id;
  fixture_search(c->engine, c->searcher, &query, 1, &answer);
  return answer;
}

/* The first score, which every row of the user's table changes. */
static float first_score(const struct golden_case *c, bool has_user_id, int64_t user_id)
{
  return ask_as(c, has_user_id, user_id).hits[0].score;
}

/* As in the authors' code: Python's modulo is never negative. */
static void a_user_id_counts_modulo_the_table_also_below_zero(void **state)
{
  enum { N_HASH = 64 };
  struct golden_case c = { 0 };

  (void)state;
  open_case("small_uid", isa_detect(), &c);
  float first = first_score(&c, true, 0), last = first_score(&c, true, N_HASH - 1);
  assert_true(first != last);
  assert_true(first_score(&c, true, N_HASH) == first && first_score(&c, true, -N_HASH) == first);
  assert_true(first_score(&c, true, INT64_MIN) == first);
  assert_true(first_score(&c, true, -1) == last && first_score(&c, true, INT64_MAX) == last);
  close_case(&c);
}

/* Its part of the components is zero, and not that of user 0. */
static void a_query_without_a_user_id_has_no_row(void **state)
{
  struct golden_case c = { 0 };
  struct query query;
  struct answer answer;

  (void)state;
  open_case("small_uid", isa_detect(), &c);
  size_t n = golden_extent(c.expected, "q_comp", 1), dim = golden_extent(c.expected, "q_comp", 2);
  float *components = calloc(n * dim, sizeof *components);
  assert_non_null(components);
  memcpy(components, GOLDEN_F32(c.expected, "q_comp", 0, 0, 0), (n - 1) * dim * sizeof *components);
  query = query_of(&c, 0, 20, "exact");
  query.vector = (struct floats){ 0 };
  query.components = (struct floats){ components, n * dim };
  query.query_gate = (struct floats){ GOLDEN_F32(c.expected, "gate_q", 0, 0), golden_extent(c.expected, "gate_q", 1) };
  fixture_search(c.engine, c.searcher, &query, 1, &answer);
  float zeros = answer.hits[0].score, without = first_score(&c, false, 0);
  assert_true(fabsf(without - zeros) <= 1e-4f);
  assert_true(fabsf(first_score(&c, true, 0) - zeros) > 1e-3f);
  query = query_of(&c, 0, 5, "average(5)");
  query.has_user_id = false;
  fixture_search(c.engine, c.searcher, &query, 1, &answer);
  assert_true(answer.receipt.has_bound && answer.receipt.bound >= without); /* a component of zeros lowers no bound */
  free(components);
  close_case(&c);
}

/* Which of the two would count? */
static void vectors_beside_what_networks_make_of_them_are_refused(void **state)
{
  struct golden_case c = { 0 };

  (void)state;
  open_case("books", isa_detect(), &c);
  size_t n_item = golden_extent(c.expected, "x_comp", 1) * golden_extent(c.expected, "x_comp", 2);
  size_t n_query = golden_extent(c.expected, "q_comp", 1) * golden_extent(c.expected, "q_comp", 2);
  size_t n_gate = golden_extent(c.expected, "gate_q", 1);
  const struct floats vector = { c.items, c.item_dim };
  const struct floats components = { GOLDEN_F32(c.expected, "x_comp", 0, 0, 0), n_item };
  const struct floats gate = { GOLDEN_F32(c.expected, "gate_x", 0, 0), n_gate };
  const uint8_t code = 0;
  struct part part = { .space = span_of_str("space"), .components = components, .item_gate = gate };
  assert_ok(engine_check_part(c.engine, &part));
  part.vector = vector;
  assert_fails(engine_check_part(c.engine, &part), ERR_ITEM, "vector is given");
  part.components.n = 0;
  assert_fails(engine_check_part(c.engine, &part), ERR_ITEM, "vector is given");
  part.item_gate.n = 0;
  assert_ok(engine_check_part(c.engine, &part));
  part.codes = span_of(&code, 1);
  assert_fails(engine_check_part(c.engine, &part), ERR_ITEM, "codes is given");
  struct query query = query_of(&c, 0, 5, "exact");
  query.query_gate = (struct floats){ GOLDEN_F32(c.expected, "gate_q", 0, 0), n_gate };
  assert_refused(&c, &query, ERR_QUERY);
  query.components = (struct floats){ GOLDEN_F32(c.expected, "q_comp", 0, 0, 0), n_query };
  assert_refused(&c, &query, ERR_QUERY);
  close_case(&c);
}

/* It is the slack of sketches: with too little, a search would drop items that are among the best. */
static void copied_columns_know_the_largest_residual(void **state)
{
  const struct columns_ops *ops = &mol_columns_cpu;
  const struct kernels *kernels;
  struct golden_case c = { 0 };
  struct region scratch = { 0 };
  struct safetensors *file;
  struct columns *from, *to;
  struct model *model;
  uint8_t *prepared;

  (void)state;
  open_case("books", isa_detect(), &c);
  assert_ok(kernels_get(isa_detect(), &kernels));
  assert_ok(safetensors_open(SLUICE_GOLDEN_DIR "/books/weights.safetensors", &file));
  assert_ok(similarity_mol.model_open(file, &model));
  safetensors_close(&file);
  const struct part part = { .space = span_of_str("space"), .vector = { c.items, c.item_dim } };
  const struct part *parts[] = { &part };
  assert_ok(region_aligned(&scratch, similarity_mol.prepared_bytes(model), 1, &prepared));
  assert_ok(similarity_mol.prepare_parts(model, kernels, parts, 1, &scratch, prepared));
  assert_ok(ops->open(model, 1, &from));
  assert_ok(ops->open(model, 1, &to));
  assert_ok(ops->load(from, 0, prepared));
  assert_true(mol_columns_of(from)->residual > 0);
  assert_ok(ops->copy(to, from, 0, 1));
  assert_true(mol_columns_of(to)->residual == mol_columns_of(from)->residual);
  ops->close(&from);
  ops->close(&to);
  similarity_mol.model_close(&model);
  region_fini(&scratch);
  close_case(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(exact_methods_return_the_golden_top_k_on_every_isa),
    cmocka_unit_test(average_returns_the_golden_candidates_rescored),
    cmocka_unit_test(lists_of_pairs_return_the_golden_candidates_rescored),
    cmocka_unit_test(average_receipts_hold_for_every_n),
    cmocka_unit_test(a_batch_and_single_queries_give_the_same_bytes),
    cmocka_unit_test(a_batch_may_mix_raw_and_ready_made_queries),
    cmocka_unit_test(every_isa_gives_the_same_bytes),
    cmocka_unit_test(ready_made_components_score_like_raw_vectors),
    cmocka_unit_test(excluded_keys_are_not_returned_and_the_rest_is_still_exact),
    cmocka_unit_test(queries_that_cannot_be_served_are_refused_with_the_reason),
    cmocka_unit_test(a_user_id_counts_modulo_the_table_also_below_zero),
    cmocka_unit_test(a_query_without_a_user_id_has_no_row),
    cmocka_unit_test(copied_columns_know_the_largest_residual),
    cmocka_unit_test(vectors_beside_what_networks_make_of_them_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
