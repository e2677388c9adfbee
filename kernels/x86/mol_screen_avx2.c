/* SPDX-License-Identifier: Apache-2.0 */
/* mol_screen() with AVX2. Lanes are items. "Step" means a step of the proof in mol_screen.h.
 *
 * AVX2 has exact products of 16-bit integers, two to a lane, but none of bytes: those of W2 are computed as 16-bit
 * integers, too.
 */
#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_avx2.h"
#include "kernels/x86/simd_math.h"

enum {
  REGS = MOL_LANES / FLOATS_N, /* registers that hold one number of all items */
  TILE_REGS = 2,               /* a tile of products: registers of items x outputs */
  TILE_OUTPUTS = 4,
  BYTE_HALF = 1 << (SCREEN_BYTE_BITS - 1),
  BYTE_MASK = (1 << SCREEN_BYTE_BITS) - 1,
  BYTES_TOP = 255 << SCREEN_BYTE_BITS, /* the largest hidden unit before it is rounded to a byte */
  TABLES = SCREEN_SEGMENTS / 8,        /* registers for a table of SCREEN_SEGMENTS numbers of 16 bits */
};

/* An item passes if its delta is larger, or if an exponent of its weights is. */
#define DELTA_MAX    40.0f
#define EXPONENT_MAX 60.0f

/* 2^r on [0, 1), minimax: relative error 1.72e-03. */
#define EXP2_C0 0x1.007108p+0f
#define EXP2_C1 0x1.50b5b4p-1f
#define EXP2_C2 0x1.594830p-2f

/* What is measured of the hidden units, for each item. */
struct hidden_sizes {
  __m256i largest[REGS];           /* |y~|, two numbers to a lane */
  __m256i lost[REGS], bytes[REGS]; /* sums of squares */
  floats units[REGS];              /* value of the byte 1 */
  unsigned is_out[REGS];           /* a bit for each item: some |y~| is out of range */
};

struct screen_sums {
  floats sum[REGS], squares[REGS], positive[REGS]; /* N, Q+ + Q-, Q+ */
  floats exponent[REGS];                           /* the largest */
};

/* Products -------------------- */

TILE __m256i words_load(const uint32_t *row, int v)
{
  return _mm256_loadu_si256((const __m256i *)(const void *)(row + v * FLOATS_N));
}

TILE void words_store(uint32_t *row, int v, __m256i x)
{
  _mm256_storeu_si256((__m256i *)(void *)(row + v * FLOATS_N), x);
}

TILE __m256i broadcast(const int16_t *pair)
{
  int32_t x;

  __builtin_memcpy(&x, pair, sizeof x);
  return _mm256_set1_epi32(x);
}

/* Add the products of signed 16-bit integers, two to a lane, to the sums of a tile. Rows of `in` are in_step words
 * apart; `in` is the first register's, and `weights` the first output's. */
TILE void tile_products(const uint32_t *in, size_t in_step, size_t n_pairs, const int16_t *weights,
                        __m256i sums[TILE_OUTPUTS][TILE_REGS])
{
  for (size_t k = 0; k < n_pairs; k++, in += in_step, weights += 2 * SCREEN_OUTPUTS) {
    __m256i x[TILE_REGS];
    UNROLL for (int v = 0; v < TILE_REGS; v++) x[v] = words_load(in, v);
    UNROLL for (int o = 0; o < TILE_OUTPUTS; o++)
    {
      __m256i weight = broadcast(weights + 2 * o);
      UNROLL for (int v = 0; v < TILE_REGS; v++) sums[o][v] =
          _mm256_add_epi32(sums[o][v], _mm256_madd_epi16(x[v], weight));
    }
  }
}

/* The upper halves of two sums: `even` in the low halves of the lanes, `odd` in the high halves. */
TILE __m256i upper_halves(__m256i even, __m256i odd)
{
  return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

/* Logits -------------------- */

/* Compute the logits of one item component and TILE_OUTPUTS query components, of which n are stored, for TILE_REGS
 * registers of items. `largest` is of both halves of a lane. */
OWN void screen_logits(const uint32_t *items, size_t n_pairs, const int16_t *query, size_t n, uint32_t *out,
                       __m256i largest[TILE_REGS])
{
  __m256i sums[TILE_OUTPUTS][TILE_REGS];

  UNROLL for (int o = 0; o < TILE_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < TILE_REGS; v++) sums[o][v] = _mm256_set1_epi32(1 << 15);
  }
  tile_products(items, MOL_LANES, n_pairs, query, sums);
  UNROLL for (int o = 0; o < TILE_OUTPUTS; o += 2)
  {
    if ((size_t)o < n) {
      UNROLL for (int v = 0; v < TILE_REGS; v++)
      {
        __m256i both = upper_halves(sums[o][v], sums[o + 1][v]);
        largest[v] = _mm256_max_epi16(largest[v], both);
        words_store(out + (size_t)(o / 2) * MOL_LANES, v, both);
      }
    }
  }
}

