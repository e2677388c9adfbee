/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits models with one fault at a time: each is refused, and the error names the tensor or the metadata
 * key. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "engine/engine.h"
#include "tests/support/check_model.h"
#include "tests/support/dice.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

static const char *const cases[] = { "books", "edge", "small_uid" };

enum { N_CASES = sizeof cases / sizeof cases[0] };

static uint64_t seed;
static struct temp_dir dir;
static char path[sizeof dir.path + 32];

/* A golden model: its header and its data. */
struct model {
  json_t *header;
  uint8_t *data;
  size_t n;
};

static struct model load(const char *name)
{
  struct model m;
  char from[512];
  uint64_t n_header;

  snprintf(from, sizeof from, "%s/%s/weights.safetensors", SLUICE_GOLDEN_DIR, name);
  FILE *file = fopen(from, "rb");
  assert_non_null(file);
  assert_int_equal(fread(&n_header, 8, 1, file), 1);
  char *text = malloc(n_header);
  assert_int_equal(fread(text, 1, n_header, file), n_header);
  m.header = json_loadb(text, n_header, 0, NULL);
  assert_non_null(m.header);
  m.data = malloc(2 << 20);
  m.n = fread(m.data, 1, 2 << 20, file);
  fclose(file);
  free(text);
  return m;
}

static void unload(struct model *m)
{
  json_decref(m->header);
  free(m->data);
}

static void save(const struct model *m, json_t *header)
{
  char *text = json_dumps(header, JSON_COMPACT);

  model_file_write(path, text, m->data, m->n);
  free(text);
}

/* Assert that the model with this header is refused, and that the error names the file and the fault. */
static void assert_refused(const struct model *m, json_t *header, const char *name)
{
  save(m, header);
  if (check_model(path, 0) != ERR_MODEL)
    fail_msg("a model with a wrong %s was not refused", name);
  if (!strstr(err_message(), path) || !strstr(err_message(), name))
    fail_msg("\"%s\" does not name the file and %s", err_message(), name);
}

static void golden_models_are_accepted(void **state)
{
  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    save(&m, m.header);
    assert_ok(check_model(path, 0));
    unload(&m);
  }
}

static void a_model_without_one_of_its_tensors_is_refused(void **state)
{
  const char *name;
  json_t *tensor;
  size_t n = 0;

  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    json_object_foreach(m.header, name, tensor) {
      if (strcmp(name, "__metadata__") == 0)
        continue;
      json_t *header = json_copy(m.header);
      json_object_del(header, name);
      assert_refused(&m, header, name);
      json_decref(header);
      n++;
    }
    unload(&m);
  }
  assert_int_equal(n, 16 + 18 + 17); /* every tensor of the three files is required */
}

/* Give a tensor another shape for the same numbers: transposed if that differs, flat, or with one more dimension. */
static json_t *reshape(json_t *shape, int way)
{
  json_t *other = json_array();
  json_int_t count = 1;
  size_t n = json_array_size(shape);

  for (size_t i = 0; i < n; i++) {
    json_int_t dim = json_integer_value(json_array_get(shape, i));
    count *= dim;
    if (way == 0)
      json_array_insert_new(other, 0, json_integer(dim));
    else if (way == 1)
      json_array_append_new(other, json_integer(dim));
  }
  if (way == 1)
    json_array_append_new(other, json_integer(1));
  if (way == 2)
    json_array_append_new(other, json_integer(count));
  if (way == 3) {
    json_array_append_new(other, json_integer(count + 1));
    json_array_append_new(other, json_integer(1));
  }
  return other;
}

static void a_model_with_a_tensor_of_another_shape_is_refused(void **state)
{
  const char *name;
  json_t *tensor;

  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    json_object_foreach(m.header, name, tensor) {
      json_t *shape = json_object_get(tensor, "shape");
      for (int way = 0; shape && way < 4; way++) {
        json_t *header = json_deep_copy(m.header), *other = reshape(shape, way);
        json_object_set_new(json_object_get(header, name), "shape", other);
        if (!json_equal(shape, other))
          assert_refused(&m, header, name);
        json_decref(header);
      }
    }
    unload(&m);
  }
}

