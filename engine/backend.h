/* SPDX-License-Identifier: Apache-2.0 */
/* A backend: where arenas live and who searches them. Each has one table of column operations for each similarity. */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include <stdatomic.h>

#include "engine/columns.h"
#include "engine/engine.h"
#include "engine/similarity.h"

struct backend {
  enum backend_kind kind;
  const char *name;
  const struct columns_ops *columns[N_SIMILARITIES];

  /* Bytes of the backend's own memory that are free. NULL: it lives in the host's. */
  err_t (*memory)(size_t *free_bytes);

  /* What a search worker needs for itself. NULL: nothing. capacity: slots of an arena. */
  err_t (*worker_open)(size_t capacity, struct device_worker **out);
  void (*worker_close)(struct device_worker **w);

  /* Search a batch by a row's function. When this returns, nothing of the search runs any more. */
  err_t (*search)(method_search *search, const struct columns *columns, struct search_batch *batch);
};

/* Host memory and the kernels of this processor: always there, and the reference for others. */
extern const struct backend backend_cpu;

#ifdef SLUICE_CUDA
/* The memory of a GPU and its kernels. */
extern const struct backend backend_cuda;
#endif

/* The backends that keep the catalogue, in the order of preference. The first that has not failed is searched; with
 * `auto` there is a second one, which takes over where the first fails. */
enum { BACKENDS_MAX = 2 };

struct backends {
  const struct backend *at[BACKENDS_MAX];
  size_t n;
  _Atomic size_t first;
};

/* Choose. Returns ERR_CONFIG where there is no GPU and one is asked for. */
err_t backends_choose(enum engine_backend choice, struct backends *out);

/* Go on without backend i after an error: ERR_OK where another one takes over, which is logged; else the error itself.
 * What is wrong with the host, and not with the backend, the next one will meet too. Thread: any. */
err_t backends_fail(struct backends *b, size_t i, err_code_t err);

#endif
