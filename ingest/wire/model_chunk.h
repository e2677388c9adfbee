/* SPDX-License-Identifier: Apache-2.0 */
/* The records that carry a model file: each has a chunk of it, and the key DIGEST/INDEX. DIGEST is the file's SHA-256
 * in lower-case hex digits, INDEX counts from 0 in decimal digits. Every chunk but the last has MODEL_CHUNK_BYTES
 * bytes, so index and size of the file tell where it belongs. Nothing else is in the record, and compaction keeps one
 * of each.
 *
 * Thread: any.
 */
#ifndef INGEST_MODEL_CHUNK_H
#define INGEST_MODEL_CHUNK_H

#include "base/model_change.h"

/* Below the limit of a message that brokers have by default, 1 MiB. */
enum { MODEL_CHUNK_BYTES = 1 << 19, MODEL_CHUNK_KEY_BYTES = MODEL_DIGEST_CHARS + 16 };

/* Return the number of chunks of a file. */
uint64_t model_chunk_count(uint64_t n_file_bytes);

/* Return the size of a chunk. */
size_t model_chunk_size(uint64_t n_file_bytes, uint64_t index);

/* Print the key of a chunk. `key` borrows from `text`. */
struct span model_chunk_key(const char *digest, uint64_t index, char text[MODEL_CHUNK_KEY_BYTES]);

/* Is it the key of a chunk of this file? */
bool model_chunk_parse(struct span key, const char *digest, uint64_t *index);

#endif
