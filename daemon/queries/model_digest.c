/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file once, piece by piece: models may be large. */
#include "daemon/queries/model_digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"

enum { PIECE_BYTES = 1 << 18 };

static void close_file(FILE **file)
{
  if (*file)
    fclose(*file);
}

static void close_state(XXH3_state_t **state)
{
  XXH3_freeState(*state);
}

err_t model_digest(const char *path, char out[MODEL_DIGEST_BYTES])
{
  AUTO(close_file) FILE *file = fopen(path, "rb");
  AUTO(close_state) XXH3_state_t *state = XXH3_createState();
  AUTO(mem_free) uint8_t *piece = NULL;
  size_t n;

  if (!file)
    FAIL(ERR_MODEL, "model %s cannot be read: %s", path, strerror(errno));
  if (!state)
    FAIL(ERR_MEMORY, "no memory for the digest of model %s", path);
  TRY(mem_array(PIECE_BYTES, 1, &piece));
  XXH3_128bits_reset(state);
  while ((n = fread(piece, 1, PIECE_BYTES, file)) > 0)
    XXH3_128bits_update(state, piece, n);
  if (ferror(file))
    FAIL(ERR_MODEL, "model %s cannot be read: %s", path, strerror(errno));
  XXH128_hash_t hash = XXH3_128bits_digest(state);
  snprintf(out, MODEL_DIGEST_BYTES, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
  return ERR_OK;
}
