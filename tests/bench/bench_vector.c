/* Exact search of a bilinear space against a plain matrix product over the same number of rows by the BLAS: processor
 * time of one thread, the ratio, and how many items were scored in full; and items a second of the path that rotates
 * and stores them. Usage: OPENBLAS_NUM_THREADS=1 bench_vector [ITEMS [DIM [ROUNDS [K]]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "tests/support/dice.h"
#include "tests/support/vector_file.h"

void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
            const int *, const float *, const int *, const float *, float *, const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *, const float *,
            const int *, const float *, float *, const int *);

enum { APPLY_ITEMS = 1000, MAX_BATCH = 32, MAX_ROUNDS = 101, TURNS = 24 };

struct bench {
  struct dice dice;
  size_t n_items, dim, rounds, k;
  struct engine *engine;
  struct searcher *searcher;
  float *rows;   /* [n_items][dim]: what the BLAS reads */
  float *scores; /* [MAX_BATCH][n_items] */
  float *queries;
};

static void check(err_code_t code)
{
  if (code != ERR_OK) {
    fprintf(stderr, "%s\n", err_message());
    exit(1);
  }
}

/* Processor time of this thread. */
static int64_t now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The shape of a spectrum and of the vectors. */
struct subject {
  const char *name;
  bool is_slow;        /* the singular values fall evenly to the last, not by four decades in the first 300 */
  bool is_anisotropic; /* the variance of number i is 1 / i */
};

static float sigma_of(const struct subject *s, size_t k, size_t n)
{
  double decades = log10(5.467 / 0.0004), at = s->is_slow ? (double)k / (double)(n - 1) : fmin((double)k / 300.0, 1.0);

  return (float)(5.467 * pow(10.0, -decades * at));
}

/* Nearly normal: the sum of four uniform numbers. */
static float normal(struct dice *d)
{
  return (dice_float(d, 1) + dice_float(d, 1) + dice_float(d, 1) + dice_float(d, 1)) * 0.866f;
}

static void draw_vector(struct bench *b, const struct subject *s, float *v)
{
  for (size_t k = 0; k < b->dim; k++)
    v[k] = normal(&b->dice) / (s->is_anisotropic ? sqrtf((float)k + 1) : 1.0f);
}

/* Reflect the columns (or the rows) of a matrix in a random direction: an orthogonal turn. */
static void reflect(struct bench *b, float *w, bool is_rows)
{
  size_t n = b->dim, along = is_rows ? 1 : n, across = is_rows ? n : 1;
  float *h = calloc(n, sizeof *h);
  double norm2 = 0;

  for (size_t i = 0; i < n; i++) {
    h[i] = normal(&b->dice);
    norm2 += (double)h[i] * (double)h[i];
  }
  for (size_t j = 0; j < n; j++) {
    double dot = 0;
    for (size_t i = 0; i < n; i++)
      dot += (double)h[i] * (double)w[i * along + j * across];
    for (size_t i = 0; i < n; i++)
      w[i * along + j * across] -= (float)(2 * dot / norm2 * (double)h[i]);
  }
  free(h);
}

static void write_model(struct bench *b, const struct subject *s, const char *path)
{
  float *w = calloc(b->dim * b->dim, sizeof *w);

  for (size_t k = 0; k < b->dim; k++)
    w[k * b->dim + k] = sigma_of(s, k, b->dim);
  for (int i = 0; i < TURNS; i++) {
    reflect(b, w, true);
    reflect(b, w, false);
  }
  vector_file_write_matrix(path, w, b->dim, b->dim);
  free(w);
}

static void open_engine(struct bench *b, const struct subject *s)
{
  char path[] = "/tmp/sluice-bench-XXXXXX";
  struct engine_space space = { .name = "v", .model_path = path };
  struct engine_config config = { &space, 1, b->n_items, b->k, MAX_BATCH, isa_detect() };

  close(mkstemp(path));
  write_model(b, s, path);
  int64_t start = now_ns();
  check(engine_open(&config, &b->engine));
  printf("%s: model loaded in %.2f s; ", s->name, (double)(now_ns() - start) * 1e-9);
  unlink(path);
  check(searcher_open(b->engine, &b->searcher));
}

static void put_items(struct bench *b, const struct subject *s)
{
  static struct part parts[APPLY_ITEMS];
  static struct item_change changes[APPLY_ITEMS];
  static char keys[APPLY_ITEMS][16];
  int64_t ns = 0;

  for (size_t first = 0; first < b->n_items; first += APPLY_ITEMS) {
    size_t n = b->n_items - first < APPLY_ITEMS ? b->n_items - first : APPLY_ITEMS;
    for (size_t i = 0; i < n; i++) {
      float *v = b->rows + (first + i) * b->dim;
      draw_vector(b, s, v);
      parts[i] = (struct part){ .space = span_of_str("v"), .vector = { v, b->dim } };
      struct span key = span_of(keys[i], (size_t)sprintf(keys[i], "%09zu", first + i));
      changes[i] = (struct item_change){ .key = key, .parts = &parts[i], .n_parts = 1 };
    }
    int64_t start = now_ns();
    check(engine_apply(b->engine, changes, n, NULL, 0));
    ns += now_ns() - start;
  }
  printf("%.0f items/s into both arenas\n", (double)b->n_items / ((double)ns * 1e-9));
}

