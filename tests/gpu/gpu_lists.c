/* SPDX-License-Identifier: Apache-2.0 */
/* Device lists: thresholds, the entries that reach them, and candidates, compared with sorting on the host. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/candidates.h"
#include "kernels/cuda/lists.h"
#include "tests/gpu/check.h"
#include "tests/support/dice.h"

enum { LISTS_MAX = 40, CAPACITY_MAX = 6000, LONG_MAX = 50000 };

static struct dice dice;
static struct device_stream *stream;

/* Lists on the host. */
struct lists {
  size_t n_lists, capacity;
  uint32_t n[LISTS_MAX];
  uint32_t slots[LISTS_MAX * CAPACITY_MAX];
  float scores[LISTS_MAX * CAPACITY_MAX];
};

static void *to_device(const void *from, size_t bytes)
{
  void *pinned, *device;

  CHECK_OK(device_alloc_host(bytes, 1, &pinned));
  memcpy(pinned, from, bytes);
  CHECK_OK(device_alloc(bytes, 1, &device));
  CHECK_OK(device_copy_in(stream, device, pinned, bytes));
  CHECK_OK(device_wait(stream));
  device_free_host(&pinned);
  return device;
}

static void from_device(void *to, const void *from, size_t bytes)
{
  void *pinned;

  CHECK_OK(device_alloc_host(bytes, 1, &pinned));
  CHECK_OK(device_copy_out(stream, pinned, from, bytes));
  CHECK_OK(device_wait(stream));
  memcpy(to, pinned, bytes);
  device_free_host(&pinned);
}

/* Kind 0 draws from few values, so they tie. Kind 1 adds infinities and zeros of both signs, kind 2 adds NaN. */
static float draw_score(size_t kind)
{
  static const float odd[] = { INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f };

  if (kind == 0)
    return (float)dice_below(&dice, 5) - 2.0f;
  if (dice_below(&dice, 50) == 0)
    return kind == 1 ? odd[dice_below(&dice, 8)] : NAN;
  return dice_float(&dice, kind == 1 ? 1e3f : 1e-3f);
}

static void draw_lists_of(size_t n_lists, size_t capacity, struct lists *out)
{
  out->n_lists = n_lists;
  out->capacity = capacity;
  for (size_t i = 0; i < out->n_lists; i++) {
    size_t kind = dice_below(&dice, 3);
    out->n[i] = (uint32_t)dice_below(&dice, out->capacity + out->capacity / 4 + 2); /* some lists overflow */
    if (dice_below(&dice, 10) == 0)
      out->n[i] = LISTS_INVALID;
    for (size_t j = 0; j < out->capacity; j++) {
      out->slots[i * out->capacity + j] = (uint32_t)(j * 3 + i);
      out->scores[i * out->capacity + j] = draw_score(kind);
    }
  }
}

static void draw_lists(struct lists *out)
{
  size_t n_lists = 1 + dice_below(&dice, LISTS_MAX);

  draw_lists_of(n_lists, 1 + dice_below(&dice, dice_below(&dice, 4) ? 100 : CAPACITY_MAX), out);
}

/* Entries of list i that count. */
static size_t stored(const struct lists *lists, size_t i)
{
  if (lists->n[i] == LISTS_INVALID)
    return 0;
  return lists->n[i] < lists->capacity ? lists->n[i] : lists->capacity;
}

static int falling(const void *a, const void *b)
{
  const float *x = a, *y = b;

  return (*x < *y) - (*x > *y);
}

static float threshold_of(const float *scores, size_t n, size_t rank)
{
  static float sorted[CAPACITY_MAX];
  size_t n_real = 0;

  for (size_t i = 0; i < n; i++) {
    if (!isnan(scores[i]))
      sorted[n_real++] = scores[i];
  }
  qsort(sorted, n_real, sizeof *sorted, falling);
  return rank <= n_real ? sorted[rank - 1] : -INFINITY;
}