static void a_model_with_a_number_that_is_not_finite_is_refused(void **state)
{
  const char *name;
  json_t *tensor;

  (void)state;
  struct model m = load("edge");
  json_object_foreach(m.header, name, tensor) {
    json_t *offsets = json_object_get(tensor, "data_offsets");
    if (!offsets)
      continue;
    float *last = (float *)(void *)(m.data + json_integer_value(json_array_get(offsets, 1)) - sizeof(float));
    float was = *last;
    *last = NAN;
    assert_refused(&m, m.header, name);
    *last = was;
  }
  unload(&m);
}

static void fill(struct model *m, const char *name, float number)
{
  json_t *offsets = json_object_get(json_object_get(m->header, name), "data_offsets");
  float *first = (float *)(void *)(m->data + json_integer_value(json_array_get(offsets, 0)));
  float *end = (float *)(void *)(m->data + json_integer_value(json_array_get(offsets, 1)));

  assert_true(first < end);
  while (first < end)
    *first++ = number;
}

/* Each number is within limits, but not what the layers make of them. */
static void a_model_whose_components_may_be_infinite_is_refused(void **state)
{
  (void)state;
  struct model m = load("edge");
  fill(&m, "_item_embeddings_fn._item_emb_proj_module.1._w", 1e6f);
  save(&m, m.header);
  assert_ok(check_model(path, 0));
  fill(&m, "_item_embeddings_fn._item_emb_proj_module.2.weight", 1e6f);
  assert_refused(&m, m.header, "the weights of _item_embeddings_fn._item_emb_proj_module are too large");
  unload(&m);
  m = load("books");
  fill(&m, "_query_embeddings_fn._query_emb_proj_module.1._w", 1e6f);
  fill(&m, "_query_embeddings_fn._query_emb_proj_module.2.weight", 1e6f);
  assert_refused(&m, m.header, "the weights of _query_embeddings_fn._query_emb_proj_module are too large");
  unload(&m);
}

/* Required metadata keys, each with texts that are not valid values. */
static const struct {
  const char *key;
  const char *wrong[6];
} metadata[] = {
  { "mol.Pq", { "", "x", "0", "-1", "257", "2.5" } },
  { "mol.Px", { "", "x", "0", "-1", "257", "2.5" } },
  { "mol.dP", { "", "x", "0", "-1", "16385", "1e99" } },
  { "mol.Dq", { "", "x", "0", "-1", "16385", "nan" } },
  { "mol.Dx", { "", "x", "0", "-1", "16385", "inf" } },
  { "mol.temperature", { "", "x", "0", "-0.05", "nan", "1e9" } },
  { "mol.eps", { "", "x", "0", "-1e-6", "nan", "2" } },
  { "mol.query_hidden_dim", { "", "x", "-2", "16385", "1.5", "nan" } },
  { "mol.item_hidden_dim", { "", "x", "-2", "16385", "1.5", "nan" } },
  { "mol.gating_query_hidden_dim", { "", "x", "0", "-1", "16385", "1.5" } },
  { "mol.gating_item_hidden_dim", { "", "x", "0", "-1", "16385", "1.5" } },
  { "mol.gating_qi_hidden_dim", { "", "x", "0", "-1", "16385", "1.5" } },
};

enum { N_METADATA = sizeof metadata / sizeof metadata[0] };

static void refuse_metadata(const struct model *m, const char *key, const char *value, const char *names)
{
  json_t *header = json_deep_copy(m->header), *texts = json_object_get(header, "__metadata__");

  if (value)
    json_object_set_new(texts, key, json_string(value));
  else
    json_object_del(texts, key);
  assert_refused(m, header, names);
  json_decref(header);
}

static void metadata_that_is_absent_or_no_value_is_refused(void **state)
{
  char quoted[64];

  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    for (size_t i = 0; i < N_METADATA; i++) {
      snprintf(quoted, sizeof quoted, "\"%s\"", metadata[i].key);
      if (strcmp(metadata[i].key, "mol.Pq") != 0) /* this key marks the file as a mol model */
        refuse_metadata(&m, metadata[i].key, NULL, quoted);
      for (size_t j = 0; j < 6; j++)
        refuse_metadata(&m, metadata[i].key, metadata[i].wrong[j], quoted);
    }
    unload(&m);
  }
}