/* No integer logit is as large: then nothing is at the threshold. */
enum { LOGIT_BEYOND = 1 << 14 };

/* Compute all logits of TILE_REGS registers of items. Returns the lanes with a logit of at least `bound`. */
static uint32_t screen_tile_logits(const struct mol_shape *shape, const struct mol_screen_query *query,
                                   const uint32_t *items, int16_t bound, uint32_t *logits)
{
  size_t n_pairs = (shape->component_dim + 1) / 2, n_even = (shape->n_query_components + 1) / 2 * 2;
  __m256i largest[TILE_REGS];
  uint32_t lanes = 0;

  for (int v = 0; v < TILE_REGS; v++)
    largest[v] = _mm256_set1_epi16(INT16_MIN);
  for (size_t m = 0; m < shape->n_item_components; m++, items += n_pairs * MOL_LANES) {
    for (size_t n = 0; n < n_even; n += TILE_OUTPUTS) {
      const int16_t *components = query->components + n / SCREEN_OUTPUTS * SCREEN_OUTPUTS * n_pairs * 2;
      screen_logits(items, n_pairs, components + n % SCREEN_OUTPUTS * 2, n_even - n,
                    logits + (m * n_even + n) / 2 * MOL_LANES, largest);
    }
  }
  for (int v = 0; v < TILE_REGS; v++) {
    __m256i below = _mm256_cmpgt_epi16(_mm256_set1_epi16(bound), largest[v]);
    __m256i both_below = _mm256_cmpeq_epi32(below, _mm256_set1_epi32(-1));
    lanes |= (uint32_t)(~_mm256_movemask_ps(_mm256_castsi256_ps(both_below)) & 0xff) << v * FLOATS_N;
  }
  return lanes;
}

static uint32_t mol_screen_logits_avx2(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                       const struct mol_screen_query *query, const uint32_t *items, float threshold,
                                       uint32_t *logits)
{
  float least = floorf((threshold - query->integers.slack) / gate->screen.logit_unit) - 1;
  bool is_bounded = least > -LOGIT_BEYOND; /* not if it is NaN */
  int16_t bound = is_bounded ? (int16_t)fminf(least, LOGIT_BEYOND) : INT16_MIN;
  uint32_t lanes = 0;

  for (int v = 0; v < REGS; v += TILE_REGS)
    lanes |= screen_tile_logits(shape, query, items + v * FLOATS_N, bound, logits + v * FLOATS_N) << v * FLOATS_N;
  return lanes;
}

/* Append all lanes. */
static void append_whole(const uint32_t *rows, size_t n_rows, uint32_t *out, size_t at)
{
  size_t n = at + MOL_LANES > SCREEN_LANES ? SCREEN_LANES - at : MOL_LANES;

  for (size_t r = 0; r < n_rows; r++, rows += MOL_LANES, out += SCREEN_LANES) {
    memcpy(out + at, rows, n * sizeof *out);
    memcpy(out, rows + n, (MOL_LANES - n) * sizeof *out);
  }
}

static void mol_screen_append_avx2(const uint32_t *rows, size_t n_rows, uint32_t lanes, uint32_t *out, size_t at)
{
  uint8_t from[MOL_LANES], to[MOL_LANES];
  size_t n = 0;

  if (lanes == UINT32_MAX) {
    append_whole(rows, n_rows, out, at % SCREEN_LANES);
    return;
  }
  for (; lanes; lanes &= lanes - 1, n++) {
    from[n] = (uint8_t)__builtin_ctz(lanes);
    to[n] = (uint8_t)((at + n) % SCREEN_LANES);
  }
  for (size_t r = 0; r < n_rows; r++, rows += MOL_LANES, out += SCREEN_LANES) {
    for (size_t i = 0; i < n; i++)
      out[to[i]] = rows[from[i]];
  }
}

/* Hidden units -------------------- */

/* What SiLU of integers needs. */
struct activation {
  __m256i slopes[TABLES], offsets[TABLES], last;
  __m128i to_place, to_h, to_half_h; /* shifts */
};

