/* SPDX-License-Identifier: Apache-2.0 */
/* Device lists: thresholds, and the entries that reach them, compared with sorting on the host. */
#include <math.h>
#include <string.h>

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

static void draw_lists(struct lists *out)
{
  out->n_lists = 1 + dice_below(&dice, LISTS_MAX);
  out->capacity = 1 + dice_below(&dice, dice_below(&dice, 4) ? 100 : CAPACITY_MAX);
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

int main(void)
{
  static const size_t lengths[] = { 1, 1024, 1025, 4095, 4096, 4097, 43007, 43008, 43009, LONG_MAX };

  dice.state = dice_seed();
  check_begin("gpu_lists");
  CHECK_OK(device_stream_open(&stream));
  for (size_t round = 0; round < check_size(60, 10); round++)
    check_lists();
  for (size_t round = 0; round < 20; round++)
    check_raise();
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
    check_long(lengths[i]);
  device_stream_close(&stream);
  return check_end("gpu_lists");
}