static void metadata_that_does_not_agree_with_the_tensors_is_refused_with_a_tensor(void **state)
{
  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    json_t *texts = json_object_get(m.header, "__metadata__");
    for (size_t i = 0; i < N_METADATA; i++) {
      long value = strtol(json_string_value(json_object_get(texts, metadata[i].key)), NULL, 10);
      char text[32];
      if (strcmp(metadata[i].key, "mol.temperature") == 0 || strcmp(metadata[i].key, "mol.eps") == 0)
        continue;
      snprintf(text, sizeof text, "%ld", value > 0 ? value + 1 : 8);
      refuse_metadata(&m, metadata[i].key, text, "tensor \"");
    }
    unload(&m);
  }
}

static void constants_that_the_engine_does_not_have_are_refused(void **state)
{
  static const char *const wrong_lists[] = { "", "x", "[", "7", "{}", "[0]", "[-1]", "[\"7\"]", "[7.5]", "[4294967295]",
                                             "[1e3]", "[1,1,1,1,1]", "[1,1,1,1,1,1,1,1,1]" };

  (void)state;
  struct model m = load("edge");
  refuse_metadata(&m, "mol.gating_combination_type", "none", "\"mol.gating_combination_type\"");
  refuse_metadata(&m, "mol.dot_product_l2_norm", "0", "\"mol.dot_product_l2_norm\"");
  refuse_metadata(&m, "mol.inl", "relu", "\"mol.inl\"");
  refuse_metadata(&m, "mol.inl", NULL, "\"mol.inl\"");
  refuse_metadata(&m, "sluice.similarity", "colbert", "sluice.similarity");
  refuse_metadata(&m, "mol.Pq", NULL, "sluice.similarity"); /* no key says which similarity it is */
  for (size_t i = 0; i < sizeof wrong_lists / sizeof wrong_lists[0]; i++)
    refuse_metadata(&m, "mol.uid_hash", wrong_lists[i], "\"mol.uid_hash\"");
  refuse_metadata(&m, "mol.uid_hash", "[7]", "tensor \"");
  refuse_metadata(&m, "mol.uid_hash", "[7,5,3]", "tensor \"");
  refuse_metadata(&m, "mol.uid_hash", "[7,6]", "_uid_embeddings_1.weight");
  unload(&m);
  m = load("books");
  refuse_metadata(&m, "mol.qnl", "", "\"mol.qnl\"");
  refuse_metadata(&m, "sluice.similarity", "recjpq", "\"centroids\"");
  unload(&m);
}

/* Hyper-parameters that cannot be derived from the tensors must be in the metadata. The error shows the line to add. */
static void absent_hyper_parameters_are_refused_with_the_line_to_add(void **state)
{
  static const struct {
    const char *key, *line;
  } rows[] = {
    { "mol.gating_combination_type", "lacks \"mol.gating_combination_type\": add \"mol.gating_combination_type\"" },
    { "mol.gating_combination_type", ": \"glu_silu\" if the model was trained with that" },
    { "mol.dot_product_l2_norm", "lacks \"mol.dot_product_l2_norm\": add \"mol.dot_product_l2_norm\": \"1\"" },
    { "mol.uid_hash", "lacks \"mol.uid_hash\", but the file has user tables: add \"mol.uid_hash\": \"[7, 5]\"" },
    { "mol.inl", "lacks \"mol.inl\", geglu or swiglu" },
    { "mol.temperature", "lacks \"mol.temperature\": docs/models.md" },
  };

  (void)state;
  struct model m = load("edge");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    refuse_metadata(&m, rows[i].key, NULL, rows[i].line);
  unload(&m);
}

static void accept_metadata(const struct model *m, const char *key, const char *value)
{
  json_t *header = json_deep_copy(m->header), *texts = json_object_get(header, "__metadata__");

  if (value)
    json_object_set_new(texts, key, json_string(value));
  else
    json_object_del(texts, key);
  save(m, header);
  assert_ok(check_model(path, 0));
  json_decref(header);
}

static void what_cannot_change_a_score_may_be_absent(void **state)
{
  (void)state;
  struct model m = load("books");
  accept_metadata(&m, "mol.uid_hash", NULL); /* the model has no user tables */
  accept_metadata(&m, "mol.inl", NULL);      /* the items' projection has no hidden layer */
  accept_metadata(&m, "mol.dot_product_l2_norm", "True");
  accept_metadata(&m, "mol.dot_product_l2_norm", "true");
  unload(&m);
}

