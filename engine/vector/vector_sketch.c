/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches of vectors, and the proof that the slack is enough. u = 2^-24 is the rounding of f32; sizes are L2 norms;
 * stored numbers are rounded up.
 *
 *   error of an item   E = (|e| + 2^-20 |v|) (1 + 2^-20)
 *   weights of a query Q = |q| (1 + 2^-20),  D = |d| 127 sqrt(dim) (1 + 2^-20),  T = tail (1 + 2^-20)
 *   slack              E Q + s D + tail T + 2^-80
 *
 * The true score is <p, v> + r in real numbers, then rounded once to f32, with |p - q| <= 2^-22 |q| and |r| <= tail T.
 * It differs from the score that the kernel computes, A = ((float)sum * s) * t, by at most the sum of these:
 *
 *   |<p - q, v>|                          <= 2^-22 |q| |v|
 *   |<q, e>|                              <= |q| |e|
 *   |<d, s x>|                            <= |d| s 127 sqrt(dim), since |x| <= 127 sqrt(dim)
 *   |r|                                   <= tail T
 *   three roundings of A                  <= 3.1 u |t n| |s x|      where |t n| <= |q| + |d| and |s x| <= |v| + |e|
 *   rounding the true score to f32        <= 1.1 u |q| |v| + u |r|
 *   rounding A + slack, by the caller     <= 1.1 u |t n| |s x| + u slack
 *   four roundings of the slack itself    <= 4.1 u slack
 *
 * The terms in |q| |v| add up to at most (4 + 3.1 + 1.1 + 1.1) u = 9.3 u < 16 u = 2^-20: the second part of E covers
 * them. The terms in |q| |e|, |d| |s x| and r are smaller than 16 u times terms that the slack contains with a factor
 * of at least 1 + 2^-20. Underflow loses less than 2^-149 for each step and number, in total less than 2^-80. s is 0 or
 * at least 2^-108, so (float)sum * s does not underflow. The query's numbers that round to 0 are part of |d|.
 */
#include "engine/vector/vector_sketch.h"

#include <math.h>

#include "base/mem.h"

enum {
  LARGEST = 127,
  STEP_ITEMS = 64 * SKETCH_BLOCK_ITEMS,
  LINE_BYTES = 64,
  SPARE_ROWS = (SKETCH_ROW_PAD + SKETCH_GROUP - 1) / SKETCH_GROUP, /* for kernels that read past the last row */
};

static const double tiniest = 0x1p-100; /* a vector whose numbers are all smaller is sketched as zeros */
static const double inflation = 1 + 0x1p-20;

static float round_up(double x)
{
  return nextafterf((float)x, INFINITY);
}

static size_t n_groups_of(size_t dim)
{
  return (dim + SKETCH_GROUP - 1) / SKETCH_GROUP;
}

static size_t row_bytes(const struct vector_sketch *s)
{
  return s->n_groups * SKETCH_GROUP;
}

static uint8_t *row_of(const struct vector_sketch *s, size_t slot)
{
  return s->bytes + slot * row_bytes(s);
}

static size_t whole_blocks(size_t n)
{
  return (n + SKETCH_BLOCK_ITEMS - 1) / SKETCH_BLOCK_ITEMS;
}

err_t vector_sketch_init(size_t dim, size_t capacity, bool has_tail, struct vector_sketch *out)
{
  *out = (struct vector_sketch){ .dim = dim, .n_groups = n_groups_of(dim) };
  out->capacity = whole_blocks(capacity) * SKETCH_BLOCK_ITEMS;
  TRY(mem_reserve(out->capacity + SPARE_ROWS, row_bytes(out), &out->bytes));
  TRY(mem_reserve(out->capacity, sizeof *out->scales, &out->scales));
  TRY(mem_reserve(out->capacity, sizeof *out->errors, &out->errors));
  if (has_tail)
    TRY(mem_reserve(out->capacity, sizeof *out->tails, &out->tails));
  return ERR_OK;
}