static struct activation find_activation(const struct mol_screen *s)
{
  int to_h = s->h_bits - s->y_bits, to_place = s->y_bits - 2;
  struct activation c = { .last = _mm256_set1_epi16((int16_t)((SCREEN_SEGMENTS << to_place) - 1)),
                          .to_place = _mm_cvtsi32_si128(to_place),
                          .to_h = _mm_cvtsi32_si128(to_h),
                          .to_half_h = _mm_cvtsi32_si128(to_h - 1) };

  for (int t = 0; t < TABLES; t++) {
    c.slopes[t] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(s->slopes + 8 * t)));
    c.offsets[t] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(s->offsets + 8 * t)));
  }
  return c;
}

/* Look the numbers of places below SCREEN_SEGMENTS up in two tables. A shuffle looks bytes up in 16 bytes, and gives 0
 * if the top bit of their number is set: it is for those of other tables. */
TILE void look_up(const struct activation *c, __m256i places, __m256i *slopes, __m256i *offsets)
{
  __m256i bytes = _mm256_add_epi16(_mm256_mullo_epi16(places, _mm256_set1_epi16(0x0202)), _mm256_set1_epi16(0x0100));

  *slopes = *offsets = _mm256_setzero_si256();
  UNROLL for (int t = 0; t < TABLES; t++)
  {
    __m256i number = _mm256_xor_si256(bytes, _mm256_set1_epi8((char)(16 * t)));
    number = _mm256_add_epi8(number, _mm256_set1_epi8(0x70));
    *slopes = _mm256_or_si256(*slopes, _mm256_shuffle_epi8(c->slopes[t], number));
    *offsets = _mm256_or_si256(*offsets, _mm256_shuffle_epi8(c->offsets[t], number));
  }
}

/* SiLU(y) + h_0 of 16 numbers as integers, and the largest |y|. */
TILE __m256i activate(const struct activation *c, __m256i y, __m256i *largest)
{
  __m256i a = _mm256_abs_epi16(y), slopes, offsets;

  *largest = _mm256_max_epu16(*largest, a);
  look_up(c, _mm256_srl_epi16(_mm256_min_epu16(a, c->last), c->to_place), &slopes, &offsets);
  __m256i line = _mm256_mulhrs_epi16(_mm256_sll_epi16(a, c->to_h), slopes);
  return _mm256_add_epi16(line, _mm256_add_epi16(_mm256_sll_epi16(y, c->to_half_h), offsets));
}

/* Compute TILE_OUTPUTS hidden units from unit j on, of TILE_REGS registers of items. */
OWN void screen_hidden(const struct mol_screen *s, const struct activation *c, size_t j, const uint32_t *logits,
                       size_t step, uint32_t *out, __m256i largest[TILE_REGS])
{
  const int16_t *weights = s->w1 + (j / SCREEN_OUTPUTS * s->n_pairs * SCREEN_OUTPUTS + j % SCREEN_OUTPUTS) * 2;
  __m256i sums[TILE_OUTPUTS][TILE_REGS];

  UNROLL for (int o = 0; o < TILE_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < TILE_REGS; v++) sums[o][v] = _mm256_set1_epi32(s->b1[j + (size_t)o]);
  }
  tile_products(logits, step, s->n_pairs, weights, sums);
  UNROLL for (int o = 0; o < TILE_OUTPUTS; o += 2)
  {
    UNROLL for (int v = 0; v < TILE_REGS; v++) words_store(
        out + (size_t)(o / 2) * MOL_LANES, v, activate(c, upper_halves(sums[o][v], sums[o + 1][v]), &largest[v]));
  }
}

/* How to scale an item's hidden units to bytes: h * powers * factors >> 16, two to a lane. */
struct byte_scale {
  __m256i powers, factors;
};

TILE __m256i twice(__m256i low_halves)
{
  return _mm256_or_si256(low_halves, _mm256_slli_epi32(low_halves, 16));
}

static struct byte_scale find_scale(const struct mol_screen *s, int v, struct hidden_sizes *sizes)
{
  const float whole = (float)(1 << SCREEN_BYTE_BITS) * 0x1p16f / (float)(1 << s->h_bits);
  __m256i low = _mm256_and_si256(sizes->largest[v], _mm256_set1_epi32(0xffff));
  __m256i largest = _mm256_max_epi32(low, _mm256_srli_epi32(sizes->largest[v], 16));
  __m256i is_out = _mm256_cmpgt_epi32(largest, _mm256_set1_epi32((1 << (15 - s->h_bits + s->y_bits)) - 1));