static void check_kept(const struct lists *in, const float *thresholds, const struct lists *kept)
{
  for (size_t i = 0; i < in->n_lists; i++) {
    const float *scores = in->scores + i * in->capacity;
    size_t n = stored(in, i), n_due = 0;
    static uint8_t is_seen[CAPACITY_MAX];
    memset(is_seen, 0, sizeof is_seen);
    for (size_t j = 0; j < n; j++)
      n_due += scores[j] >= thresholds[i];
    CHECK(kept->n[i] == n_due, "list %zu: %u items were kept, but %zu reach %g", i, kept->n[i], n_due,
          (double)thresholds[i]);
    for (size_t j = 0; j < n_due; j++) {
      size_t at = (kept->slots[i * in->capacity + j] - i) / 3;
      CHECK(at < n && !is_seen[at] && memcmp(&scores[at], &kept->scores[i * in->capacity + j], 4) == 0 &&
                scores[at] >= thresholds[i],
            "list %zu: entry %zu should not have been kept", i, j);
      is_seen[at] = 1;
    }
  }
}

static void check_lists(void)
{
  static struct lists in, kept;
  uint32_t ranks[LISTS_MAX], of[LISTS_MAX];
  float thresholds[LISTS_MAX];
  struct lists_ranks asked = { .more = (uint32_t)dice_below(&dice, 3) };
  bool are_alike = asked.more > 0 && dice_below(&dice, 2);

  draw_lists(&in);
  size_t entries = in.n_lists * in.capacity;
  for (size_t i = 0; i < in.n_lists; i++) {
    of[i] = (uint32_t)(1 + dice_below(&dice, dice_below(&dice, 2) ? 5 : in.capacity + 3));
    ranks[i] = asked.more + (are_alike ? 0 : of[i]);
  }
  struct device_lists from = { in.n_lists, in.capacity, to_device(in.n, in.n_lists * 4),
                               to_device(in.slots, entries * 4), to_device(in.scores, entries * 4) };
  struct device_lists to = { in.n_lists, in.capacity, to_device(in.n, in.n_lists * 4), to_device(in.slots, entries * 4),
                             to_device(in.scores, entries * 4) };
  uint32_t *device_ranks = to_device(of, sizeof of);
  float *device_thresholds = to_device(thresholds, sizeof thresholds);
  asked.of = are_alike ? NULL : device_ranks;
  CHECK_OK(lists_threshold(stream, &from, asked, device_thresholds));
  from_device(thresholds, device_thresholds, sizeof thresholds);
  for (size_t i = 0; i < in.n_lists; i++) {
    float due = threshold_of(in.scores + i * in.capacity, stored(&in, i), ranks[i]);
    CHECK(thresholds[i] == due, "list %zu: the score of rank %u is %g, not %g", i, ranks[i], (double)due,
          (double)thresholds[i]);
  }
  CHECK_OK(lists_clear(stream, &to));
  CHECK_OK(lists_keep(stream, &from, device_thresholds, &to));
  from_device(kept.n, to.n, in.n_lists * 4);
  from_device(kept.slots, to.slots, entries * 4);
  from_device(kept.scores, to.scores, entries * 4);
  check_kept(&in, thresholds, &kept);
  CHECK_OK(lists_threshold_of(stream, from.scores, in.n_lists, in.capacity, asked, device_thresholds));
  from_device(thresholds, device_thresholds, sizeof thresholds);
  for (size_t i = 0; i < in.n_lists; i++)
    CHECK(thresholds[i] == threshold_of(in.scores + i * in.capacity, in.capacity, ranks[i]), "array %zu", i);
  void *all[] = { from.n, from.slots, from.scores, to.n, to.slots, to.scores, device_ranks, device_thresholds };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    device_free(&all[i]);
}