static void mistyped_keys_are_refused_with_the_nearest(void **state)
{
  static const struct {
    const char *key, *nearest;
  } rows[] = {
    { "mol.temprature", "the nearest is \"mol.temperature\"" },
    { "mol.pq", "the nearest is \"mol.Pq\"" },
    { "mol.dq", "the nearest is \"mol.Dq\"" },
    { "mol.dot_product_norm", "the nearest is \"mol.dot_product_l2_norm\"" },
    { "mol.", "the nearest is \"mol." },
    { "sluice.similarty", "the nearest is \"sluice.similarity\"" },
    { "sluice.dims", "the nearest is \"sluice.dim\"" },
    { "recjpq.splits", "none below \"recjpq.\"" },
    { "mol.new\nline\"", "mol.new\\x0aline\\x22" },
  };

  (void)state;
  struct model m = load("edge");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    refuse_metadata(&m, rows[i].key, "1", rows[i].nearest);
  accept_metadata(&m, "trainer.mol", "1"); /* keys below other prefixes belong to the user */
  accept_metadata(&m, "molecule", "1");
  accept_metadata(&m, "format", "pt");
  unload(&m);
}

/* A header in which every tensor has another name. */
static json_t *rename_all(const json_t *header, const char *prefix)
{
  json_t *renamed = json_object(), *value;
  const char *name;

  json_object_foreach((json_t *)(uintptr_t)header, name, value) {
    char text[256];
    bool is_tensor = strcmp(name, "__metadata__") != 0;
    snprintf(text, sizeof text, "%s%s", is_tensor ? prefix : "", name);
    json_object_set(renamed, text, value);
  }
  return renamed;
}

static void prefixed_tensors_are_refused_with_the_prefix(void **state)
{
  static const char *const prefixes[] = { "module.", "_orig_mod.", "model.similarity_module.", "module._ndp_module." };
  char hint[256];

  (void)state;
  for (size_t c = 0; c < N_CASES; c++) {
    struct model m = load(cases[c]);
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
      json_t *renamed = rename_all(m.header, prefixes[i]);
      snprintf(hint, sizeof hint, "take the prefix \"%s\" off the names, as docs/models.md does", prefixes[i]);
      assert_refused(&m, renamed, hint);
      json_decref(renamed);
    }
    unload(&m);
  }
}

static void old_names_are_refused_with_the_tensor_that_looks_like_the_missing_one(void **state)
{
  static const char new_name[] = "_item_embeddings_fn._item_emb_proj_module.1.weight";

  (void)state;
  struct model m = load("books");
  json_t *header = json_copy(m.header);
  json_object_set(header, "_item_proj_module.1.weight", json_object_get(header, new_name));
  json_object_del(header, new_name);
  assert_refused(&m, header, new_name);
  assert_refused(&m, header, "\"_item_proj_module.1.weight\", which looks like it");
  json_object_del(header, "_item_proj_module.1.weight");
  json_object_set(header, "_item_embeddings_fn._item_emb_proj_modul.1.weigth", json_object_get(m.header, new_name));
  assert_refused(&m, header, "13 more"); /* three letters are no typing error */
  json_object_del(header, "_item_embeddings_fn._item_emb_proj_modul.1.weigth");
  json_object_set(header, "_item_embeddings_fn._item_emb_proj_module.1.weights", json_object_get(m.header, new_name));
  assert_refused(&m, header, "module.1.weights\", which looks like it");
  json_object_del(header, "_item_embeddings_fn._item_emb_proj_module.1.weights");
  /* The remaining tensors belong to other layers: no name is similar. */
  assert_refused(&m, header, "12 more (docs/models.md has the names)");
  json_decref(header);
  unload(&m);
}

