/* SPDX-License-Identifier: Apache-2.0 */
/* mol_screen() with AVX-512 VNNI (Cascade Lake and later). Lanes are items. "Step" means a step of the proof in
 * mol_screen.h. */
#include <string.h>

#include "kernels/mol_reduced_gate.h"
#include "kernels/x86/simd_screen.h"

enum {
  BYTE_HALF = 1 << (SCREEN_BYTE_BITS - 1),
  BYTE_MASK = (1 << SCREEN_BYTE_BITS) - 1,
  BYTES_TOP = 255 << SCREEN_BYTE_BITS, /* the largest hidden unit before it is rounded to a byte */
};

/* Rows with one word for each item: two logits or hidden units, or four bytes. */
struct screen_rows {
  const struct mol_screen_rows *items;
  uint32_t *hidden; /* [n_hidden / 2][MOL_LANES] */
  uint32_t *bytes;  /* [n_hidden / SCREEN_GROUP][MOL_LANES] */
};

/* What is measured of the hidden units, for each item. */
struct hidden_sizes {
  __m512i largest[REGS];           /* |y~|, two numbers to a lane */
  __m512i lost[REGS], bytes[REGS]; /* sums of squares */
  floats units[REGS];              /* value of the byte 1 */
  __mmask16 is_out[REGS];          /* some |y~| is out of range */
};

/* Products -------------------- */

/* sums += the products of signed 16-bit integers, two to a lane. In assembler, because gcc copies the sums before and
 * after each intrinsic. */
TILE void add_pairs(__m512i *sums, __m512i a, __m512i b)
{
  __asm__("vpdpwssd %2, %1, %0" : "+v"(*sums) : "v"(a), "v"(b));
}

/* The same of unsigned and signed bytes, four to a lane. */
TILE void add_bytes(__m512i *sums, __m512i bytes, __m512i numbers)
{
  __asm__("vpdpbusd %2, %1, %0" : "+v"(*sums) : "v"(bytes), "v"(numbers));
}

TILE __m512i words_load(const uint32_t *row, int v)
{
  return _mm512_loadu_si512(row + v * FLOATS_N);
}

TILE __m512i broadcast(const void *four_bytes)
{
  int32_t x;

  __builtin_memcpy(&x, four_bytes, sizeof x);
  return _mm512_set1_epi32(x);
}

/* Rows of `in` are in_step words apart. */
TILE void pair_products(const uint32_t *in, size_t in_step, size_t n_pairs, const int16_t *weights,
                        __m512i sums[SCREEN_OUTPUTS][REGS])
{
  for (size_t k = 0; k < n_pairs; k++, in += in_step, weights += 2 * SCREEN_OUTPUTS) {
    __m512i x[REGS];
    UNROLL for (int v = 0; v < REGS; v++) x[v] = words_load(in, v);
    UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o++)
    {
      __m512i weight = broadcast(weights + 2 * o);
      UNROLL for (int v = 0; v < REGS; v++) add_pairs(&sums[o][v], x[v], weight);
    }
  }
}

TILE void byte_products(const uint32_t *in, size_t n_groups, const int8_t *weights, __m512i sums[SCREEN_OUTPUTS][REGS])
{
  for (size_t k = 0; k < n_groups; k++, in += MOL_LANES, weights += SCREEN_GROUP * SCREEN_OUTPUTS) {
    __m512i x[REGS];
    UNROLL for (int v = 0; v < REGS; v++) x[v] = words_load(in, v);
    UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o++)
    {
      __m512i weight = broadcast(weights + SCREEN_GROUP * o);
      UNROLL for (int v = 0; v < REGS; v++) add_bytes(&sums[o][v], x[v], weight);
    }
  }
}

/* The upper halves of two sums: `even` in the low halves of the lanes, `odd` in the high halves. */
TILE __m512i upper_halves(__m512i even, __m512i odd)
{
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(even, 16), odd);
}

/* Logits -------------------- */

/* Compute the logits of one item component and SCREEN_OUTPUTS query components, of which n are stored. `largest` is of
 * both halves of a lane. */
