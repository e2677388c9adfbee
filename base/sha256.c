/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in plain C: about 300 MB a second, so a model file takes less time than reading it. */
#include "base/sha256.h"

#include <stdio.h>

static const uint32_t constants[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
  return x >> n | x << (32 - n);
}

static uint32_t load(const uint8_t *p)
{
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void expand(const uint8_t *block, uint32_t w[64])
{
  for (int t = 0; t < 16; t++)
    w[t] = load(block + (size_t)4 * (size_t)t);
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
}

/* One round, with the names of the standard: v is a..h. */
static void run_round(uint32_t v[8], uint32_t input)
{
  uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
  uint32_t chosen = (v[4] & v[5]) ^ (~v[4] & v[6]);
  uint32_t t1 = v[7] + s1 + chosen + input;
  uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
  uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

  for (int i = 7; i > 0; i--)
    v[i] = v[i - 1];
  v[4] += t1;
  v[0] = t1 + s0 + majority;
}

static void add_block(struct sha256 *s, const uint8_t *block)
{
  uint32_t w[64], v[8];

  expand(block, w);
  memcpy(v, s->state, sizeof v);
  for (int t = 0; t < 64; t++)
    run_round(v, constants[t] + w[t]);
  for (int i = 0; i < 8; i++)
    s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
  *s = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                                   0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, struct span bytes)
{
  size_t n_rest = s->n_bytes % SHA256_BLOCK_BYTES;

  s->n_bytes += bytes.n;
  while (n_rest + bytes.n >= SHA256_BLOCK_BYTES) {
    const uint8_t *block = bytes.p;
    size_t n = SHA256_BLOCK_BYTES - n_rest;
    if (n_rest > 0) {
      memcpy(s->rest + n_rest, bytes.p, n);
      block = s->rest;
    }
    add_block(s, block);
    bytes = span_of(bytes.p + n, bytes.n - n);
    n_rest = 0;
  }
  if (bytes.n > 0)
    memcpy(s->rest + n_rest, bytes.p, bytes.n);
}

void sha256_finish(struct sha256 *s, char hex[SHA256_HEX_BYTES])
{
  static const uint8_t padding[SHA256_BLOCK_BYTES] = { 0x80 };
  size_t n_rest = s->n_bytes % SHA256_BLOCK_BYTES;
  uint64_t n_bits = 8 * s->n_bytes;
  uint8_t length[8];

  for (int i = 0; i < 8; i++)
    length[i] = (uint8_t)(n_bits >> (56 - 8 * i));
  sha256_add(s, span_of(padding, n_rest < 56 ? 56 - n_rest : 120 - n_rest));
  sha256_add(s, span_of(length, sizeof length));
  for (int i = 0; i < 8; i++)
    snprintf(hex + (size_t)8 * (size_t)i, 9, "%08x", s->state[i]);
}

void sha256_hex(struct span bytes, char hex[SHA256_HEX_BYTES])
{
  struct sha256 s;

  sha256_init(&s);
  sha256_add(&s, bytes);
  sha256_finish(&s, hex);
}
