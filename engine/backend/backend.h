/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: the memory where arenas live and the processor that searches them. Each backend has a table of column
 * operations for each similarity. */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include <stdatomic.h>

#include "engine/engine_config.h"
#include "engine/search/search_batch.h"
#include "engine/similarity/columns.h"
#include "engine/similarity/similarity.h"

struct attribute_columns;
struct device_attributes;

enum backend_kind { BACKEND_CPU, BACKEND_CUDA };

struct backend {
  enum backend_kind kind;
  const char *name;
  const struct columns_ops *columns[N_SIMILARITIES];

  /* The free bytes of the backend's own memory. NULL: it uses host memory. */
  err_t (*memory)(size_t *free_bytes);

  /* The bytes that a search worker takes of it. NULL: none. capacity: slots of an arena. */
  size_t (*worker_bytes)(size_t capacity);

  /* Open and close what a search worker needs on this backend. NULL: nothing. capacity: slots of an arena. */
  err_t (*worker_open)(size_t capacity, struct device_worker **out);
  void (*worker_close)(struct device_worker **w);

  /* Copies of an arena's attribute columns in the backend's own memory, so that it can make words of filters itself.
   * NULL: it keeps none, and the host makes all words. open, close and flush are those of device_attributes.h.
   * bytes_per_slot and fixed_bytes: what the copies of one arena take. */
  struct {
    err_t (*open)(const struct attributes *attributes, size_t capacity, struct device_attributes **out);
    void (*close)(struct device_attributes **a);
    err_t (*flush)(struct device_attributes *a, struct attribute_columns *columns);
    size_t (*bytes_per_slot)(const struct attributes *attributes);
    size_t (*fixed_bytes)(void);
  } attributes;

  /* Does a query admit so few items that it is searched apart from queries that admit more, with
   * search_batch.admits_few? NULL: the method's row decides. */
  bool (*admits_few)(const struct admit *admit, uint64_t n_items);

  /* Return the backend's search function of a method. NULL: it has none, which backends_choose() refuses. */
  method_search *(*search_of)(const struct method_row *row);

  /* Search a batch with the search function of a method. When this returns, no part of the search is still running. */
  err_t (*search)(method_search *search, const struct columns *columns, struct search_batch *batch);
};

/* Host memory and this processor's kernels. It is always available, and the reference for other backends. */
extern const struct backend backend_cpu;

/* GPU memory and the GPU's kernels. Programs get it from cuda_module_find(). */
extern const struct backend backend_cuda;

/* The backends that hold the catalogue, in order of preference. The first one that has not failed is searched. With
 * `auto` there are two, and the second takes over if the first fails. */
enum { BACKENDS_MAX = 2 };

struct backends {
  const struct backend *at[BACKENDS_MAX];
  size_t n;
  _Atomic size_t first;
  _Atomic bool has_reason; /* `reason` is complete and does not change any more */
  char reason[512];        /* why the processor searches where a GPU was wanted */
};

/* Choose the backends. With `auto`, a machine whose NVIDIA card cannot be used gets a warning. Returns ERR_CONFIG if a
 * GPU is required and there is none. */
err_t backends_choose(enum engine_backend choice, struct backends *out);

/* Why the processor searches where a GPU was wanted. NULL: it does not, or no GPU was wanted, or there is no card.
 * Thread: any. */
const char *backends_reason(const struct backends *b);

/* Continue without backend i after an error. Returns ERR_OK and logs it if another backend takes over; otherwise
 * returns the error itself. A search calls this for errors of the device alone. A write calls it for every error,
 * because the backend's arena has lost the write; if the cause is the host, the next backend will report it too.
 * Thread: any. */
err_t backends_fail(struct backends *b, size_t i, err_code_t err);

#endif
