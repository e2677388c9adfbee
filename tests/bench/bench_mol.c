/* Time of whole Mixture-of-Logits searches and of the apply path, on fresh random weights and items in the shape of the
 * Books model (8 x 8 components of 32). Milliseconds of processor time a batch, medians; every method is checked
 * against brute force where it says exact. Usage: bench_mol [ITEMS [ROUNDS [ISA [METHOD]]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "tests/support/dice.h"

enum {
  DIM = 64,
  P_Q = 8,
  P_X = 8,
  D = 32,
  L = P_Q * P_X,
  HIDDEN = 128,
  QUERY_HIDDEN = 512,
  BATCH = 32,
  MAX_ROUNDS = 1000
};

static struct dice dice;

static void check(err_code_t code)
{
  if (code != ERR_OK) {
    fprintf(stderr, "%s\n", err_message());
    exit(1);
  }
}

static double now_ms(void)
{
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* The model file -------------------- */

struct tensor {
  const char *name;
  size_t rows, columns; /* columns 0: one dimension */
  float scale;          /* 0: Xavier's */
};

static const struct tensor tensors[] = {
  { "_query_embeddings_fn._query_emb_proj_module.1._w", DIM, 2 * QUERY_HIDDEN, 0 },
  { "_query_embeddings_fn._query_emb_proj_module.1._b", 1, 2 * QUERY_HIDDEN, 0.02f },
  { "_query_embeddings_fn._query_emb_proj_module.2.weight", P_Q *D, QUERY_HIDDEN, 0 },
  { "_query_embeddings_fn._query_emb_proj_module.2.bias", P_Q *D, 0, 0.02f },
  { "_item_embeddings_fn._item_emb_proj_module.1.weight", P_X *D, DIM, 0 },
  { "_item_embeddings_fn._item_emb_proj_module.1.bias", P_X *D, 0, 0.02f },
  { "_gating_fn._query_only_partial_module.0.weight", HIDDEN, DIM, 0 },
  { "_gating_fn._query_only_partial_module.0.bias", HIDDEN, 0, 0.02f },
  { "_gating_fn._query_only_partial_module.2.weight", L, HIDDEN, 0 },
  { "_gating_fn._item_only_partial_module.1.weight", HIDDEN, DIM, 0 },
  { "_gating_fn._item_only_partial_module.1.bias", HIDDEN, 0, 0.02f },
  { "_gating_fn._item_only_partial_module.3.weight", L, HIDDEN, 0 },
  { "_gating_fn._qi_partial_module.1.weight", HIDDEN, L, 0 },
  { "_gating_fn._qi_partial_module.1.bias", HIDDEN, 0, 0.02f },
  { "_gating_fn._qi_partial_module.3.weight", L, HIDDEN, 0 },
  { "_gating_fn._qi_partial_module.3.bias", L, 0, 0.02f },
};

static size_t n_floats(const struct tensor *t)
{
  return t->rows * (t->columns ? t->columns : 1);
}

static void write_model(const char *path)
{
  static char header[8192];
  int n = snprintf(
      header, sizeof header,
      "{\"__metadata__\":{\"sluice.similarity\":\"mol\",\"mol.Pq\":\"%d\",\"mol.Px\":\"%d\",\"mol.dP\":\"%d\","
      "\"mol.Dq\":\"%d\",\"mol.Dx\":\"%d\",\"mol.temperature\":\"0.05\",\"mol.eps\":\"1e-6\","
      "\"mol.qnl\":\"geglu\",\"mol.inl\":\"geglu\",\"mol.query_hidden_dim\":\"%d\","
      "\"mol.item_hidden_dim\":\"-1\",\"mol.gating_query_hidden_dim\":\"%d\","
      "\"mol.gating_item_hidden_dim\":\"%d\",\"mol.gating_qi_hidden_dim\":\"%d\","
      "\"mol.gating_combination_type\":\"glu_silu\",\"mol.dot_product_l2_norm\":\"1\",\"mol.uid_hash\":\"[]\"}",
      P_Q, P_X, D, DIM, DIM, QUERY_HIDDEN, HIDDEN, HIDDEN, HIDDEN);
  size_t at = 0;
  FILE *file = fopen(path, "wb");

  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
    const struct tensor *t = &tensors[i];
    char shape[64];
    snprintf(shape, sizeof shape, t->columns ? "%zu,%zu" : "%zu", t->rows, t->columns);
    n += snprintf(header + n, sizeof header - (size_t)n,
                  ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", t->name, shape, at,
                  at + 4 * n_floats(t));
    at += 4 * n_floats(t);
  }
  header[n++] = '}';
  uint64_t n_header = (uint64_t)n;
  if (!file || fwrite(&n_header, 8, 1, file) != 1 || fwrite(header, (size_t)n, 1, file) != 1)
    exit(1);
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
    const struct tensor *t = &tensors[i];
    float scale = t->scale > 0 ? t->scale : sqrtf(6.0f / (float)(t->rows + t->columns));
    for (size_t k = 0; k < n_floats(t); k++) {
      float x = dice_float(&dice, scale);
      fwrite(&x, sizeof x, 1, file);
    }
  }
  fclose(file);
}

