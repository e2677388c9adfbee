/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and sizes of chunks. */
#include "ingest/wire/model_chunk.h"

#include <inttypes.h>
#include <stdio.h>

enum { INDEX_DIGITS_MAX = 10 };

uint64_t model_chunk_count(uint64_t n_file_bytes)
{
  return (n_file_bytes + MODEL_CHUNK_BYTES - 1) / MODEL_CHUNK_BYTES;
}

size_t model_chunk_size(uint64_t n_file_bytes, uint64_t index)
{
  uint64_t left = n_file_bytes - index * MODEL_CHUNK_BYTES;

  return left < MODEL_CHUNK_BYTES ? (size_t)left : MODEL_CHUNK_BYTES;
}

struct span model_chunk_key(const char *digest, uint64_t index, char text[MODEL_CHUNK_KEY_BYTES])
{
  int n = snprintf(text, MODEL_CHUNK_KEY_BYTES, "%.*s/%" PRIu64, MODEL_DIGEST_CHARS, digest, index);

  return span_of(text, (size_t)n);
}

/* Read decimal digits without leading zeros: each chunk has one key. */
static bool parse_index(struct span digits, uint64_t *out)
{
  uint64_t index = 0;

  if (digits.n < 1 || digits.n > INDEX_DIGITS_MAX || (digits.p[0] == '0' && digits.n > 1))
    return false;
  for (size_t i = 0; i < digits.n; i++) {
    if (digits.p[i] < '0' || digits.p[i] > '9')
      return false;
    index = index * 10 + (digits.p[i] - '0');
  }
  *out = index;
  return true;
}

bool model_chunk_parse(struct span key, const char *digest, uint64_t *index)
{
  enum { PREFIX = MODEL_DIGEST_CHARS + 1 };

  return key.n > PREFIX && memcmp(key.p, digest, MODEL_DIGEST_CHARS) == 0 && key.p[MODEL_DIGEST_CHARS] == '/' &&
         parse_index(span_of(key.p + PREFIX, key.n - PREFIX), index);
}