/* Is list i sorted, and has the entries that it had? Each slot was there once. */
static void check_sorted(const struct lists *was, const struct lists *now, size_t i)
{
  const uint32_t *slots = now->slots + i * now->capacity;
  const float *scores = now->scores + i * now->capacity;

  for (size_t j = 0; j < stored(was, i); j++) {
    size_t from = (slots[j] - i) / 3;
    CHECK(slots[j] % 3 == i % 3 && from < stored(was, i), "list %zu, entry %zu: slot %u", i, j, slots[j]);
    CHECK(memcmp(&scores[j], &was->scores[i * was->capacity + from], sizeof *scores) == 0,
          "list %zu, entry %zu has the score of another", i, j);
    CHECK(j == 0 || scores[j] < scores[j - 1] || (scores[j] == scores[j - 1] && slots[j] != slots[j - 1]),
          "list %zu: entry %zu is not in order", i, j);
  }
}

static void check_sort(void)
{
  static struct lists in, out;

  draw_lists(&in);
  for (size_t i = 0; i < in.n_lists * in.capacity; i++)
    in.scores[i] = draw_score(dice_below(&dice, 2));
  size_t entries = in.n_lists * in.capacity;
  struct device_lists lists = { in.n_lists, in.capacity, to_device(in.n, in.n_lists * 4),
                                to_device(in.slots, entries * 4), to_device(in.scores, entries * 4) };
  CHECK_OK(lists_sort(stream, &lists));
  out = in;
  from_device(out.slots, lists.slots, entries * 4);
  from_device(out.scores, lists.scores, entries * 4);
  for (size_t i = 0; i < in.n_lists; i++) {
    if (in.n[i] <= in.capacity && in.n[i] <= LISTS_SORTED_MAX)
      check_sorted(&in, &out, i);
    else
      CHECK(memcmp(in.slots + i * in.capacity, out.slots + i * in.capacity, in.capacity * 4) == 0, "list %zu", i);
  }
  device_free(&lists.n);
  device_free(&lists.slots);
  device_free(&lists.scores);
}

enum { SEEN_WORDS = (3 * LONG_MAX + LISTS_MAX) / 32 + 1 };

/* What candidates_add() is given besides lists. */
struct adding {
  bool has_thresholds, has_seen, has_origins;
  float thresholds[LISTS_MAX];
  uint32_t seen[LISTS_MAX * SEEN_WORDS];
  uint32_t lengths[LISTS_MAX]; /* of the lists that may have overflowed */
  size_t capacity;
};

static void draw_adding(struct adding *out)
{
  out->has_thresholds = dice_below(&dice, 2);
  out->has_seen = dice_below(&dice, 2);
  out->has_origins = dice_below(&dice, 2);
  out->capacity = dice_below(&dice, 3);
  for (size_t i = 0; i < LISTS_MAX; i++) {
    out->thresholds[i] = dice_below(&dice, 4) ? dice_float(&dice, 1e-3f) : -INFINITY;
    out->lengths[i] = dice_below(&dice, 8) ? (uint32_t)dice_below(&dice, 4) : LISTS_INVALID;
  }
  for (size_t i = 0; i < LISTS_MAX * SEEN_WORDS; i++)
    out->seen[i] = (uint32_t)dice_u64(&dice);
}

static bool is_due(const struct adding *a, size_t list, uint32_t slot, float score)
{
  bool is_seen = a->has_seen && a->seen[list * SEEN_WORDS + slot / 32] >> slot % 32 & 1;

  return score > -INFINITY && (!a->has_thresholds || score >= a->thresholds[list]) && !is_seen;
}

/* Check list i after it was added to; it had room for half of a list. */
static void check_added_list(const struct lists *in, const struct adding *a, size_t i, const struct lists *got)
{
  const uint32_t *slots = in->slots + i * in->capacity;
  const float *scores = in->scores + i * in->capacity;
  size_t n = stored(in, i), n_due = 0;
  static uint8_t is_found[LONG_MAX];

  if (a->has_origins && (a->lengths[i] > a->capacity || in->n[i] > in->capacity)) {
    CHECK(got->n[i] == LISTS_INVALID, "list %zu is not marked: %u entries", i, got->n[i]);
    return;
  }
  memset(is_found, 0, sizeof is_found);
  for (size_t j = 0; j < n; j++)
    n_due += is_due(a, i, slots[j], scores[j]);
  CHECK(got->n[i] == n_due, "list %zu: %u items were added, not %zu", i, got->n[i], n_due);
  for (size_t j = 0; j < n_due && j < got->capacity; j++) {
    uint32_t slot = got->slots[i * got->capacity + j];
    size_t at = (slot - i) / 3;
    CHECK(at < n && slot == slots[at] && !is_found[at] && is_due(a, i, slot, scores[at]) &&
              memcmp(&scores[at], &got->scores[i * got->capacity + j], 4) == 0,
          "list %zu: entry %zu should not have been added", i, j);
    is_found[at] = 1;
  }
}