  sizes->is_out[v] = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(is_out));
  __m256i top = _mm256_slli_epi32(largest, s->h_bits - s->y_bits);
  top = _mm256_add_epi32(top, _mm256_set1_epi32(s->h_slack));
  top = _mm256_min_epi32(top, _mm256_set1_epi32(UINT16_MAX)); /* less only if the item is out of range */
  __m256i exponents = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(top)), 23);
  __m256i shifts = _mm256_sub_epi32(_mm256_set1_epi32(15 + 127), exponents);
  floats scaled = _mm256_cvtepi32_ps(_mm256_sllv_epi32(top, shifts)); /* 2^15 to 2^16 */
  __m256i factors = _mm256_cvttps_epi32(floats_div(floats_set1(BYTES_TOP * 0x1p16f), scaled));
  floats divisor = _mm256_cvtepi32_ps(_mm256_sllv_epi32(factors, shifts));
  sizes->units[v] = floats_div(floats_set1(whole), divisor);
  return (struct byte_scale){ twice(_mm256_sllv_epi32(_mm256_set1_epi32(1), shifts)), twice(factors) };
}

/* Round the hidden units of a register of items to bytes, in place. */
OWN void find_bytes(const struct mol_screen *s, int v, uint32_t *hidden, struct hidden_sizes *sizes)
{
  struct byte_scale scale = find_scale(s, v, sizes);
  __m256i lost = _mm256_setzero_si256(), squares = _mm256_setzero_si256();

  for (size_t k = 0; k < s->n_hidden / 2; k++, hidden += MOL_LANES) {
    __m256i x = _mm256_mullo_epi16(words_load(hidden, v), scale.powers);
    x = _mm256_add_epi16(_mm256_mulhi_epu16(x, scale.factors), _mm256_set1_epi16(BYTE_HALF));
    __m256i rest = _mm256_sub_epi16(_mm256_and_si256(x, _mm256_set1_epi16(BYTE_MASK)), _mm256_set1_epi16(BYTE_HALF));
    __m256i bytes = _mm256_srli_epi16(x, SCREEN_BYTE_BITS);
    lost = _mm256_add_epi32(lost, _mm256_madd_epi16(rest, rest));
    squares = _mm256_add_epi32(squares, _mm256_madd_epi16(bytes, bytes));
    words_store(hidden, v, bytes);
  }
  sizes->lost[v] = lost;
  sizes->bytes[v] = squares;
}

static void find_screen_hidden(const struct mol_screen *s, const struct mol_screen_rows *items, uint32_t *hidden,
                               struct hidden_sizes *sizes)
{
  const struct activation c = find_activation(s);

  for (int v = 0; v < REGS; v++)
    sizes->largest[v] = _mm256_setzero_si256();
  for (size_t j = 0; j < s->n_hidden; j += TILE_OUTPUTS) {
    for (int v = 0; v < REGS; v += TILE_REGS)
      screen_hidden(s, &c, j, items->logits + v * FLOATS_N, items->step, hidden + j / 2 * MOL_LANES + v * FLOATS_N,
                    sizes->largest + v);
  }
  for (int v = 0; v < REGS; v++)
    find_bytes(s, v, hidden, sizes);
}

/* Weights and sums -------------------- */

/* 2^x for finite x; 0 below the normal numbers. */
TILE floats exp2_of(floats x)
{
  floats n = _mm256_floor_ps(x), r = floats_sub(x, n), p;
  __m256i exponent = _mm256_cvtps_epi32(floats_max(floats_min(n, floats_set1(128)), floats_set1(-127)));

  p = floats_fma(floats_set1(EXP2_C2), r, floats_set1(EXP2_C1));
  p = floats_fma(p, r, floats_set1(EXP2_C0));
  exponent = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23);
  return floats_mul(p, _mm256_castsi256_ps(exponent));
}

struct screen_weigh {
  const struct mol_screen *screen;
  const struct mol_screen_rows *items;
  const float *query_gate; /* [L] */
  const uint32_t *bytes;   /* [n_hidden / 2][MOL_LANES] */
  float logit_unit, threshold;
};

