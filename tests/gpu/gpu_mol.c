/* SPDX-License-Identifier: Apache-2.0 */
/* Mixture-of-Logits on the device compared with the processor: every method, on awkward catalogues, while items come
 * and go. Exact methods must give the same bytes. So must approximate methods if nothing ties with the last candidate;
 * otherwise they must never be worse. Every receipt must hold.
 */
#include "tests/gpu/twins.h"
#include "tests/support/mol_file.h"
#include "tests/support/temp_dir.h"

enum {
  ITEMS = 200,
  MORE = 4500, /* enough items for exact to use seeds */
#ifdef SLUICE_CUDA_MODEL
  MANY = 17000,
#else
  MANY = 60000,
#endif
  COMPONENTS_MAX = 8 * 64,
  LOGITS_MAX = 64,
  VECTOR_DIM = 5,
  EXCLUDED_MAX = 5,
  K_MAX = 1000
};

/* How items are drawn. */
enum draw { DRAW_RANDOM, DRAW_CLUSTER, DRAW_FEW, DRAW_ZEROS, N_DRAWS };

static const struct mol_file shapes[] = {
  { 8, 8, 32, 128, VECTOR_DIM, 0, 0.3f }, /* books */
  { 2, 3, 5, 7, VECTOR_DIM, 3, 2.0f },    { 1, 1, 1, 1, VECTOR_DIM, 0, 1.0f },
  { 8, 4, 64, 128, VECTOR_DIM, 7, 0.3f }, /* ml */
  { 3, 5, 33, 17, VECTOR_DIM, 0, 1.0f },
};

/* The first shape with the weights of a freshly initialised model, for which bounds are useful. */
static const struct mol_file fresh = { 8, 8, 32, 128, VECTOR_DIM, 0, 0.17f };

#ifdef SLUICE_CUDA_MODEL
/* Shapes with bounds on cards with less shared memory. */
static const struct mol_file small[] = {
  { 8, 4, 32, 128, VECTOR_DIM, 0, 0.3f },
  { 8, 8, 16, 128, VECTOR_DIM, 0, 0.3f },
};
#endif

struct world {
  struct twins t;
  const struct mol_file *shape;
  enum draw draw;
  size_t n_items; /* keys are drawn below this */
  struct temp_dir dir;
  float base[COMPONENTS_MAX];
};

struct made_item {
  struct part part;
  float components[COMPONENTS_MAX], gate[LOGITS_MAX], vector[VECTOR_DIM];
  char key[16];
};

static struct span key_of(size_t i, char *text)
{
  return span_of(text, (size_t)sprintf(text, "%06zu", i * 7919 % 99991));
}

static void draw_floats(struct world *w, enum draw draw, float *out, size_t n)
{
  struct dice few = { dice_below(&w->t.dice, 5) };

  switch (draw) {
  case DRAW_CLUSTER:
    dice_fill(&w->t.dice, out, n, 1e-2f);
    for (size_t k = 0; k < n; k++)
      out[k] += w->base[k % (w->shape->n_item * w->shape->dim)];
    return;
  case DRAW_FEW:
    dice_fill(&few, out, n, 1.0f);
    return;
  case DRAW_ZEROS:
    dice_fill(&w->t.dice, out, n, dice_below(&w->t.dice, 2) ? 0.0f : 1.0f);
    return;
  default:
    dice_fill(&w->t.dice, out, n, 1.0f);
  }
}

/* Draw an item: ready-made components and gate, or a vector for the model's networks. */
static void make_item(struct world *w, struct made_item *item)
{
  size_t n_components = w->shape->n_item * w->shape->dim, n_logits = w->shape->n_query * w->shape->n_item;

  item->part = (struct part){ .space = span_of_str("mol") };
  draw_floats(w, w->draw, item->components, n_components);
  draw_floats(w, w->draw == DRAW_FEW ? DRAW_FEW : DRAW_RANDOM, item->gate, n_logits);
  for (size_t p = 0; p < n_logits && dice_below(&w->t.dice, 50) == 0; p++)
    item->gate[p] *= 1e6f; /* exceeds half's range */
  draw_floats(w, w->draw, item->vector, VECTOR_DIM);
  if (dice_below(&w->t.dice, 4)) {
    item->part.components = (struct floats){ item->components, n_components };
    item->part.item_gate = (struct floats){ item->gate, n_logits };
  } else {
    item->part.vector = (struct floats){ item->vector, VECTOR_DIM };
  }
}