void vector_sketch_fini(struct vector_sketch *s)
{
  mem_release(&s->bytes, s->capacity + SPARE_ROWS, row_bytes(s));
  mem_release(&s->scales, s->capacity, sizeof *s->scales);
  mem_release(&s->errors, s->capacity, sizeof *s->errors);
  mem_release(&s->tails, s->capacity, sizeof *s->tails);
}

void vector_sketch_trim(struct vector_sketch *s, size_t from, size_t to)
{
  mem_give_back(s->bytes, from, to, row_bytes(s));
  mem_give_back(s->scales, from, to, sizeof *s->scales);
  mem_give_back(s->errors, from, to, sizeof *s->errors);
  mem_give_back(s->tails, from, to, sizeof *s->tails);
}

size_t vector_sketch_bytes_per_item(size_t dim, bool has_tail)
{
  return n_groups_of(dim) * SKETCH_GROUP + (has_tail ? 3 : 2) * sizeof(float);
}

static double largest_of(const float *v, size_t n)
{
  float largest = 0.0f;

  for (size_t k = 0; k < n; k++)
    largest = fabsf(v[k]) > largest ? fabsf(v[k]) : largest;
  return (double)largest;
}

void vector_sketch_put(struct vector_sketch *s, uint32_t slot, const float *v, float tail)
{
  double largest = largest_of(v, s->dim);
  float scale = largest < tiniest ? 0.0f : round_up(largest / LARGEST);
  float inverse = largest < tiniest ? 0.0f : (float)(1.0 / (double)scale);
  double norm2 = 0, error2 = 0;
  uint8_t *row = row_of(s, slot);

  for (size_t k = 0; k < row_bytes(s); k++) {
    float value = k < s->dim ? v[k] : 0.0f;
    int number = (int)rintf(value * inverse); /* any rounding will do: the error is computed from the result */
    number = number > LARGEST ? LARGEST : number < -LARGEST ? -LARGEST : number;
    double error = (double)value - (double)scale * number;
    norm2 += (double)value * (double)value;
    error2 += error * error;
    row[k] = (uint8_t)(number + 128);
  }
  s->scales[slot] = scale;
  s->errors[slot] = round_up((sqrt(error2) + 0x1p-20 * sqrt(norm2)) * inflation);
  if (s->tails)
    s->tails[slot] = tail;
}

void vector_sketch_move(struct vector_sketch *s, uint32_t from, uint32_t to)
{
  memcpy(row_of(s, to), row_of(s, from), row_bytes(s));
  s->scales[to] = s->scales[from];
  s->errors[to] = s->errors[from];
  if (s->tails)
    s->tails[to] = s->tails[from];
}

void vector_sketch_copy(struct vector_sketch *s, const struct vector_sketch *from, uint32_t first, size_t n)
{
  memcpy(row_of(s, first), row_of(from, first), n * row_bytes(s));
  memcpy(s->scales + first, from->scales + first, n * sizeof *s->scales);
  memcpy(s->errors + first, from->errors + first, n * sizeof *s->errors);
  if (s->tails)
    memcpy(s->tails + first, from->tails + first, n * sizeof *s->tails);
}

/* Return the finest unit with which the query's numbers stay within the limits of dot_i8(), each of them and their sum.
 */
static float unit_of(const float *q, size_t dim)
{
  double largest = largest_of(q, dim), sum = 0;

  for (size_t k = 0; k < dim; k++)
    sum += fabs((double)q[k]);
  if (largest < tiniest)
    return 0.0f;
  return round_up(fmax(largest / DOT_I8_NUMBER_MAX, sum / (DOT_I8_SUM_MAX - (double)dim)));
}

err_t vector_sketch_query_init(size_t dim, const float *q, double tail, struct region *region,
                               struct vector_sketch_query *out)
{
  float unit = unit_of(q, dim);
  double norm2 = 0, error2 = 0;