OWN void screen_logits(const uint32_t *items, size_t n_pairs, const int16_t *query, size_t n, uint32_t *out,
                       __m512i largest[REGS])
{
  __m512i sums[SCREEN_OUTPUTS][REGS], most[REGS];

  UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < REGS; v++) sums[o][v] = _mm512_set1_epi32(1 << 15);
  }
  pair_products(items, MOL_LANES, n_pairs, query, sums);
  UNROLL for (int v = 0; v < REGS; v++) most[v] = largest[v];
  UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o += 2)
  {
    if ((size_t)o < n) {
      UNROLL for (int v = 0; v < REGS; v++)
      {
        __m512i both = upper_halves(sums[o][v], sums[o + 1][v]);
        most[v] = _mm512_max_epi16(most[v], both);
        _mm512_storeu_si512(out + (size_t)(o / 2) * MOL_LANES + v * FLOATS_N, both);
      }
    }
  }
  UNROLL for (int v = 0; v < REGS; v++) largest[v] = most[v];
}

/* No integer logit is as large: then nothing is at the threshold. */
enum { LOGIT_BEYOND = 1 << 14 };

/* Return the lanes with a logit of at least the threshold. */
static uint32_t mol_screen_logits_vnni(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                       const struct mol_screen_query *query, const uint32_t *items, float threshold,
                                       uint32_t *logits)
{
  size_t n_pairs = (shape->component_dim + 1) / 2, n_even = (shape->n_query_components + 1) / 2 * 2;
  float least = floorf((threshold - query->integers.slack) / gate->screen.logit_unit) - 1;
  uint32_t lanes = 0;
  __m512i largest[REGS];

  UNROLL for (int v = 0; v < REGS; v++) largest[v] = _mm512_set1_epi16(INT16_MIN);
  for (size_t m = 0; m < shape->n_item_components; m++) {
    for (size_t n = 0; n < n_even; n += SCREEN_OUTPUTS)
      screen_logits(items + m * n_pairs * MOL_LANES, n_pairs, query->components + n * n_pairs * 2, n_even - n,
                    logits + (m * n_even + n) / 2 * MOL_LANES, largest);
  }
  if (!(least > -LOGIT_BEYOND)) /* NaN too */
    return UINT32_MAX;
  __m512i bound = _mm512_set1_epi16((int16_t)fminf(least, LOGIT_BEYOND));
  for (int v = 0; v < REGS; v++) {
    __mmask32 reached = _mm512_cmpge_epi16_mask(largest[v], bound);
    __m512i words = _mm512_maskz_set1_epi16(reached, 1);
    lanes |= (uint32_t)_mm512_test_epi32_mask(words, words) << v * FLOATS_N;
  }
  return lanes;
}

/* Lanes -------------------- */

/* Store the first n lanes at a position of a row of SCREEN_LANES, which continues at its start. */
TILE void store_around(uint32_t *row, size_t at, size_t n, __m512i x)
{
  __mmask16 lanes = (__mmask16)((1u << n) - 1);
  __mmask16 here = lanes;

  if (at + n > SCREEN_LANES)
    here = (__mmask16)((1u << (SCREEN_LANES - at)) - 1);
  _mm512_mask_storeu_epi32(row + at, here, x);
  if (here != lanes)
    _mm512_mask_storeu_epi32(row, (__mmask16)(lanes >> (SCREEN_LANES - at)),
                             _mm512_maskz_compress_epi32((__mmask16)(lanes & ~here), x));
}

static void mol_screen_append_vnni(const uint32_t *rows, size_t n_rows, uint32_t lanes, uint32_t *out, size_t at)
{
  const __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __mmask16 masks[REGS];
  __m512i order[REGS];
  size_t n[REGS], places[REGS];

  for (int v = 0; v < REGS; v++) {
    masks[v] = (__mmask16)(lanes >> v * FLOATS_N);
    order[v] = _mm512_maskz_compress_epi32(masks[v], numbers);
    n[v] = (size_t)__builtin_popcount(masks[v]);
    places[v] = at % SCREEN_LANES;
    at += n[v];
  }
  for (size_t r = 0; r < n_rows; r++, rows += MOL_LANES, out += SCREEN_LANES) {
    UNROLL for (int v = 0; v < REGS; v++)
        store_around(out, places[v], n[v], _mm512_permutexvar_epi32(order[v], words_load(rows, v)));
  }
}

/* Hidden units -------------------- */

/* What SiLU of integers needs, in registers. */
struct activation {
  __m512i slopes, offsets, last, to_place, to_h, to_half_h;
};

static struct activation find_activation(const struct mol_screen *s)
{
  int16_t to_h = (int16_t)(s->h_bits - s->y_bits), to_place = (int16_t)(s->y_bits - 2);