/* Apply a batch of n changes: puts and deletes of random keys, or if is_all puts of all keys in order. */
static void churn(struct world *w, size_t n, bool is_all)
{
  struct item_change *changes = calloc(n, sizeof *changes);
  struct made_item *items = calloc(n, sizeof *items);

  for (size_t i = 0; i < n; i++) {
    struct span key = key_of(is_all ? i : dice_below(&w->t.dice, w->n_items), items[i].key);
    make_item(w, &items[i]);
    changes[i] = (struct item_change){ .key = key, .parts = &items[i].part, .n_parts = 1 };
    if (!is_all && dice_below(&w->t.dice, 3) == 0)
      changes[i] = (struct item_change){ .key = key, .is_delete = true };
  }
  twins_apply(&w->t, changes, n);
  free(changes);
  free(items);
}

/* Do many dot products tie? */
static bool has_ties(const struct world *w)
{
  return w->draw == DRAW_FEW || w->draw == DRAW_ZEROS || w->shape->dim == 1;
}

struct made_query {
  float components[COMPONENTS_MAX], gate[LOGITS_MAX], vector[VECTOR_DIM];
  struct span excluded[EXCLUDED_MAX];
  char keys[EXCLUDED_MAX][16];
};

static struct made_query made[TWINS_BATCH_MAX];
static struct query queries[TWINS_BATCH_MAX];

static void make_queries(struct world *w, size_t n, size_t max_k)
{
  size_t n_components = w->shape->n_query * w->shape->dim, n_logits = w->shape->n_query * w->shape->n_item;

  for (size_t q = 0; q < n; q++) {
    queries[q] = (struct query){ .space = span_of_str("mol"),
                                 .k = (uint32_t)(1 + dice_below(&w->t.dice, max_k)),
                                 .has_user_id = !has_ties(w) || dice_below(&w->t.dice, 2),
                                 .user_id = (int64_t)dice_below(&w->t.dice, 100) - 50,
                                 .exclude = made[q].excluded,
                                 .n_exclude = dice_below(&w->t.dice, EXCLUDED_MAX) };
    draw_floats(w, DRAW_RANDOM, made[q].vector, VECTOR_DIM);
    draw_floats(w, has_ties(w) && dice_below(&w->t.dice, 6) == 0 ? DRAW_ZEROS : DRAW_RANDOM, made[q].components,
                n_components);
    draw_floats(w, DRAW_RANDOM, made[q].gate, n_logits);
    if (dice_below(&w->t.dice, 3)) {
      queries[q].components = (struct floats){ made[q].components, n_components };
      queries[q].query_gate = (struct floats){ made[q].gate, n_logits };
    } else {
      queries[q].vector = (struct floats){ made[q].vector, VECTOR_DIM };
    }
    for (size_t e = 0; e < queries[q].n_exclude; e++)
      made[q].excluded[e] = key_of(dice_below(&w->t.dice, w->n_items), made[q].keys[e]);
  }
}

static void search(struct world *w, size_t n, const char *method)
{
  for (size_t q = 0; q < n; q++)
    queries[q].method = span_of_str(method);
  twins_search(&w->t, queries, n);
}