/* Add the terms of one output to the sums, from register `first` on. */
TILE void add_terms(const struct screen_weigh *w, size_t o, int first, const __m256i products[TILE_REGS],
                    const floats *units, struct screen_sums *sums)
{
  const struct mol_screen *s = w->screen;
  size_t p = (size_t)s->logits[o];
  const float *gates = w->items->gates + p * w->items->step + first * FLOATS_N;
  const uint32_t *logits = w->items->logits + o / 2 * w->items->step;
  int up = o % 2 ? 0 : 16; /* the low half of an odd lane is less than a unit: step 8 */
  floats z[TILE_REGS], e[TILE_REGS], l[TILE_REGS], t[TILE_REGS];

#define EACH UNROLL for (int v = 0; v < TILE_REGS; v++)
  EACH z[v] = floats_fma(_mm256_cvtepi32_ps(products[v]), floats_mul(units[first + v], floats_set1(s->units[o])),
                         floats_set1(s->b2[o]));
  EACH z[v] = floats_fma(floats_set1(w->query_gate[p]), floats_load(gates + v * FLOATS_N), z[v]);
  EACH z[v] = floats_mul(z[v], floats_set1(-MATH_LOG2_E));
  EACH e[v] = exp2_of(z[v]);
  EACH e[v] = floats_div(floats_set1(1.0f), floats_sub(floats_set1(-1.0f), e[v])); /* minus the sigmoid */
  EACH e[v] = floats_fma(z[v], e[v], floats_set1(-SCREEN_SHIFT));
  EACH sums->exponent[first + v] = floats_max(e[v], sums->exponent[first + v]);
  EACH e[v] = exp2_of(e[v]);
  EACH l[v] = _mm256_cvtepi32_ps(_mm256_slli_epi32(words_load(logits, first + v), up));
  EACH l[v] = floats_fma(l[v], floats_set1(w->logit_unit), floats_set1(-w->threshold));
  EACH t[v] = floats_mul(e[v], l[v]);
  EACH sums->sum[first + v] = floats_add(sums->sum[first + v], t[v]);
  EACH sums->squares[first + v] = floats_fma(t[v], t[v], sums->squares[first + v]);
  EACH t[v] = floats_max(t[v], floats_zero());
  EACH sums->positive[first + v] = floats_fma(t[v], t[v], sums->positive[first + v]);
#undef EACH
}

/* Compute TILE_OUTPUTS gates of TILE_REGS registers of items, from register `first` on, and add their terms. */
TILE void weigh_tile(const struct screen_weigh *w, size_t o, int first, const struct hidden_sizes *sizes,
                     struct screen_sums *sums)
{
  const struct mol_screen *s = w->screen;
  const int16_t *weights = s->w2_pairs + o / SCREEN_OUTPUTS * SCREEN_OUTPUTS * s->n_hidden + o % SCREEN_OUTPUTS * 2;
  __m256i products[TILE_OUTPUTS][TILE_REGS];

  UNROLL for (int i = 0; i < TILE_OUTPUTS; i++)
  {
    UNROLL for (int v = 0; v < TILE_REGS; v++) products[i][v] = _mm256_setzero_si256();
  }
  tile_products(w->bytes + first * FLOATS_N, MOL_LANES, s->n_hidden / 2, weights, products);
  UNROLL for (int i = 0; i < TILE_OUTPUTS; i++)
  {
    if (s->logits[o + (size_t)i] >= 0)
      add_terms(w, o + (size_t)i, first, products[i], sizes->units, sums);
  }
}

OWN void weigh_low(const struct screen_weigh *w, size_t o, const struct hidden_sizes *sizes, struct screen_sums *sums)
{
  weigh_tile(w, o, 0, sizes, sums);
}

OWN void weigh_high(const struct screen_weigh *w, size_t o, const struct hidden_sizes *sizes, struct screen_sums *sums)
{
  weigh_tile(w, o, TILE_REGS, sizes, sums);
}
_Static_assert(REGS == 2 * TILE_REGS, "two tiles");

TILE unsigned is_below(floats a, float b)
{
  return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, floats_set1(b), _CMP_LT_OQ)); /* false for NaN */
}