/* Items and queries -------------------- */

static float normal(void)
{
  float sum = 0;

  for (int i = 0; i < 12; i++)
    sum += dice_float(&dice, 0.5f);
  return sum;
}

static void apply_items(struct engine *e, size_t n_items)
{
  enum { CHANGES = 1000 };
  static float vectors[CHANGES][DIM];
  static char keys[CHANGES][16];
  static struct part parts[CHANGES];
  static struct item_change changes[CHANGES];
  double spent = 0;

  for (size_t first = 0; first < n_items; first += CHANGES) {
    size_t n = n_items - first < CHANGES ? n_items - first : CHANGES;
    for (size_t i = 0; i < n; i++) {
      for (size_t k = 0; k < DIM; k++)
        vectors[i][k] = normal();
      parts[i] = (struct part){ .space = span_of_str("space"), .vector = { vectors[i], DIM } };
      changes[i] = (struct item_change){
        .key = span_of(keys[i], (size_t)snprintf(keys[i], sizeof keys[i], "%08zu", first + i)),
        .parts = &parts[i],
        .n_parts = 1,
      };
    }
    double start = now_ms();
    check(engine_apply(e, changes, n, NULL, 0));
    spent += now_ms() - start;
  }
  printf("apply: %.0f items a second, %.2f us an item, both arenas\n", (double)n_items / spent * 1e3,
         spent * 1e3 / (double)n_items);
}

static int rising(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static struct engine *engine;
static struct searcher *searcher;
static float query_vectors[BATCH][DIM];

static double search_once(const char *text, size_t k, size_t n, struct answer *answers)
{
  struct query queries[BATCH];
  const struct query *pointers[BATCH];
  struct method method;
  size_t space;

  for (size_t q = 0; q < n; q++) {
    queries[q] = (struct query){
      .space = span_of_str("space"), .method = span_of_str(text), .k = (uint32_t)k, .vector = { query_vectors[q], DIM }
    };
    pointers[q] = &queries[q];
    check(engine_check_query(engine, &queries[q], &space, &method));
  }
  double start = now_ms();
  check(searcher_search(searcher, space, &method, pointers, n, answers));
  return now_ms() - start;
}

static void time_method(const char *text, size_t k, size_t n, size_t rounds)
{
  static struct answer answers[BATCH];
  double ms[MAX_ROUNDS], scored = 0, candidates = 0;

  search_once(text, k, n, answers);
  for (size_t i = 0; i < rounds; i++)
    ms[i] = search_once(text, k, n, answers);
  qsort(ms, rounds, sizeof ms[0], rising);
  for (size_t q = 0; q < n; q++) {
    scored += (double)answers[q].counts.scored / (double)n;
    candidates += (double)answers[q].counts.candidates / (double)n;
  }
  printf("%-20s k %3zu batch %2zu: %9.2f ms median %9.2f ms best, %8.0f scored %8.0f candidates\n", text, k, n,
         ms[rounds / 2], ms[0], scored, candidates);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  static const struct {
    const char *text;
    size_t k;
  } methods[] = { { "average(100)", 100 },
                  { "average(4000)", 100 },
                  { "per_embedding(100)", 100 },
                  { "combined(100,1000)", 100 },
                  { "two_pass", 10 },
                  { "exact", 10 },
                  { "exact", 100 },
                  { "brute_force", 100 } };
  size_t n_items = argc > 1 ? strtoul(argv[1], NULL, 10) : 200000, rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
  char path[] = "/tmp/bench_mol_XXXXXX";
  struct engine_space space = { "space", path };
  struct engine_config config = { &space, 1, n_items, 1000, BATCH, isa_detect() };

  if (rounds < 1 || rounds > MAX_ROUNDS || (argc > 3 && !isa_find(argv[3], &config.isa))) {
    fprintf(stderr, "usage: bench_mol [ITEMS [ROUNDS, 1 to %d [ISA [METHOD]]]]\n", MAX_ROUNDS);
    return 2;
  }
  dice.state = dice_seed();
  close(mkstemp(path));
  write_model(path);
  check(engine_open(&config, &engine));
  remove(path);
  check(searcher_open(engine, &searcher));
  apply_items(engine, n_items);
  for (size_t i = 0; i < BATCH * DIM; i++)
    query_vectors[i / DIM][i % DIM] = normal();
  for (size_t n = 1; n <= BATCH; n += BATCH - 1) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
      if (argc <= 4 || strcmp(argv[4], methods[i].text) == 0)
        time_method(methods[i].text, methods[i].k, n, rounds);
    }
  }
  searcher_close(&searcher);
  engine_close(&engine);
  return 0;
}
