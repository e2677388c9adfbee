/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of filters' words on the device (device_words.h), found by their identity. */
#include "engine/cuda/device_words.h"

#include <string.h>

#include "base/bits.h"

/* Words of one place. Places are aligned to 256 bytes. */
static size_t words_of_place(size_t capacity)
{
  enum { ALIGN_WORDS = 32 };

  return (bits_words(capacity) + ALIGN_WORDS - 1) / ALIGN_WORDS * ALIGN_WORDS;
}

size_t device_words_bytes(size_t capacity)
{
  return DEVICE_WORDS_MAX * words_of_place(capacity) * sizeof(uint64_t);
}

err_t device_words_open(size_t capacity, struct device_words *out)
{
  out->n_words = words_of_place(capacity);
  TRY(device_alloc(DEVICE_WORDS_MAX * out->n_words, sizeof *out->device, &out->device));
  return device_alloc_host(DEVICE_WORDS_MAX * out->n_words, sizeof *out->host, &out->host);
}

void device_words_close(struct device_words *w)
{
  device_free(&w->device);
  device_free_host(&w->host);
}

/* Find the place of these words. If they have none, return the place that was used longest ago, without an id. */
static struct device_words_place *find(struct device_words *w, uint64_t id)
{
  struct device_words_place *oldest = w->places;

  for (size_t i = 0; i < DEVICE_WORDS_MAX; i++) {
    if (id != 0 && w->places[i].id == id)
      return &w->places[i];
    if (w->places[i].last_use < oldest->last_use)
      oldest = &w->places[i];
  }
  oldest->id = 0;
  return oldest;
}

/* Use a place. */
static uint64_t *use(struct device_words *w, struct device_words_place *place)
{
  place->last_use = ++w->n_uses;
  return w->device + (size_t)(place - w->places) * w->n_words;
}

uint64_t *device_words_room(struct device_words *w)
{
  return use(w, find(w, 0));
}

err_t device_words_send(struct device_words *w, struct device_stream *stream, const uint64_t *words, size_t n_slots,
                        uint64_t id, const uint64_t **out)
{
  struct device_words_place *place = find(w, id);
  size_t at = (size_t)(place - w->places) * w->n_words, bytes = bits_words(n_slots) * sizeof *words;

  *out = use(w, place);
  if (id != 0 && place->id == id)
    return ERR_OK;
  memcpy(w->host + at, words, bytes);
  TRY(device_copy_in(stream, w->device + at, w->host + at, bytes));
  place->id = id;
  w->n_sent++;
  return ERR_OK;
}