/* Steps 6 and 7: which of FLOATS_N items pass? */
static uint32_t find_passing(const struct mol_shape *shape, const struct mol_screen *s, float query_delta, int v,
                             const struct hidden_sizes *sizes, const struct screen_sums *sums)
{
  const float n_logits = (float)(shape->n_query_components * shape->n_item_components);
  floats root_hidden = _mm256_sqrt_ps(floats_set1((float)s->n_hidden));
  floats lost = floats_add(_mm256_sqrt_ps(_mm256_cvtepi32_ps(sizes->lost[v])), root_hidden);
  floats largest = floats_mul(floats_add(sums->exponent[v], floats_set1(SCREEN_SHIFT)), floats_set1(0x1.63p-1f));
  floats delta = floats_set1(query_delta), kappa, squares, positive;

  lost = floats_mul(lost, floats_mul(sizes->units[v], floats_set1(s->per_lost / (1 << SCREEN_BYTE_BITS))));
  floats hidden = floats_mul(sizes->units[v], _mm256_sqrt_ps(_mm256_cvtepi32_ps(sizes->bytes[v])));
  delta = floats_add(delta, lost);
  delta = floats_fma(floats_set1(s->per_hidden), hidden, delta);
  delta = floats_fma(floats_set1(s->per_gate), floats_max(largest, floats_set1(0.5f)), delta);
  kappa = floats_min(delta, floats_set1(DELTA_MAX));
  exp_floats(&kappa, 1);
  kappa = floats_add(kappa, floats_set1(0x1p-20f - 1)); /* plus the rounding of the subtraction */
  positive = floats_mul(floats_mul(kappa, kappa), sums->positive[v]);
  squares = floats_max(floats_sub(sums->squares[v], sums->positive[v]), floats_zero());
  squares = floats_fma(floats_set1((n_logits + 8) * 0x1p-22f), sums->squares[v], squares); /* rounding of both */
  squares = floats_fma(floats_mul(delta, delta), squares, positive);
  floats most = floats_fma(_mm256_sqrt_ps(squares), floats_set1(1 + 0x1p-10f), sums->sum[v]);
  unsigned fails = is_below(most, 0) & is_below(delta, DELTA_MAX) & is_below(sums->exponent[v], EXPONENT_MAX);
  return (~fails | sizes->is_out[v]) & 0xff;
}

static uint32_t mol_screen_avx2(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                const struct mol_screen_query *query, const struct mol_screen_rows *items,
                                float threshold, float *scratch)
{
  const struct mol_screen *s = &gate->screen;
  uint32_t *hidden = (uint32_t *)(void *)scratch, passing = 0;
  struct hidden_sizes sizes;
  struct screen_sums sums;

  find_screen_hidden(s, items, hidden, &sizes);
  const struct screen_weigh weigh = { .screen = s,
                                      .items = items,
                                      .query_gate = query->gate,
                                      .bytes = hidden,
                                      .logit_unit = s->logit_unit * 0x1p-16f,
                                      .threshold = threshold - query->integers.slack };
  for (int v = 0; v < REGS; v++) {
    sums.sum[v] = sums.squares[v] = sums.positive[v] = floats_zero();
    sums.exponent[v] = floats_set1(-SCREEN_SHIFT);
  }
  for (size_t o = 0; o < s->n_out; o += TILE_OUTPUTS) {
    weigh_low(&weigh, o, &sizes, &sums);
    weigh_high(&weigh, o, &sizes, &sums);
  }
  for (int v = 0; v < REGS; v++)
    passing |= find_passing(shape, s, query->integers.delta, v, &sizes, &sums) << v * FLOATS_N;
  return passing;
}

/* Items -------------------- */

static void mol_screen_items_avx2(const struct mol_shape *shape, const float *items, uint32_t *words)
{
  const floats scale = floats_set1(SCREEN_ITEM_SCALE);
  size_t dim = shape->component_dim;

  for (size_t m = 0; m < shape->n_item_components; m++) {
    for (size_t k = 0; k < dim; k += 2, words += MOL_LANES) {
      const float *row = items + (m * dim + k) * MOL_LANES;
      UNROLL for (int v = 0; v < REGS; v++)
      {
        floats odd = k + 1 < dim ? floats_load(row + MOL_LANES + v * FLOATS_N) : floats_zero();
        __m256i low = _mm256_cvtps_epi32(floats_mul(floats_load(row + v * FLOATS_N), scale));
        __m256i high = _mm256_slli_epi32(_mm256_cvtps_epi32(floats_mul(odd, scale)), 16);
        words_store(words, v, _mm256_blend_epi16(low, high, 0xaa));
      }
    }
  }
}

static void no_preparation(void)
{
}

void variant_mol_screen_avx2(struct kernels *table)
{
  table->mol_screen_begin = no_preparation;
  table->mol_screen_end = no_preparation;
  table->mol_screen = mol_screen_avx2;
  table->mol_screen_items = mol_screen_items_avx2;
  table->mol_screen_logits = mol_screen_logits_avx2;
  table->mol_screen_append = mol_screen_append_avx2;
}