/* Check the receipts of the device's answers against a full ranking by the processor. */
static void check_receipts(struct world *w, size_t n)
{
  static struct hit hits[TWINS_BATCH_MAX][K_MAX];
  struct answer answers[TWINS_BATCH_MAX];
  uint32_t ks[TWINS_BATCH_MAX];

  for (size_t q = 0; q < n; q++) {
    answers[q] = w->t.cuda_answers[q];
    memcpy(hits[q], answers[q].hits, answers[q].n_hits * sizeof(struct hit));
    ks[q] = queries[q].k;
    queries[q].k = K_MAX;
  }
  struct answer *full = w->t.cpu_answers;
  const struct query *pointers[TWINS_BATCH_MAX] = { NULL };
  struct method method = { .name = "brute_force" };
  for (size_t q = 0; q < n; q++)
    pointers[q] = &queries[q];
  CHECK_OK(searcher_search(w->t.on_cpu, 0, &method, pointers, n, full));
  for (size_t q = 0; q < n; q++) {
    const struct receipt *receipt = &answers[q].receipt;
    size_t at = 0;
    CHECK(full[q].n_hits < K_MAX, "the ranking is cut off");
    CHECK(receipt->has_bound || answers[q].n_hits == full[q].n_hits, "query %zu has no bound", q);
    for (size_t i = 0; i < full[q].n_hits; i++) {
      if (at < answers[q].n_hits && memcmp(&hits[q][at].score, &full[q].hits[i].score, 4) == 0 &&
          span_equal(hits[q][at].key, full[q].hits[i].key)) {
        at++;
        continue;
      }
      CHECK(!receipt->has_bound || full[q].hits[i].score <= receipt->bound, "query %zu: %.9g is above the bound %.9g",
            q, (double)full[q].hits[i].score, (double)receipt->bound);
      CHECK(!receipt->is_exact || at == ks[q], "query %zu is not exact: hit %zu is missing", q, i);
    }
    CHECK(at == answers[q].n_hits, "query %zu: hit %zu is not in the ranking", q, at);
    queries[q].k = ks[q];
  }
}

/* Check that the device is never worse than the processor. The device takes all candidates that tie, the processor only
 * the first by key. */
static void check_not_worse(const struct world *w, size_t n)
{
  for (size_t q = 0; q < n; q++) {
    const struct answer *a = &w->t.cpu_answers[q], *b = &w->t.cuda_answers[q];
    CHECK(b->n_hits >= a->n_hits, "query %zu: %zu hits on the processor, %zu on the GPU", q, a->n_hits, b->n_hits);
    for (size_t i = 0; i < a->n_hits; i++)
      CHECK(b->hits[i].score >= a->hits[i].score, "query %zu: hit %zu is worse on the GPU", q, i);
    CHECK(b->counts.candidates >= a->counts.candidates, "query %zu: %zu candidates on the processor, %zu on the GPU", q,
          (size_t)a->counts.candidates, (size_t)b->counts.candidates);
  }
}

static void check_approximate(struct world *w, size_t n, const char *method)
{
  search(w, n, method);
  if (has_ties(w))
    check_not_worse(w, n);
  else
    twins_check_same(&w->t, n);
  check_receipts(w, n);
}

static void check_all(struct world *w, size_t n, size_t max_k)
{
  static const char *const exact[] = { "exact", "brute_force", "two_pass", "" };
  size_t most = dice_below(&w->t.dice, 3) ? 20 : w->n_items + 20;
  char method[64];

  make_queries(w, n, max_k);
  for (size_t m = 0; m < sizeof exact / sizeof exact[0]; m++) {
    search(w, n, exact[m]);
    twins_check_same(&w->t, n);
  }
  check_receipts(w, n);
  sprintf(method, "average(%zu)", 1 + dice_below(&w->t.dice, 5 * most));
  check_approximate(w, n, method);
  sprintf(method, "per_embedding(%zu)", 1 + dice_below(&w->t.dice, most));
  check_approximate(w, n, method);
  sprintf(method, "combined(%zu,%zu)", 1 + dice_below(&w->t.dice, most), 1 + dice_below(&w->t.dice, 5 * most));
  check_approximate(w, n, method);
}

static struct world *world_open(const struct mol_file *shape, enum draw draw, size_t n_items, uint64_t seed)
{
  static struct world w;
  char path[sizeof w.dir.path + 32];

  w.t.dice.state = seed;
  w.shape = shape;
  w.draw = draw;
  w.n_items = n_items;
  dice_fill(&w.t.dice, w.base, COMPONENTS_MAX, 1.0f);
  temp_dir_init(&w.dir);
  sprintf(path, "%s/mol.safetensors", w.dir.path);
  mol_file_write(path, shape, &w.t.dice);
  twins_open(&w.t, "mol", path, 0, n_items, K_MAX);
  return &w;
}

static void world_close(struct world *w)
{
  twins_close(&w->t);
  temp_dir_fini(&w->dir);
}

