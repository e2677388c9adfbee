/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a search worker on the device (device_worker.h), handed out front to back. */
#include "engine/cuda/device_worker.h"

#include <string.h>

#include "base/mem.h"

enum { ALIGN = 256 };
static const size_t SCRATCH_BYTES_LEAST = (size_t)64 << 20;

/* Scratch bytes per slot: enough for two lists of the whole catalogue. */
enum { SCRATCH_BYTES_PER_SLOT = 32 };

static void close_mirror(struct device_mirror *m)
{
  device_free(&m->device);
  device_free_host(&m->host);
}

static err_t open_mirror(struct device_mirror *m)
{
  TRY(device_alloc_host(DEVICE_MIRROR_BYTES, 1, &m->host));
  return device_alloc(DEVICE_MIRROR_BYTES, 1, &m->device);
}

void device_worker_close(struct device_worker **w)
{
  if (!*w)
    return;
  device_stream_close(&(*w)->stream);
  device_free(&(*w)->scratch);
  close_mirror(&(*w)->inputs);
  close_mirror(&(*w)->outputs);
  device_words_close(&(*w)->words);
  mem_free(w);
}

static size_t scratch_bytes(size_t capacity)
{
  return SCRATCH_BYTES_LEAST + capacity * SCRATCH_BYTES_PER_SLOT;
}

size_t device_worker_bytes(size_t capacity)
{
  return scratch_bytes(capacity) + (size_t)2 * DEVICE_MIRROR_BYTES + device_words_bytes(capacity);
}

err_t device_worker_open(size_t capacity, struct device_worker **out)
{
  AUTO(device_worker_close) struct device_worker *w = NULL;
  struct device device;

  TRY(device_find(&device));
  TRY(mem_array(1, sizeof *w, &w));
  w->n_processors = (unsigned)device.n_processors;
  w->scratch_bytes = scratch_bytes(capacity);
  TRY(device_stream_open(&w->stream));
  TRY(device_alloc(w->scratch_bytes, 1, &w->scratch));
  TRY(open_mirror(&w->inputs));
  TRY(open_mirror(&w->outputs));
  TRY(device_words_open(capacity, &w->words));
  /* The outputs come back in one copy, with the gaps between them and with parts that nothing was written to. */
  TRY(device_fill(w->stream, w->outputs.device, 0, DEVICE_MIRROR_BYTES));
  TRY(device_wait(w->stream));
  *out = w;
  w = NULL;
  return ERR_OK;
}

void device_worker_reset(struct device_worker *w)
{
  w->scratch_used = 0;
  w->inputs.used = w->inputs_sent = 0;
  w->outputs.used = w->direct = 0;
}

static err_t take(size_t total, size_t *used, size_t count, size_t size, size_t *at)
{
  size_t bytes;

  if (__builtin_mul_overflow(count, size, &bytes) || bytes > total - *used)
    FAIL(ERR_DEVICE, "a search needs %zu times %zu bytes more, but its worker has only %zu in all", count, size, total);
  *at = *used;
  *used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  if (*used > total)
    *used = total;
  return ERR_OK;
}

err_t device_worker_array(struct device_worker *w, size_t count, size_t size, void *out)
{
  size_t at = 0;

  TRY(take(w->scratch_bytes, &w->scratch_used, count, size, &at));
  mem_pointer_set(out, w->scratch + at);
  return ERR_OK;
}

/* room: bytes of the mirror that direct outputs have not taken */
static err_t take_both(struct device_mirror *m, size_t room, size_t count, size_t size, void *host, void *device)
{
  size_t at = 0;

  TRY(take(room, &m->used, count, size, &at));
  mem_pointer_set(host, m->host + at);
  mem_pointer_set(device, m->device + at);
  return ERR_OK;
}

err_t device_worker_input(struct device_worker *w, size_t count, size_t size, void *host, void *device)
{
  return take_both(&w->inputs, DEVICE_MIRROR_BYTES, count, size, host, device);
}

err_t device_worker_upload(struct device_worker *w, const void *from, size_t count, size_t size, void *device)
{
  void *host;

  TRY(device_worker_input(w, count, size, &host, device));
  if (count > 0 && size > 0)
    memcpy(host, from, count * size);
  return ERR_OK;
}

/* The search's first operation follows. */
static err_t start_timer(struct device_worker *w)
{
  if (!w->timer || w->is_timed)
    return ERR_OK;
  w->is_timed = true;
  return device_timer_start(w->timer, w->stream);
}

err_t device_worker_words(struct device_worker *w, const uint64_t *words, size_t n_slots, uint64_t id,
                          const uint64_t **out)
{
  TRY(start_timer(w));
  return device_words_send(&w->words, w->stream, words, n_slots, id, out);
}

err_t device_worker_send(struct device_worker *w)
{
  size_t first = w->inputs_sent;

  w->inputs_sent = w->inputs.used;
  TRY(start_timer(w));
  return device_copy_in(w->stream, w->inputs.device + first, w->inputs.host + first, w->inputs.used - first);
}

err_t device_worker_output(struct device_worker *w, size_t count, size_t size, void *device, void *host)
{
  return take_both(&w->outputs, DEVICE_MIRROR_BYTES - w->direct, count, size, host, device);
}

err_t device_worker_direct_output(struct device_worker *w, size_t count, size_t size, void *out)
{
  size_t at = 0;

  TRY(take(DEVICE_MIRROR_BYTES - w->outputs.used, &w->direct, count, size, &at));
  mem_pointer_set(out, w->outputs.host + DEVICE_MIRROR_BYTES - w->direct);
  return ERR_OK;
}

err_t device_worker_receive(struct device_worker *w)
{
  TRY(device_copy_out(w->stream, w->outputs.host, w->outputs.device, w->outputs.used));
  return device_worker_wait(w);
}

err_t device_worker_wait(struct device_worker *w)
{
  if (w->timer)
    TRY(device_timer_stop(w->timer, w->stream));
  return device_wait(w->stream);
}