  return (struct activation){ .slopes = _mm512_loadu_si512(s->slopes),
                              .offsets = _mm512_loadu_si512(s->offsets),
                              .last = _mm512_set1_epi16((int16_t)((SCREEN_SEGMENTS << to_place) - 1)),
                              .to_place = _mm512_set1_epi16(to_place),
                              .to_h = _mm512_set1_epi16(to_h),
                              .to_half_h = _mm512_set1_epi16((int16_t)(to_h - 1)) };
}

/* SiLU(y) + h_0 of 32 numbers as integers, and the largest |y|. */
TILE __m512i activate(const struct activation *c, __m512i y, __m512i *largest)
{
  __m512i a = _mm512_abs_epi16(y), place = _mm512_srlv_epi16(_mm512_min_epu16(a, c->last), c->to_place);

  *largest = _mm512_max_epu16(*largest, a);
  __m512i line = _mm512_mulhrs_epi16(_mm512_sllv_epi16(a, c->to_h), _mm512_permutexvar_epi16(place, c->slopes));
  __m512i rest = _mm512_add_epi16(_mm512_sllv_epi16(y, c->to_half_h), _mm512_permutexvar_epi16(place, c->offsets));
  return _mm512_add_epi16(line, rest);
}

/* Compute SCREEN_OUTPUTS hidden units. */
OWN void screen_hidden(const struct mol_screen *s, size_t j, const struct screen_rows *rows, uint32_t *out,
                       __m512i largest[REGS])
{
  __m512i sums[SCREEN_OUTPUTS][REGS], most[REGS];

  UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o++)
  {
    UNROLL for (int v = 0; v < REGS; v++) sums[o][v] = _mm512_set1_epi32(s->b1[j + (size_t)o]);
  }
  pair_products(rows->items->logits, rows->items->step, s->n_pairs, s->w1 + j * s->n_pairs * 2, sums);
  const struct activation constants = find_activation(s);
  UNROLL for (int v = 0; v < REGS; v++) most[v] = largest[v];
  UNROLL for (int o = 0; o < SCREEN_OUTPUTS; o += 2)
  {
    UNROLL for (int v = 0; v < REGS; v++)
        _mm512_storeu_si512(out + (size_t)(o / 2) * MOL_LANES + v * FLOATS_N,
                            activate(&constants, upper_halves(sums[o][v], sums[o + 1][v]), &most[v]));
  }
  UNROLL for (int v = 0; v < REGS; v++) largest[v] = most[v];
}

/* How to scale an item's hidden units to bytes: (h << shifts) * factors >> 16, two to a lane. */
struct byte_scale {
  __m512i shifts, factors;
};

static struct byte_scale find_scale(const struct mol_screen *s, int v, struct hidden_sizes *sizes)
{
  __m512i low = _mm512_and_si512(sizes->largest[v], _mm512_set1_epi32(0xffff));
  __m512i largest = _mm512_max_epi32(low, _mm512_srli_epi32(sizes->largest[v], 16));

  sizes->is_out[v] = _mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(1 << (15 - s->h_bits + s->y_bits)));
  __m512i top = _mm512_slli_epi32(largest, (unsigned)(s->h_bits - s->y_bits));
  top = _mm512_add_epi32(top, _mm512_set1_epi32(s->h_slack));
  top = _mm512_min_epi32(top, _mm512_set1_epi32(UINT16_MAX)); /* less only if the item is out of range */
  __m512i bits = _mm512_cvtps_epi32(_mm512_getexp_ps(_mm512_cvtepi32_ps(top)));
  __m512i shifts = _mm512_sub_epi32(_mm512_set1_epi32(15), bits);
  floats scaled = _mm512_cvtepi32_ps(_mm512_sllv_epi32(top, shifts)); /* 2^15 to 2^16 */
  __m512i factors = _mm512_cvttps_epi32(floats_div(floats_set1(BYTES_TOP * 0x1p16f), scaled));
  floats divisor = _mm512_cvtepi32_ps(_mm512_sllv_epi32(factors, shifts));
  const float whole = (float)(1 << SCREEN_BYTE_BITS) * 0x1p16f / (float)(1 << s->h_bits);
  sizes->units[v] = floats_div(floats_set1(whole), divisor);
  return (struct byte_scale){ _mm512_or_si512(shifts, _mm512_slli_epi32(shifts, 16)),
                              _mm512_or_si512(factors, _mm512_slli_epi32(factors, 16)) };
}

