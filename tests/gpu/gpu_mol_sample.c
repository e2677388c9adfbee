/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of component pairs in catalogues that are large enough for floors from a sample: the lists have all of
 * the best items, or it is said that they may not. */
#define PAIRS_ITEMS_MAX 200000
#include "kernels/cuda/mol_pair_lists.h"
#include "tests/gpu/pairs_fixture.h"

enum { N_BEST = 400, SAMPLED = 2 /* every second tile, in a catalogue of this size */ };

static const struct mol_shape one_pair = { 1, 1, 8, 1, 1.0f };

struct found_items {
  uint32_t n, has_overflowed, *slots; /* [ITEMS_MAX] */
  float nth_best;
};

/* Find the N_BEST best items of the fixture's only list. */
static void find(struct found_items *out)
{
  static const struct method method;
  struct mol_pairs_found found;
  struct device_stream *stream = t.worker->stream;
  struct search_batch batch = { .worker = t.worker,
                                .method = &method,
                                .n = 1,
                                .results = t.results,
                                .n_slots = t.n_slots,
                                .n_items = t.n_items,
                                .scratch = &t.region };
  struct funnel f = { .columns = &t.columns, .batch = &batch };
  struct funnel_group group = { .first = 0, .n = 1 };
  uint32_t *counts = on_host(2, sizeof *counts);
  float *nth_best = on_host(1, sizeof *nth_best);

  CHECK_OK(funnel_lists(t.worker, 1, t.n_slots, &found.candidates));
  CHECK_OK(device_worker_array(t.worker, 1, sizeof *found.nth_best, &found.nth_best));
  CHECK_OK(device_worker_array(t.worker, 1, sizeof *found.has_overflowed, &found.has_overflowed));
  CHECK_OK(funnel_upload_ranks(&f, &group));
  CHECK_OK(funnel_upload_excluded(&f, &group, &t.source.excluded));
  CHECK_OK(device_worker_send(t.worker));
  CHECK_OK(mol_pairs_cuda_candidates(&f, &group, &t.source, N_BEST, &found));
  CHECK_OK(device_copy_out(stream, &counts[0], found.candidates.n, sizeof *counts));
  CHECK_OK(device_copy_out(stream, &counts[1], found.has_overflowed, sizeof *counts));
  CHECK_OK(device_copy_out(stream, nth_best, found.nth_best, sizeof *nth_best));
  CHECK_OK(device_wait(stream));
  out->n = counts[0];
  out->has_overflowed = counts[1];
  out->nth_best = *nth_best;
  if (out->n <= t.n_slots)
    CHECK_OK(device_copy_out(stream, out->slots, found.candidates.slots, out->n * sizeof *out->slots));
  CHECK_OK(device_wait(stream));
  device_free_host(&counts);
  device_free_host(&nth_best);
}

static void open_catalogue(size_t n_slots)
{
  open_fixture(&one_pair, n_slots, 1, DRAW_UNIFORM, 1);
  t.results[0].admit.n_excluded = 0;
  t.results[0].topk.k = 1;
}

/* Give a slot the dot product `size` with the query, or close to it. */
static void make_item(size_t slot, float size)
{
  size_t dim = shape()->component_dim;

  for (size_t k = 0; k < dim; k++)
    t.rows[slot * t.row_floats + k] = size * t.queries[k];
  derive(slot);
}

static void free_catalogue(void)
{
  close_fixture();
  region_reset(&t.region);
}

/* Random items: the list has the N_BEST best, as those of a smaller catalogue do. */
static void check_random(struct found_items *answer)
{
  static float dots[ITEMS_MAX];

  open_catalogue(ITEMS_MAX - dice_below(&t.dice, 1000));
  upload();
  find(answer);
  memcpy(dots, t.dots, t.n_slots * sizeof *dots);
  qsort(dots, t.n_slots, sizeof *dots, falling);
  size_t n_due = N_BEST;
  while (n_due < t.n_slots && dots[n_due] == dots[N_BEST - 1])
    n_due++; /* ties */
  CHECK(!answer->has_overflowed && answer->n == n_due && answer->nth_best == dots[N_BEST - 1],
        "%u candidates down to %.9g, not %zu down to %.9g; overflow %u", answer->n, (double)answer->nth_best, n_due,
        (double)dots[N_BEST - 1], answer->has_overflowed);
  for (size_t i = 0; i < answer->n && i < t.n_slots; i++)
    CHECK(dot_at(0, 0, answer->slots[i]) >= dots[N_BEST - 1], "slot %u is no candidate", answer->slots[i]);
  free_catalogue();
}

/* Most of the best items are where the sample looks: so many that the floor, of a rank below N_BEST, is one of theirs,
 * but too few for the list. This must be said. */
static void check_misled(struct found_items *answer)
{
  enum { N_LARGE = 340 };
  uint32_t rank = mol_pair_sampled_rank(N_BEST, SAMPLED);

  CHECK(rank > N_BEST / SAMPLED && rank < N_LARGE, "rank %u", rank);
  open_catalogue(ITEMS_MAX);
  for (size_t slot = 0; slot < t.n_slots; slot++)
    make_item(slot, 0.25f + dice_float(&t.dice, 0.25f));
  for (size_t i = 0; i < N_LARGE; i++) /* one in each sampled tile: no two in a set of tiles */
    make_item((i * SAMPLED) * 64 + dice_below(&t.dice, 64), 0.9f);
  upload();
  find(answer);
  CHECK(answer->has_overflowed == 1, "a list without its last items is not reported: %u candidates", answer->n);
  free_catalogue();
}

/* The probability of n or more where `mean` are expected (Poisson). */
static double tail_of(double mean, uint32_t n)
{
  double term = exp((double)n * log(mean) - mean - lgamma((double)n + 1)), sum = 0;

  for (uint32_t i = n; term > 1e-12 * sum; i++) {
    sum += term;
    term *= mean / (double)(i + 1);
  }
  return sum;
}

static void check_ranks(void)
{
  for (size_t i = 0; i < 1000; i++) {
    uint32_t rank = 1 + (uint32_t)dice_below(&t.dice, 1 << dice_below(&t.dice, 17)), sampled;
    size_t stride = 1 + dice_below(&t.dice, 40);
    sampled = mol_pair_sampled_rank(rank, stride);
    CHECK(sampled >= 1 && sampled <= rank, "rank %u, stride %zu: %u", rank, stride, sampled);
    CHECK(sampled == rank || tail_of((double)rank / (double)stride, sampled) < 1e-6,
          "rank %u, stride %zu: %u are found with a probability of %g", rank, stride, sampled,
          tail_of((double)rank / (double)stride, sampled));
    CHECK(mol_pair_sampled_rank(rank, 1) == rank, "rank %u without a sample", rank);
  }
}

int main(void)
{
  struct found_items answer;

  check_begin("gpu_mol_sample");
  t.dice.state = dice_seed();
  CHECK_OK(device_worker_open(ITEMS_MAX, &t.worker));
  answer.slots = on_host(ITEMS_MAX, sizeof *answer.slots);
  check_ranks();
  check_random(&answer);
  check_misled(&answer);
  device_free_host(&answer.slots);
  device_worker_close(&t.worker);
  region_fini(&t.region);
  return check_end("gpu_mol_sample");
}