static void check_seen(const struct lists *in, const struct adding *a, const struct lists *got, const uint32_t *seen)
{
  for (size_t i = 0; a->has_seen && i < in->n_lists; i++) {
    static uint32_t due[SEEN_WORDS];
    memcpy(due, a->seen + i * SEEN_WORDS, sizeof due);
    for (size_t j = 0; got->n[i] != LISTS_INVALID && j < stored(in, i); j++) {
      uint32_t slot = in->slots[i * in->capacity + j];
      if (is_due(a, i, slot, in->scores[i * in->capacity + j]))
        due[slot / 32] |= 1u << slot % 32;
    }
    CHECK(memcmp(due, seen + i * SEEN_WORDS, sizeof due) == 0, "list %zu: other bits are set", i);
  }
}

/* is_long: one list, of which a block copies several parts. */
static void check_candidates(bool is_long)
{
  static struct lists in, got;
  static struct adding a;
  static uint32_t seen[LISTS_MAX * SEEN_WORDS];

  if (is_long)
    draw_lists_of(1, LONG_MAX, &in);
  else
    draw_lists(&in);
  draw_adding(&a);
  size_t entries = in.n_lists * in.capacity;
  struct device_lists from = { in.n_lists, in.capacity, to_device(in.n, in.n_lists * 4),
                               to_device(in.slots, entries * 4), to_device(in.scores, entries * 4) };
  got.capacity = in.capacity / 2 + 1;
  struct device_lists to = { in.n_lists, got.capacity, to_device(in.n, in.n_lists * 4),
                             to_device(in.slots, in.n_lists * got.capacity * 4),
                             to_device(in.scores, in.n_lists * got.capacity * 4) };
  float *thresholds = to_device(a.thresholds, sizeof a.thresholds);
  uint32_t *device_seen = to_device(a.seen, sizeof a.seen), *lengths = to_device(a.lengths, sizeof a.lengths);
  struct candidates_origins origins = { .n = { from.n, NULL, lengths }, .capacity = { from.capacity, 0, a.capacity } };

  CHECK_OK(lists_clear(stream, &to));
  CHECK_OK(candidates_add(stream, &from, a.has_thresholds ? thresholds : NULL, a.has_seen ? device_seen : NULL,
                          SEEN_WORDS, a.has_origins ? &origins : NULL, &to));
  from_device(got.n, to.n, in.n_lists * 4);
  from_device(got.slots, to.slots, in.n_lists * got.capacity * 4);
  from_device(got.scores, to.scores, in.n_lists * got.capacity * 4);
  from_device(seen, device_seen, sizeof seen);
  for (size_t i = 0; i < in.n_lists; i++)
    check_added_list(&in, &a, i, &got);
  check_seen(&in, &a, &got, seen);
  void *all[] = { from.n, from.slots, from.scores, to.n, to.slots, to.scores, thresholds, device_seen, lengths };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    device_free(&all[i]);
}

static void check_raise(void)
{
  float floors[LISTS_MAX], others[LISTS_MAX], found[LISTS_MAX];
  size_t n = dice_below(&dice, LISTS_MAX + 1);

  for (size_t i = 0; i < LISTS_MAX; i++) {
    floors[i] = draw_score(dice_below(&dice, 2));
    others[i] = draw_score(dice_below(&dice, 2));
  }
  float *device_floors = to_device(floors, sizeof floors), *device_others = to_device(others, sizeof others);
  CHECK_OK(lists_raise(stream, device_floors, device_others, n));
  from_device(found, device_floors, sizeof found);
  for (size_t i = 0; i < LISTS_MAX; i++)
    CHECK(found[i] == (i < n && others[i] > floors[i] ? others[i] : floors[i]), "floor %zu of %zu: %g", i, n,
          (double)found[i]);
  device_free(&device_floors);
  device_free(&device_others);
}