static double blas_ms(struct bench *b, size_t n_queries)
{
  int dim = (int)b->dim, n = (int)b->n_items, batch = (int)n_queries, step = 1;
  float one = 1, zero = 0;
  int64_t start = now_ns();

  if (n_queries == 1)
    sgemv_("T", &dim, &n, &one, b->rows, &dim, b->queries, &step, &zero, b->scores, &step);
  else
    sgemm_("T", "N", &n, &batch, &dim, &one, b->rows, &dim, b->queries, &dim, &zero, b->scores, &n);
  return (double)(now_ns() - start) * 1e-6;
}

static double search_ms(struct bench *b, const char *method, size_t n_queries, double *scored, double *is_exact)
{
  struct query queries[MAX_BATCH];
  const struct query *pointers[MAX_BATCH];
  struct answer answers[MAX_BATCH];
  struct method parsed;
  size_t space;

  for (size_t i = 0; i < n_queries; i++) {
    queries[i] = (struct query){ .space = span_of_str("v"),
                                 .method = span_of_str(method),
                                 .k = (uint32_t)b->k,
                                 .vector = { b->queries + i * b->dim, b->dim } };
    pointers[i] = &queries[i];
    check(engine_check_query(b->engine, &queries[i], &space, &parsed));
  }
  int64_t start = now_ns();
  check(searcher_search(b->searcher, space, &parsed, pointers, n_queries, answers));
  double ms = (double)(now_ns() - start) * 1e-6;
  *scored = *is_exact = 0;
  for (size_t i = 0; i < n_queries; i++) {
    *scored += (double)answers[i].counts.candidates / (double)n_queries;
    *is_exact += (double)answers[i].receipt.is_exact / (double)n_queries;
  }
  return ms;
}

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
  qsort(values, n, sizeof values[0], compare_doubles);
  return values[n / 2];
}

static void report(struct bench *b, const struct subject *s, const char *method, size_t n_queries)
{
  double ms[MAX_ROUNDS], blas[MAX_ROUNDS], ratio[MAX_ROUNDS], scored[MAX_ROUNDS], exact = 0, is_exact;

  for (size_t i = 0; i < b->rounds; i++) {
    for (size_t q = 0; q < n_queries; q++)
      draw_vector(b, s, b->queries + q * b->dim);
    ms[i] = search_ms(b, method, n_queries, &scored[i], &is_exact);
    blas[i] = blas_ms(b, n_queries);
    ratio[i] = blas[i] / ms[i];
    exact += is_exact / (double)b->rounds;
  }
  printf("  %-13s batch %2zu  %9.2f ms   BLAS %9.2f ms   %5.1f x   %8.0f of %zu scored a query, %3.0f %% exact\n",
         method, n_queries, median(ms, b->rounds), median(blas, b->rounds), median(ratio, b->rounds),
         median(scored, b->rounds), b->n_items, 100 * exact);
  fflush(stdout);
}

static size_t argument(int argc, char **argv, int i, size_t otherwise)
{
  return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
  static const struct subject subjects[] = {
    { "fast spectrum, isotropic", false, false },
    { "fast spectrum, anisotropic", false, true },
    { "slow spectrum, isotropic", true, false },
    { "slow spectrum, anisotropic", true, true },
  };
  struct bench b = { .n_items = argument(argc, argv, 1, 200000),
                     .dim = argument(argc, argv, 2, 768),
                     .rounds = argument(argc, argv, 3, 7),
                     .k = argument(argc, argv, 4, 100) };

  if (b.rounds < 1 || b.rounds > MAX_ROUNDS || b.n_items < 1 || b.dim < 2 || b.k < 1)
    return 2;
  b.dice.state = dice_seed();
  check(mem_reserve(b.n_items, b.dim * sizeof(float), &b.rows));
  check(mem_array(b.n_items * MAX_BATCH, sizeof(float), &b.scores));
  check(mem_array(MAX_BATCH * b.dim, sizeof(float), &b.queries));
  for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
    open_engine(&b, &subjects[i]);
    put_items(&b, &subjects[i]);
    report(&b, &subjects[i], "exact", 1);
    report(&b, &subjects[i], "exact", 32);
    report(&b, &subjects[i], "low_rank(64)", 1);
    report(&b, &subjects[i], "brute_force", 1);
    searcher_close(&b.searcher);
    engine_close(&b.engine);
  }
  return 0;
}