  TRY(region_array(region, n_groups_of(dim) * SKETCH_GROUP, sizeof *out->numbers, &out->numbers));
  for (size_t k = 0; k < dim; k++) {
    double number = unit > 0 ? rint((double)q[k] / (double)unit) : 0;
    double error = (double)q[k] - (double)unit * number;
    norm2 += (double)q[k] * (double)q[k];
    error2 += error * error;
    out->numbers[k] = (int16_t)number;
  }
  out->weights = (struct sketch_weights){
    .unit = unit,
    .error = round_up(sqrt(norm2) * inflation),
    .scale = round_up(sqrt(error2) * LARGEST * sqrt((double)dim) * inflation),
    .tail = round_up(tail * inflation),
    .floor = 0x1p-80f,
  };
  return ERR_OK;
}

/* What sets need to be arranged. The sums of two queries are no multiple of 4096 bytes apart. */
static err_t init_arranging(const struct vector_sketch *s, size_t n_blocks, struct region *region,
                            struct vector_sketch_room *out)
{
  size_t block_bytes = SKETCH_BLOCK_ITEMS * row_bytes(s);

  out->step = (n_blocks | 1) * SKETCH_BLOCK_ITEMS;
  TRY(region_aligned(region, VECTOR_SKETCH_QUERIES * out->step, sizeof *out->sums, &out->sums));
  return region_aligned(region, n_blocks * block_bytes + SKETCH_BLOCKS_PAD, 1, &out->blocks);
}

err_t vector_sketch_room_init(const struct vector_sketch *s, size_t n, bool may_arrange, struct region *region,
                              struct vector_sketch_room *out)
{
  size_t n_blocks = whole_blocks(n), n_items = n_blocks * SKETCH_BLOCK_ITEMS;

  TRY(region_array(region, n_items, sizeof *out->scales, &out->scales));
  TRY(region_array(region, n_items, sizeof *out->errors, &out->errors));
  TRY(region_array(region, n_items, sizeof *out->tails, &out->tails));
  return may_arrange ? init_arranging(s, n_blocks, region, out) : ERR_OK;
}

struct vector_sketch_set vector_sketch_set_of(const struct vector_sketch *s, size_t first, size_t n)
{
  return (struct vector_sketch_set){
    .sketch = s,
    .first = first,
    .n = n,
    .items = { s->scales + first, s->errors + first, s->tails ? s->tails + first : NULL },
  };
}

/* Copy the numbers of the listed slots. The last block is filled up with zeros. */
static const float *gather(const float *from, const uint32_t *slots, size_t n, float *to)
{
  for (size_t i = 0; i < n; i++)
    to[i] = from[slots[i]];
  for (size_t i = n; i < whole_blocks(n) * SKETCH_BLOCK_ITEMS; i++)
    to[i] = 0.0f;
  return to;
}

struct vector_sketch_set vector_sketch_set_listed(const struct vector_sketch *s, const uint32_t *slots, size_t n,
                                                  struct vector_sketch_room *room)
{
  return (struct vector_sketch_set){
    .sketch = s,
    .slots = slots,
    .n = n,
    .items = { gather(s->scales, slots, n, room->scales), gather(s->errors, slots, n, room->errors),
               s->tails ? gather(s->tails, slots, n, room->tails) : NULL },
  };
}

void vector_sketch_set_arrange(struct vector_sketch_set *set, const struct kernels *kernels,
                               struct vector_sketch_room *room)
{
  kernels->block_rows(row_of(set->sketch, set->first), set->sketch->n_groups, set->slots, set->n, room->blocks);
  set->blocks = room->blocks;
}

void vector_sketch_prefetch(const struct vector_sketch *s, size_t first, size_t n)
{
  const uint8_t *rows = row_of(s, first);

  for (size_t at = 0; at < n * row_bytes(s); at += LINE_BYTES)
    __builtin_prefetch(rows + at, 0, 2);
}

