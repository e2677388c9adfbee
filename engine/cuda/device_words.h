/* SPDX-License-Identifier: Apache-2.0 */
/* The words of filters (engine/similarity/admit.h) on the device, for one search worker. Words that the processor makes
 * are copied when a search needs them. Words with an identity stay: a filter that comes again in an epoch is not copied
 * again. Words that the device makes (device_programs.h) have their places here too. When there is no room, the words
 * that were used longest ago are replaced.
 *
 * Everything is allocated at open. Thread: the worker.
 */
#ifndef ENGINE_CUDA_DEVICE_WORDS_H
#define ENGINE_CUDA_DEVICE_WORDS_H

#include "kernels/device.h"

/* So many different filters are searched together; a batch with more is searched in parts. */
enum { DEVICE_WORDS_MAX = 32 };

/* Where the words of one filter lie. */
struct device_words_place {
  uint64_t id; /* 0: they are not kept */
  uint64_t last_use;
};

struct device_words {
  uint64_t *device, *host; /* [DEVICE_WORDS_MAX][n_words]; the host's are pinned, because copies read them later */
  size_t n_words;
  struct device_words_place places[DEVICE_WORDS_MAX];
  uint64_t n_uses;
  uint64_t n_sent; /* copies so far */
};

/* The bytes on the device, and as many in pinned host memory. capacity: slots of an arena. */
size_t device_words_bytes(size_t capacity);

/* Returns ERR_DEVICE or ERR_MEMORY. */
err_t device_words_open(size_t capacity, struct device_words *out);
void device_words_close(struct device_words *w);

/* Return room for words that the device makes. They stay as those of device_words_send(), and have no identity. */
uint64_t *device_words_room(struct device_words *w);

/* Return words on the device, and start a copy of them unless they are there. The device's words stay as they are until
 * DEVICE_WORDS_MAX more calls, and the stream must be idle before these.
 *
 * words  [bits_words(n_slots)], copied before the function returns
 * id     words with the same id are the same; 0: they have none
 */
err_t device_words_send(struct device_words *w, struct device_stream *stream, const uint64_t *words, size_t n_slots,
                        uint64_t id, const uint64_t **out);

#endif