/* Arrays around the lengths that a block keeps in registers. */
static void check_long(size_t n)
{
  static float scores[2 * LONG_MAX], sorted[LONG_MAX];
  float thresholds[2], *device_scores, *device_thresholds = to_device(scores, sizeof thresholds);
  uint32_t rank = (uint32_t)(1 + dice_below(&dice, n));

  for (size_t i = 0; i < 2 * n; i++)
    scores[i] = draw_score(i < n);
  device_scores = to_device(scores, 2 * n * sizeof *scores);
  CHECK_OK(lists_threshold_of(stream, device_scores, 2, n, (struct lists_ranks){ NULL, rank }, device_thresholds));
  from_device(thresholds, device_thresholds, sizeof thresholds);
  for (size_t i = 0; i < 2; i++) {
    memcpy(sorted, scores + i * n, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, falling);
    CHECK(thresholds[i] == sorted[rank - 1], "%zu scores: that of rank %u is %g, not %g", n, rank,
          (double)sorted[rank - 1], (double)thresholds[i]);
  }
  device_free(&device_scores);
  device_free(&device_thresholds);
}

/* So many lists that each gets fewer threads, of which some have more entries than these keep in registers. */
static void check_many(void)
{
  enum { N_LISTS = 520, LENGTH = 4000 };
  static float scores[N_LISTS * LENGTH], thresholds[N_LISTS];
  static uint32_t n[N_LISTS], ranks[N_LISTS];

  for (size_t i = 0; i < N_LISTS; i++) {
    size_t kind = dice_below(&dice, 3);
    n[i] = (uint32_t)dice_below(&dice, dice_below(&dice, 2) ? 20 : LENGTH + 1);
    ranks[i] = (uint32_t)(1 + dice_below(&dice, n[i] + 2));
    for (size_t j = 0; j < n[i]; j++)
      scores[i * LENGTH + j] = draw_score(kind);
  }
  struct device_lists lists = { N_LISTS, LENGTH, to_device(n, sizeof n), NULL, to_device(scores, sizeof scores) };
  float *device_thresholds = to_device(thresholds, sizeof thresholds);
  uint32_t *device_ranks = to_device(ranks, sizeof ranks);
  CHECK_OK(lists_threshold(stream, &lists, (struct lists_ranks){ device_ranks, 0 }, device_thresholds));
  from_device(thresholds, device_thresholds, sizeof thresholds);
  for (size_t i = 0; i < N_LISTS; i++) {
    float due = threshold_of(scores + i * LENGTH, n[i], ranks[i]);
    CHECK(thresholds[i] == due, "list %zu of many: the score of rank %u is %g, not %g", i, ranks[i], (double)due,
          (double)thresholds[i]);
  }
  device_free(&lists.n);
  device_free(&lists.scores);
  device_free(&device_thresholds);
  device_free(&device_ranks);
}

int main(void)
{
  static const size_t lengths[] = { 1, 1024, 1025, 4095, 4096, 4097, 16383, 16384, 16385, 24576, 24577, LONG_MAX };

  dice.state = dice_seed();
  check_begin("gpu_lists");
  CHECK_OK(device_stream_open(&stream));
  for (size_t round = 0; round < check_size(60, 10); round++)
    check_lists();
  for (size_t round = 0; round < check_size(30, 10); round++)
    check_sort();
  for (size_t round = 0; round < check_size(60, 10); round++)
    check_candidates(round % 5 == 0);
  for (size_t round = 0; round < 20; round++)
    check_raise();
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    check_long(lengths[i]);
  check_many();
  device_stream_close(&stream);
  return check_end("gpu_lists");
}