static void check_shape(const struct mol_file *shape, enum draw draw, uint64_t seed)
{
  struct world *w = world_open(shape, draw, ITEMS, seed);

  check_all(w, 2, 5); /* an empty catalogue */
  for (int round = 0; round < 2; round++) {
    churn(w, round == 0 ? ITEMS : 3, false);
    check_all(w, 1 + dice_below(&w->t.dice, round == 0 ? 12 : 3), round == 1 ? K_MAX : 20);
  }
  world_close(w);
}

/* Did lists overflow on the device, which makes an approximate search exact? */
static bool has_more_candidates(const struct world *w, size_t n)
{
  bool has = false;

  for (size_t q = 0; q < n; q++) {
    bool is_more = w->t.cuda_answers[q].counts.candidates > w->t.cpu_answers[q].counts.candidates;
    CHECK(!is_more || w->t.cuda_answers[q].receipt.is_exact, "query %zu: more candidates, but not exact", q);
    has = has || is_more;
  }
  return has;
}

/* Search a catalogue that is large enough for seeds and for floors that exclude most items. In a cluster all items may
 * have the same half-precision copies. Then the lists overflow, and the answer is exact. */
static void check_more(const struct mol_file *shape, enum draw draw, uint64_t seed)
{
  static const char *const methods[] = { "exact", "two_pass", "average(20)", "average(300)", "combined(3,100)" };
  size_t n_methods = shape == &fresh ? 2 : sizeof methods / sizeof methods[0];
  struct world *w = world_open(shape, draw, MORE, seed);

  churn(w, MORE, true);
  make_queries(w, 3, shape == &fresh ? 20 : 100);
  for (size_t m = 0; m < n_methods; m++) {
    search(w, 3, methods[m]);
    if (m < 2 || draw == DRAW_RANDOM || (!has_ties(w) && !has_more_candidates(w, 3)))
      twins_check_same(&w->t, 3);
    else
      check_not_worse(w, 3);
    for (size_t q = 0; q < 3 && m == 0 && draw == DRAW_RANDOM; q++)
      CHECK(w->t.cuda_answers[q].counts.scored < MORE / 2, "query %zu: floors exclude too few items", q);
  }
  world_close(w);
}

/* More items with the same score and average than lists can keep: the query is searched again range by range, and the
 * answer is exact. MANY items overflow every list, MORE of them only the candidates. */
static void check_many_ties(size_t n_items, uint64_t seed)
{
  static const char *const methods[] = { "exact", "average(30)", "per_embedding(30)", "combined(1,1)" };
  struct world *w = world_open(&shapes[2], DRAW_FEW, n_items, seed);

  churn(w, n_items, true);
  make_queries(w, 2, K_MAX);
  for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
    search(w, 2, methods[m]);
    if (m == 0)
      twins_check_same(&w->t, 2);
    else
      check_not_worse(w, 2);
    for (size_t q = 0; q < 2; q++)
      CHECK(w->t.cuda_answers[q].receipt.is_exact, "query %zu: lists overflowed, but the search was not exact", q);
  }
  world_close(w);
}

int main(void)
{
  uint64_t seed = dice_seed();

  check_begin("gpu_mol");
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    for (size_t i = 0; i < check_size(N_DRAWS, 1); i++)
      check_shape(&shapes[s], (enum draw)((seed + s + i) % N_DRAWS), seed + s * N_DRAWS + i);
  }
  check_more(&shapes[1], DRAW_RANDOM, seed + 100);
  if (check_size(true, seed % 3 == 0))
    check_more(&fresh, DRAW_RANDOM, seed + 104);
  if (check_size(true, seed % 3 == 1))
    check_more(&shapes[1], DRAW_CLUSTER, seed + 101);
  if (check_size(true, seed % 3 == 2))
    check_more(&shapes[4], DRAW_FEW, seed + 102);
  check_many_ties(MANY, seed + 103);
  check_many_ties(MORE, seed + 105);
#ifdef SLUICE_CUDA_MODEL
  for (size_t kib = 99; kib < 200; kib += 64) { /* cards with less shared memory */
    cuda_model_set_shared(kib * 1024);
    check_shape(&shapes[0], DRAW_RANDOM, seed + 200);
    check_shape(&shapes[3], DRAW_CLUSTER, seed + 201);
    for (size_t s = 0; s < sizeof small / sizeof small[0]; s++)
      check_shape(&small[s], DRAW_RANDOM, seed + 202 + s);
  }
#endif
  return check_end("gpu_mol");
}