/* Round two rows of hidden units to bytes. */
TILE __m512i round_to_bytes(const uint32_t *rows, int v, struct byte_scale scale, __m512i *lost, __m512i *squares)
{
  __m512i bytes[2];

  UNROLL for (int i = 0; i < 2; i++)
  {
    __m512i x = _mm512_sllv_epi16(words_load(rows + i * MOL_LANES, v), scale.shifts);
    x = _mm512_add_epi16(_mm512_mulhi_epu16(x, scale.factors), _mm512_set1_epi16(BYTE_HALF));
    __m512i rest = _mm512_sub_epi16(_mm512_and_si512(x, _mm512_set1_epi16(BYTE_MASK)), _mm512_set1_epi16(BYTE_HALF));
    add_pairs(lost, rest, rest);
    bytes[i] = _mm512_srli_epi16(x, SCREEN_BYTE_BITS);
    add_pairs(squares, bytes[i], bytes[i]);
  }
  return _mm512_or_si512(bytes[0], _mm512_slli_epi16(bytes[1], 8));
}

OWN void find_bytes(const struct mol_screen *s, int v, const uint32_t *hidden, uint32_t *out,
                    struct hidden_sizes *sizes)
{
  struct byte_scale scale = find_scale(s, v, sizes);
  __m512i lost = _mm512_setzero_si512(), squares = _mm512_setzero_si512();

  for (size_t g = 0; g < s->n_hidden / SCREEN_GROUP; g++)
    _mm512_storeu_si512(out + g * MOL_LANES + v * FLOATS_N,
                        round_to_bytes(hidden + 2 * g * MOL_LANES, v, scale, &lost, &squares));
  sizes->lost[v] = lost;
  sizes->bytes[v] = squares;
}

static void find_screen_hidden(const struct mol_screen *s, const struct screen_rows *rows, struct hidden_sizes *sizes)
{
  UNROLL for (int v = 0; v < REGS; v++) sizes->largest[v] = _mm512_setzero_si512();
  for (size_t j = 0; j < s->n_hidden; j += SCREEN_OUTPUTS)
    screen_hidden(s, j, rows, rows->hidden + j / 2 * MOL_LANES, sizes->largest);
  for (int v = 0; v < REGS; v++)
    find_bytes(s, v, rows->hidden, rows->bytes, sizes);
}

/* Weights and sums -------------------- */

struct screen_weigh {
  const struct mol_screen *screen;
  const struct screen_rows *rows;
  const float *query_gate; /* [L] */
  float logit_unit, threshold;
};

/* Add the terms of one output to the sums. */
TILE void add_terms(const struct screen_weigh *w, size_t o, const __m512i products[REGS], const floats units[REGS],
                    struct screen_sums *sums)
{
  const struct mol_screen *s = w->screen;
  size_t p = (size_t)s->logits[o];
  const float *gates = w->rows->items->gates + p * w->rows->items->step;
  unsigned up = o % 2 ? 0 : 16; /* the low half of an odd lane is less than a unit: step 8 */
  floats z[REGS], e[REGS], l[REGS];

#define EACH UNROLL for (int v = 0; v < REGS; v++)
  EACH z[v] = floats_fma(_mm512_cvtepi32_ps(products[v]), floats_mul(units[v], floats_set1(s->units[o])),
                         floats_set1(s->b2[o]));
  EACH z[v] = floats_fma(floats_set1(w->query_gate[p]), floats_load(gates + v * FLOATS_N), z[v]);
  EACH z[v] = floats_mul(z[v], floats_set1(-MATH_LOG2_E));
  EACH e[v] = exp2_of(z[v]);
  EACH e[v] = _mm512_rcp14_ps(floats_sub(floats_set1(-1.0f), e[v])); /* minus the sigmoid */
  EACH e[v] = floats_fma(z[v], e[v], floats_set1(-SCREEN_SHIFT));
  EACH l[v] =
      _mm512_cvtepi32_ps(_mm512_slli_epi32(words_load(w->rows->items->logits + o / 2 * w->rows->items->step, v), up));
  EACH l[v] = floats_fma(l[v], floats_set1(w->logit_unit), floats_set1(-w->threshold));
#undef EACH
  screen_sums_add(sums, e, l);
}

/* Compute SCREEN_OUTPUTS gates and add their terms to the sums. */
OWN void weigh_outputs(const struct screen_weigh *w, size_t o, const struct hidden_sizes *sizes,
                       struct screen_sums *totals)
{
  const struct mol_screen *s = w->screen;
  __m512i products[SCREEN_OUTPUTS][REGS];
  struct screen_sums sums = *totals;

