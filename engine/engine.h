/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: spaces over one catalogue, kept in a pair of arenas and searched. It knows neither Kafka nor LMDB.
 *
 * The catalogue thread calls engine_apply(); search workers search the front arena meanwhile, each through a searcher
 * of its own. A search holds one epoch from its first stage to its last.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <string.h>

#include "base/err.h"
#include "base/query.h"
#include "kernels/kernels.h"

struct engine;
struct searcher;

struct engine_space {
  const char *name;
  const char *model_path; /* .safetensors */
  size_t dim;             /* numbers of a vector, for models whose file does not say; 0: the file does */
};

/* Where the arenas are: host memory, a GPU's memory, or a GPU's with host memory beside it, so that the processor goes
 * on where the GPU fails; without a GPU, auto is cpu. */
enum engine_backend { ENGINE_CPU, ENGINE_CUDA, ENGINE_AUTO };

/* "cpu", "cuda", "auto". */
static inline bool engine_backend_find(const char *name, enum engine_backend *out)
{
  static const char *const names[] = { "cpu", "cuda", "auto" };

  for (int i = 0; i < 3; i++) {
    if (strcmp(name, names[i]) == 0) {
      *out = (enum engine_backend)i;
      return true;
    }
  }
  return false;
}

struct engine_config {
  const struct engine_space *spaces;
  size_t n_spaces;
  size_t max_items; /* the arenas are reserved for so many */
  size_t max_k;
  size_t max_batch; /* queries of one search */
  enum isa isa;
  enum engine_backend backend;
};

/* Load the models and reserve both arenas.
 *
 * Returns ERR_MODEL with the file and the tensor at fault; ERR_CONFIG when max_items needs more memory than there is,
 * with the bytes, and when there is no GPU and one is asked for; ERR_DEVICE; ERR_MEMORY.
 */
err_t engine_open(const struct engine_config *config, struct engine **out);
void engine_close(struct engine **e);

/* Verify that a space's model can be served: its metadata, its tensors' names, shapes and numbers. A large bilinear
 * model is not decomposed, which takes engine_open() minutes. Returns ERR_MODEL with what is wrong. */
err_t engine_check_model(const struct engine_space *space);

/* Verify all that engine_open() would, models, backend, instruction set and memory, and go on after what is wrong.
 * Models are loaded one after the other; no arena is reserved.
 *
 * problem  called with each, which err_message() tells; `space` is an index of config->spaces. Its error ends the check
 *
 * A space without a model_path is passed over. Of large bilinear models the memory is not counted, which is known when
 * they are decomposed. Returns ERR_OK whatever was found; ERR_MEMORY.
 */
enum engine_fault { ENGINE_FAULT_BACKEND, ENGINE_FAULT_ISA, ENGINE_FAULT_SPACE, ENGINE_FAULT_MAX_ITEMS };
typedef err_code_t (*engine_problem)(void *context, err_code_t err, enum engine_fault fault, size_t space);
err_t engine_check(const struct engine_config *config, engine_problem problem, void *context);

/* Does the engine have a space of this name? Thread: any. */
bool engine_has_space(const struct engine *e, struct span name);

/* Verify that a part can be applied: its space exists and it has the shape that the space needs.
 * Returns ERR_ITEM or ERR_SPACE with the reason. Thread: any. */
err_t engine_check_part(const struct engine *e, const struct part *part);

/* The same for all parts of a change. */
err_t engine_check_item(const struct engine *e, const struct item_change *change);

/* Apply changes in order and publish them as the next epoch, together with the positions: returns when both arenas have
 * them, which waits for searches on the former front to end. Parts must have passed engine_check_part(); those of
 * spaces that the engine does not have are ignored.
 *
 * Returns ERR_FULL when the items do not fit (the message says what an item takes); ERR_MEMORY; ERR_DEVICE when the
 * GPU fails and there is no other backend. The engine cannot go on after an error.
 * Thread: catalogue. Blocks: until the last search on the former front ends.
 */
err_t engine_apply(struct engine *e, const struct item_change *changes, size_t n, const struct position *positions,
                   size_t n_positions);

/* Publish an epoch with the same items whose watermark is just these positions: the log is another one now, and what
 * was seen of the former one means nothing in it. Errors and thread as engine_apply(). */
err_t engine_set_positions(struct engine *e, const struct position *positions, size_t n);

/* Replace the whole catalogue in one epoch: searches see the former items until all of the new ones are in place.
 *
 * feed       gives every item, by calls of engine_take() with changes as engine_apply() has them. It is called twice,
 *            once for each arena, and must give the same items both times
 * positions  the new watermark
 *
 * Returns the error of feed, or as engine_apply() does; the engine cannot go on after one.
 * Thread: catalogue. Blocks: as engine_apply(), and while items are fed. Source: the left-right scheme of pair.h.
 */
struct engine_filling;
typedef err_code_t (*engine_feed)(void *context, struct engine_filling *filling);
err_t engine_replace(struct engine *e, engine_feed feed, void *context, const struct position *positions, size_t n);
err_t engine_take(struct engine_filling *filling, const struct item_change *changes, size_t n);

/* Whether the front epoch has seen all of these positions. A partition that it does not know counts as seen up to 0.
 * Thread: any. */
bool engine_has_seen(struct engine *e, const struct position *positions, size_t n);

/* What the front epoch is. Thread: any. */
struct engine_epoch {
  uint64_t number;
  uint64_t n_items;
  size_t n_positions; /* of the whole watermark, of which at most the capacity given was written */
};
void engine_epoch_get(struct engine *e, struct engine_epoch *out, struct position *positions, size_t capacity);

/* Spaces in the order of the configuration. */
struct engine_space_info {
  const char *name;
  const char *similarity;
  uint64_t n_items;      /* in the front epoch */
  size_t bytes_per_item; /* of one arena, keys not included */
};
/* The backend that is searched: "cpu" or "cuda". n_failed: backends that failed before it took over. Thread: any. */
const char *engine_backend_name(const struct engine *e, size_t *n_failed);

size_t engine_n_spaces(const struct engine *e);
void engine_space_get(struct engine *e, size_t space, struct engine_space_info *out);

/* Verify a query and find its space and method.
 *
 * Returns ERR_SPACE, ERR_METHOD or ERR_QUERY with the reason. On success `*space` is an index and `*method` has a name
 * that can be compared: "" and "exact" are replaced by the method that they stand for. Thread: any.
 */
err_t engine_check_query(const struct engine *e, const struct query *query, size_t *space, struct method *method);

/* Scratch memory of one search worker. */
err_t searcher_open(struct engine *e, struct searcher **out);
void searcher_close(struct searcher **s);

/* Search one batch: queries of one space and one method, all checked, at most max_batch.
 *
 * answers  [n]; all fields but id, queued_us and error are written. Hits and watermark belong to the searcher and are
 *          valid until its next search.
 *
 * Returns ERR_MEMORY or, when the GPU fails and there is no other backend, ERR_DEVICE; then no answer is written.
 * Thread: the worker that owns the searcher. Blocks: no.
 */
err_t searcher_search(struct searcher *s, size_t space, const struct method *method, const struct query *const *queries,
                      size_t n, struct answer *answers);

#endif