void vector_sketch_prefetch_listed(const struct vector_sketch *s, const uint32_t *slots, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const uint8_t *row = row_of(s, slots[i]);
    for (size_t at = 0; at < row_bytes(s); at += LINE_BYTES)
      __builtin_prefetch(row + at);
    __builtin_prefetch(row + row_bytes(s) - 1); /* a row need not begin with a line */
    __builtin_prefetch(&s->scales[slots[i]]);
    __builtin_prefetch(&s->errors[slots[i]]);
    if (s->tails)
      __builtin_prefetch(&s->tails[slots[i]]);
  }
}

/* The part of a set that is computed in one step. */
struct step {
  size_t first, n, n_blocks;
  struct sketch_items items;
};

static struct step step_at(const struct vector_sketch_set *set, size_t first)
{
  size_t n = set->n - first < STEP_ITEMS ? set->n - first : STEP_ITEMS;
  const struct sketch_items *items = &set->items;

  return (struct step){ first,
                        n,
                        whole_blocks(n),
                        { items->scales + first, items->errors + first, items->tails ? items->tails + first : NULL } };
}

static void find_sums(const struct vector_sketch_set *set, const struct step *step, const struct vector_sketch_query *q,
                      const struct kernels *kernels, int32_t *sums)
{
  const struct vector_sketch *s = set->sketch;

  if (set->slots)
    kernels->dot_i8_rows(q->numbers, s->n_groups, s->bytes, set->slots + step->first, step->n, sums);
  else
    kernels->dot_i8_rows(q->numbers, s->n_groups, row_of(s, set->first + step->first), NULL, step->n, sums);
  for (size_t i = step->n; i < step->n_blocks * SKETCH_BLOCK_ITEMS; i++)
    sums[i] = 0;
}

void vector_sketch_bounds(const struct vector_sketch_set *set, const struct vector_sketch_query *q,
                          const struct kernels *kernels, float *bounds)
{
  int32_t sums[STEP_ITEMS];

  for (size_t first = 0; first < set->n; first += STEP_ITEMS) {
    struct step step = step_at(set, first);
    find_sums(set, &step, q, kernels, sums);
    kernels->sketch_bounds(sums, &step.items, &q->weights, step.n_blocks, bounds + first);
  }
}

void vector_sketch_multiply(const struct vector_sketch_set *set, const struct vector_sketch_query *const *q,
                            size_t n_queries, const struct kernels *kernels, struct vector_sketch_room *room)
{
  const int16_t *numbers[VECTOR_SKETCH_QUERIES];
  int32_t *sums[VECTOR_SKETCH_QUERIES];

  for (size_t i = 0; i < n_queries; i++) {
    numbers[i] = q[i]->numbers;
    sums[i] = room->sums + i * room->step;
  }
  kernels->dot_i8(numbers, n_queries, set->sketch->n_groups, set->blocks, whole_blocks(set->n), sums);
}

void vector_sketch_bounds_at(const struct vector_sketch_set *set, const struct vector_sketch_query *const *q, size_t i,
                             const struct kernels *kernels, const struct vector_sketch_room *room, float *bounds)
{
  kernels->sketch_bounds(room->sums + i * room->step, &set->items, &q[i]->weights, whole_blocks(set->n), bounds);
}

/* The upper bound is the score plus the slack, rounded. Subtract two slacks and the rounding. */
float vector_sketch_lower_bound(const struct vector_sketch *s, const struct vector_sketch_query *q, uint32_t slot,
                                float upper)
{
  const struct sketch_weights *w = &q->weights;
  double slack = (double)s->errors[slot] * (double)w->error + (double)s->scales[slot] * (double)w->scale +
                 (double)w->floor + (s->tails ? (double)s->tails[slot] * (double)w->tail : 0);

  return nextafterf((float)((double)upper - 2 * slack * inflation - fabs((double)upper) * 0x1p-22), -INFINITY);
}