  UNROLL for (int i = 0; i < SCREEN_OUTPUTS; i++)
  {
    UNROLL for (int v = 0; v < REGS; v++) products[i][v] = _mm512_setzero_si512();
  }
  byte_products(w->rows->bytes, s->n_hidden / SCREEN_GROUP, s->w2 + o * s->n_hidden, products);
  UNROLL for (int i = 0; i < SCREEN_OUTPUTS; i++)
  {
    if (s->logits[o + (size_t)i] >= 0)
      add_terms(w, o + (size_t)i, products[i], sizes->units, &sums);
  }
  *totals = sums;
}

/* Step 6: delta of FLOATS_N items. */
static floats find_delta(const struct mol_screen *s, float query_delta, int v, const struct hidden_sizes *sizes,
                         const struct screen_sums *sums)
{
  floats root_hidden = _mm512_sqrt_ps(floats_set1((float)s->n_hidden));
  floats lost = floats_add(_mm512_sqrt_ps(_mm512_cvtepi32_ps(sizes->lost[v])), root_hidden);
  floats delta = floats_set1(query_delta);

  lost = floats_mul(lost, floats_mul(sizes->units[v], floats_set1(s->per_lost / (1 << SCREEN_BYTE_BITS))));
  floats hidden = floats_mul(sizes->units[v], _mm512_sqrt_ps(_mm512_cvtepi32_ps(sizes->bytes[v])));
  delta = floats_add(delta, lost);
  delta = floats_fma(floats_set1(s->per_hidden), hidden, delta);
  return floats_fma(floats_set1(s->per_gate), screen_sums_largest(sums, v), delta);
}

static uint32_t mol_screen_vnni(const struct mol_shape *shape, const struct mol_reduced_gate *gate,
                                const struct mol_screen_query *query, const struct mol_screen_rows *items,
                                float threshold, float *scratch)
{
  const struct mol_screen *s = &gate->screen;
  struct screen_rows rows = { .items = items, .hidden = (uint32_t *)(void *)scratch };
  struct hidden_sizes sizes;
  struct screen_sums sums;
  uint32_t passing = 0;

  rows.bytes = rows.hidden + s->n_hidden / 2 * MOL_LANES;
  find_screen_hidden(s, &rows, &sizes);
  struct screen_weigh weigh = { .screen = s,
                                .rows = &rows,
                                .query_gate = query->gate,
                                .logit_unit = s->logit_unit * 0x1p-16f,
                                .threshold = threshold - query->integers.slack };
  screen_sums_begin(&sums);
  for (size_t o = 0; o < s->n_out; o += SCREEN_OUTPUTS)
    weigh_outputs(&weigh, o, &sizes, &sums);
  for (int v = 0; v < REGS; v++) {
    floats delta = find_delta(s, query->integers.delta, v, &sizes, &sums);
    __mmask16 lanes = screen_sums_pass(&sums, v, delta, shape->n_query_components * shape->n_item_components);
    passing |= (uint32_t)(lanes | sizes.is_out[v]) << v * FLOATS_N;
  }
  return passing;
}

/* Items -------------------- */

static void mol_screen_items_vnni(const struct mol_shape *shape, const float *items, uint32_t *words)
{
  const floats scale = floats_set1(SCREEN_ITEM_SCALE);
  size_t dim = shape->component_dim;

  for (size_t m = 0; m < shape->n_item_components; m++) {
    for (size_t k = 0; k < dim; k += 2, words += MOL_LANES) {
      const float *row = items + (m * dim + k) * MOL_LANES;
      UNROLL for (int v = 0; v < REGS; v++)
      {
        floats odd = k + 1 < dim ? floats_load(row + MOL_LANES + v * FLOATS_N) : floats_zero();
        __m512i low = _mm512_cvtps_epi32(floats_mul(floats_load(row + v * FLOATS_N), scale));
        __m512i high = _mm512_slli_epi32(_mm512_cvtps_epi32(floats_mul(odd, scale)), 16);
        _mm512_storeu_si512(words + v * FLOATS_N, _mm512_mask_blend_epi16(0xaaaaaaaa, low, high));
      }
    }
  }
}

static void no_preparation(void)
{
}

void variant_mol_screen_vnni(struct kernels *table)
{
  table->mol_screen_begin = no_preparation;
  table->mol_screen_end = no_preparation;
  table->mol_screen = mol_screen_vnni;
  table->mol_screen_items = mol_screen_items_vnni;
  table->mol_screen_logits = mol_screen_logits_vnni;
  table->mol_screen_append = mol_screen_append_vnni;
}