/* Load models with mutated headers. Each is loaded or refused, then closed. */
static void mutated_headers_never_break_the_loader(void **state)
{
  static const char digits[] = "0123456789-.,[]";
  struct dice dice = { seed };

  (void)state;
  struct model m = load("edge");
  char *text = json_dumps(m.header, JSON_COMPACT);
  size_t n = strlen(text), n_refused = 0;
  for (int round = 0; round < 300; round++) {
    char *mutated = strdup(text);
    for (size_t i = 0, n_changes = 1 + dice_below(&dice, 2); i < n_changes; i++) {
      size_t at = dice_below(&dice, n);
      while (mutated[at] < '0' || mutated[at] > '9')
        at = (at + 1) % n;
      mutated[at] = digits[dice_below(&dice, sizeof digits - 1)];
    }
    model_file_write(path, mutated, m.data, m.n);
    err_code_t err = check_model(path, 0);
    assert_true(err == ERR_OK || err == ERR_MODEL);
    n_refused += err == ERR_MODEL;
    free(mutated);
  }
  assert_true(n_refused > 100);
  free(text);
  unload(&m);
}

/* With the largest numbers that items and queries may have, scores are still finite. */
static void the_largest_numbers_give_finite_scores(void **state)
{
  enum { ITEMS = 40, DIM = 64 };
  static const char *const methods[] = { "exact", "average(10)" };
  struct dice dice = { seed };
  float vector[DIM];
  struct engine *e;
  struct searcher *s;
  char text[16];

  (void)state;
  snprintf(path, sizeof path, "%s/books/weights.safetensors", SLUICE_GOLDEN_DIR);
  struct engine_space space = { .name = "books", .model_path = path };
  struct engine_config config = { &space, 1, ITEMS, ITEMS, 4, isa_detect(), ENGINE_CPU, 1, { 0 }, { 0 } };
  assert_ok(engine_open(&config, &e));
  assert_ok(searcher_open(e, &s));
  for (size_t i = 0; i < ITEMS; i++) {
    for (size_t k = 0; k < DIM; k++)
      vector[k] = i % 4 == 0 ? 0.0f : dice_below(&dice, 2) ? 1e9f : i % 4 == 1 ? -1e9f : 1e-30f;
    fixture_put_vector(e, span_of(text, (size_t)sprintf(text, "%zu", i)), "books", vector, DIM);
  }
  for (int round = 0; round < 20; round++) {
    struct query query = { .space = span_of_str("books"), .k = ITEMS, .vector = { vector, DIM } };
    struct answer answer;
    query.method = span_of_str(methods[round % 2]);
    for (size_t k = 0; k < DIM; k++)
      vector[k] = round < 2 ? 0.0f : dice_below(&dice, 2) ? 1e9f : -1e9f;
    fixture_search(e, s, &query, 1, &answer);
    assert_int_equal(answer.n_hits, round % 2 ? 10 : ITEMS);
    for (size_t i = 0; i < answer.n_hits; i++)
      assert_true(isfinite(answer.hits[i].score));
  }
  searcher_close(&s);
  engine_close(&e);
  snprintf(path, sizeof path, "%s/m.safetensors", dir.path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(golden_models_are_accepted),
    cmocka_unit_test(a_model_without_one_of_its_tensors_is_refused),
    cmocka_unit_test(a_model_with_a_tensor_of_another_shape_is_refused),
    cmocka_unit_test(a_model_whose_components_may_be_infinite_is_refused),
    cmocka_unit_test(a_model_with_a_number_that_is_not_finite_is_refused),
    cmocka_unit_test(metadata_that_is_absent_or_no_value_is_refused),
    cmocka_unit_test(metadata_that_does_not_agree_with_the_tensors_is_refused_with_a_tensor),
    cmocka_unit_test(constants_that_the_engine_does_not_have_are_refused),
    cmocka_unit_test(absent_hyper_parameters_are_refused_with_the_line_to_add),
    cmocka_unit_test(what_cannot_change_a_score_may_be_absent),
    cmocka_unit_test(mistyped_keys_are_refused_with_the_nearest),
    cmocka_unit_test(prefixed_tensors_are_refused_with_the_prefix),
    cmocka_unit_test(old_names_are_refused_with_the_tensor_that_looks_like_the_missing_one),
    cmocka_unit_test(mutated_headers_never_break_the_loader),
    cmocka_unit_test(the_largest_numbers_give_finite_scores),
  };

  seed = dice_seed();
  temp_dir_init(&dir);
  snprintf(path, sizeof path, "%s/m.safetensors", dir.path);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  temp_dir_fini(&dir);
  return failed;
}
