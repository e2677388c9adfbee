#include "engine/cuda/device_worker.h"

#include <string.h>

#include "base/mem.h"

enum { ALIGN = 256 };
static const size_t SCRATCH_BYTES_LEAST = (size_t)64 << 20;

/* Bytes of scratch for each slot: a list that keeps every item of the catalogue fits twice. */
enum { SCRATCH_BYTES_PER_SLOT = 32 };

void device_worker_close(struct device_worker **w)
{
  if (!*w)
    return;
  device_stream_close(&(*w)->stream);
  device_free(&(*w)->scratch);
  device_free_host(&(*w)->pinned);
  mem_free(w);
}

err_t device_worker_open(size_t capacity, struct device_worker **out)
{
  AUTO(device_worker_close) struct device_worker *w = NULL;
  struct device device;

  if (!device_find(&device))
    FAIL(ERR_DEVICE, "the GPU is gone");
  TRY(mem_array(1, sizeof *w, &w));
  w->n_processors = (unsigned)device.n_processors;
  w->scratch_bytes = SCRATCH_BYTES_LEAST + capacity * SCRATCH_BYTES_PER_SLOT;
  w->pinned_bytes = DEVICE_PINNED_BYTES;
  TRY(device_alloc(w->scratch_bytes, 1, &w->scratch));
  TRY(device_alloc_host(w->pinned_bytes, 1, &w->pinned));
  TRY(device_stream_open(&w->stream));
  *out = w;
  w = NULL;
  return ERR_OK;
}

void device_worker_reset(struct device_worker *w)
{
  w->scratch_used = 0;
  w->pinned_used = 0;
}

static err_t take(uint8_t *memory, size_t total, size_t *used, size_t count, size_t size, void *out)
{
  size_t bytes;

  if (__builtin_mul_overflow(count, size, &bytes) || bytes > total - *used)
    FAIL(ERR_DEVICE, "a search needs %zu times %zu bytes more than the %zu that its worker has", count, size, total);
  *(void **)out = memory + *used;
  *used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  if (*used > total)
    *used = total;
  return ERR_OK;
}

err_t device_worker_array(struct device_worker *w, size_t count, size_t size, void *out)
{
  return take(w->scratch, w->scratch_bytes, &w->scratch_used, count, size, out);
}

err_t device_worker_pinned(struct device_worker *w, size_t count, size_t size, void *out)
{
  return take(w->pinned, w->pinned_bytes, &w->pinned_used, count, size, out);
}

err_t device_worker_upload(struct device_worker *w, const void *from, size_t count, size_t size, void *out)
{
  void *pinned, *device;

  TRY(device_worker_pinned(w, count, size, &pinned));
  TRY(device_worker_array(w, count, size, &device));
  if (count > 0 && size > 0)
    memcpy(pinned, from, count * size);
  TRY(device_copy_in(w->stream, device, pinned, count * size));
  *(void **)out = device;
  return ERR_OK;
}
