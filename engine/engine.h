/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: spaces over one catalogue, kept in a pair of arenas and searched. It knows neither Kafka nor LMDB.
 *
 * The catalogue thread calls engine_apply(). Search workers search the front arena at the same time, each through its
 * own searcher. A search uses one epoch from its first stage to its last.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/err.h"
#include "base/query.h"
#include "base/region.h"
#include "engine/engine_config.h"
#include "engine/load_block.h"
#include "engine/model/model_lengths.h"
#include "kernels/kernels.h"

struct engine;
struct searcher;

/* Load the models and reserve both arenas.
 *
 * Returns ERR_MODEL with the file and the tensor at fault; ERR_CONFIG if max_items needs more memory than there is,
 * with the bytes, if a GPU is required and there is none, or if lifetimes cannot be kept; ERR_DEVICE; ERR_MEMORY.
 */
err_t engine_open(const struct engine_config *config, struct engine **out);
void engine_close(struct engine **e);

/* Let several threads share a search on the processor, and what the items of large batches need of their models. The
 * answers stay the same, to the bit.
 *
 * per_search     threads that share one search at most; 0 and 1: a search uses one
 * max            threads that search at a time, all searches together: with more searches, each uses one
 * shares_always  share also the searches that are too small to gain from it: for tests
 *
 * Call it at most once, before a searcher is opened. Returns ERR_SYSTEM if a thread cannot be started; ERR_MEMORY.
 */
struct engine_threads {
  size_t per_search;
  size_t max;
  bool shares_always;
};
err_t engine_share_searches(struct engine *e, const struct engine_threads *threads);

/* Verify everything that engine_open() would verify: models, backend, instruction set and memory. Continue after each
 * problem. Models are loaded one after the other, and no arena is reserved.
 *
 * problem  called for each problem; err_message() describes it. `space` is an index of config->spaces. If it returns an
 *          error, the check ends with that error
 *
 * Spaces without a model_path are skipped. Large bilinear models are not decomposed, since that takes minutes. Their
 * memory is not counted, because it is known only after the decomposition. Returns ERR_OK even if problems were found;
 * ERR_MEMORY.
 */
enum engine_fault {
  ENGINE_FAULT_BACKEND,
  ENGINE_FAULT_ISA,
  ENGINE_FAULT_SPACE,
  ENGINE_FAULT_MAX_ITEMS,
  ENGINE_FAULT_LIFETIMES
};
typedef err_code_t (*engine_problem)(void *context, err_code_t err, enum engine_fault fault, size_t space);
err_t engine_check(const struct engine_config *config, engine_problem problem, void *context);

/* Does the engine have a space for parts of this name? `books@2` is a part of generation 2 of `books`. A part of
 * `books` is one of generation 1, whichever is current. Several generations may use the same parts. Thread: as
 * engine_check_part(). */
bool engine_has_space(const struct engine *e, struct span name);

/* Verify that a part can be applied: a space for it exists, and it has the shape that the space needs. If several
 * generations use it, one of them that takes it is enough. Returns ERR_ITEM or ERR_SPACE with the reason. Thread:
 * catalogue, and the threads of a feed (engine_replace()) while it runs. */
err_t engine_check_part(const struct engine *e, const struct part *part);

/* Verify all parts of a change in the same way. */
err_t engine_check_item(const struct engine *e, const struct item_change *change);

/* Verify the value of an attribute, and bring it to its kept form (base/value.h).
 *
 * region    memory for the kept form
 * is_known  the configuration has the attribute; if not, nothing is verified
 *
 * Returns ERR_ITEM with the attribute, what was expected and the value; ERR_MEMORY. Thread: any.
 */
err_t engine_normalize_attribute(const struct engine *e, struct region *region, struct attribute_value *attribute,
                                 bool *is_known);

/* Apply changes in order and publish them as the next epoch, together with the positions. Returns when both arenas have
 * the changes. Parts must have passed engine_check_part() since a space was last added or removed, and attributes
 * engine_normalize_attribute(); parts of unknown spaces and unknown attributes are ignored. Of several generations that
 * use a part, those that refuse it count that, and have no part of the item afterwards.
 *
 * Returns ERR_FULL if the items do not fit (the message says how many bytes an item takes); ERR_MEMORY; ERR_DEVICE if
 * the GPU fails and there is no other backend. The engine must not be used after an error. Thread: catalogue. Blocks:
 * until the last search on the former front arena ends.
 */
err_t engine_apply(struct engine *e, const struct item_change *changes, size_t n, const struct position *positions,
                   size_t n_positions);

/* If an item has expired or come out of its embargo since the last epoch, publish an epoch with the same records.
 * Each epoch has a time, which never goes back: the later one of the clock's and the former epoch's. An epoch that is
 * published by another call does the same.
 *
 * Errors and thread as engine_apply().
 */
err_t engine_pass_time(struct engine *e);

/* Return the earliest moment at which engine_pass_time() may have something to do, in milliseconds since 1970;
 * INT64_MAX: there is none. Thread: any. */
int64_t engine_next_change_ms(const struct engine *e);

/* List keys of items that have been expired for at least `expired_for_ms`, at the time of the newest epoch or of the
 * last engine_pass_time(), and by the clock now.
 *
 * max     how many keys at most
 * region  the keys live here
 *
 * Returns ERR_MEMORY. Thread: catalogue.
 */
err_t engine_list_expired(struct engine *e, int64_t expired_for_ms, size_t max, struct region *region,
                          struct span **keys, size_t *n);

/* Publish an epoch with the same items and with exactly these positions as its watermark. Use it when the log has been
 * replaced: positions in the former log mean nothing in the new one. Errors and thread as engine_apply(). */
err_t engine_set_positions(struct engine *e, const struct position *positions, size_t n);

/* Replace the whole catalogue in one epoch, or load the empty one. Searches see the former items until all new items
 * are in place.
 *
 * feed       gives every item by calls of engine_loading_put()
 * n_threads  how many threads copy the items to the second arena
 * positions  the new watermark
 *
 * Notes its progress after feed has returned. Returns the error of feed, or an error of engine_apply(). The engine must
 * not be used after an error. Thread: catalogue. Blocks: as engine_apply(), and while feed runs. Source: the left-right
 * scheme of pair.h.
 */
struct engine_loading;
typedef err_code_t (*engine_feed)(void *context, struct engine_loading *loading);
err_t engine_replace(struct engine *e, engine_feed feed, void *context, size_t n_threads,
                     const struct position *positions, size_t n);

/* Give items to the catalogue that is being loaded: changes[i] is put into slot first + i. The calls may come in any
 * order, but together they must give each slot from 0 on once, with a key of its own. Parts as for engine_apply().
 *
 * scratch  memory for the call; not reset
 *
 * Thread: any while feed runs; several at once if the slots of each call lie within blocks of LOAD_BLOCK_SLOTS slots
 * that no other call has at that time.
 */
err_t engine_loading_put(struct engine_loading *loading, struct region *scratch, size_t first,
                         const struct item_change *changes, size_t n);

/* Has the front epoch seen all of these positions? A partition that it does not know counts as seen up to offset 0.
 * Thread: any. */
bool engine_has_seen(struct engine *e, const struct position *positions, size_t n);

/* Describe the front epoch. At most `capacity` positions are written. Thread: any. */
struct engine_epoch {
  uint64_t number;
  uint64_t n_items;
  size_t n_positions; /* of the whole watermark, even if that is more than the capacity */
  bool has_time;      /* lifetimes are kept; if not, there is nothing below */
  int64_t time_unix_ms;
  uint64_t n_expired;
  uint64_t n_embargoed;
};
void engine_epoch_get(struct engine *e, struct engine_epoch *out, struct position *positions, size_t capacity);

/* The attributes of the configuration. Valid while the engine is open. Thread: any. */
const struct attributes *engine_attributes(const struct engine *e);

/* Count the items of the front epoch that have an attribute, which is an index of the configuration. Thread: any. */
uint64_t engine_attribute_count(struct engine *e, size_t attribute);

/* The numbers of spaces count on: a space that is added has one that no other space had. Those of the configuration
 * have their index. With this bit, a number stands for a generation that a query named. */
#define ENGINE_PINNED (SIZE_MAX / 2 + 1)

/* Spaces that can be added to those of the configuration (engine_spaces.h). */
enum { ENGINE_SPACES_MORE = 64 };

/* A space, which is one generation of its name, in the front epoch. */
enum { ENGINE_DIGEST_BYTES = 65 };
struct engine_space_info {
  char name[SPACE_NAME_MAX + 1];
  char part_name[SPACE_NAME_MAX + 1]; /* of the parts that it uses, as in the store */
  size_t number;
  uint32_t generation;
  bool is_current;                  /* queries that name no generation get it */
  uint64_t n_refused;               /* parts that it refused and another one took, since engine_replace() */
  char digest[ENGINE_DIGEST_BYTES]; /* SHA-256 of the model file, in hexadecimal digits */
  const char *similarity;
  bool takes_like; /* an item's own data can be a query */
  uint64_t n_items;
  uint64_t n_alive;      /* of them; all, if lifetimes are not kept */
  size_t bytes_per_item; /* of one arena, keys not included */
  struct model_lengths lengths;
};
/* The name of the backend that searches: "cpu" or "cuda". *n_failed is the number of backends that failed before it.
 * Thread: any. */
const char *engine_backend_name(const struct engine *e, size_t *n_failed);

/* Why the processor searches on a machine with a GPU that engine.backend wanted to use: the GPU failed, or could not be
 * used at start. NULL: it does not, or no GPU was wanted, or there is none. Valid while the engine is open. Thread:
 * any. */
const char *engine_backend_reason(const struct engine *e);

/* Filters of batches since engine_open(), each counted once a batch. Thread: any. */
struct engine_filters {
  uint64_t n_known;   /* a search had evaluated the filter, and nothing that it sees has changed */
  uint64_t n_patched; /* few items had changed of what it sees, and just these were looked at */
  uint64_t n_evaluated;
};
void engine_filters_get(struct engine *e, struct engine_filters *out);

/* Spaces have places, in the order of the configuration; added ones come after them. engine_space_get() returns false
 * if there is none in this place (any more). Thread: any. */
size_t engine_n_spaces(const struct engine *e);
bool engine_space_get(struct engine *e, size_t place, struct engine_space_info *out);

/* Find a generation of a space; generation 0: the current one. Thread: any. */
bool engine_space_find(struct engine *e, struct span name, uint32_t generation, struct engine_space_info *out);

/* Verify a query and find its space and method. A query for `books` gets the current generation, one for `books@2`
 * generation 2. If query.generation is set, that one is searched for `books` where it is there.
 *
 * Returns ERR_SPACE, ERR_METHOD or ERR_QUERY with the reason. On success `*space` is the number of the space, with
 * ENGINE_PINNED if it need not be the current generation, and `*method` can be compared by its bytes: an empty method
 * has been replaced by "exact". Thread: any.
 */
err_t engine_check_query(const struct engine *e, const struct query *query, size_t *space, struct method *method);

/* Parse and verify a query's filter. Call this before the search of a query that has one.
 *
 * query   its tree is set. The tree lives in the region, and borrows texts from the query
 *
 * Returns ERR_QUERY with the position of the mistake; ERR_MEMORY. Thread: any.
 */
err_t engine_check_filter(const struct engine *e, struct query *query, struct region *region);

/* The hash of keys, for the sets of excluded keys that queries bring along (query.seen). Valid while the engine is
 * open. Thread: any. */
const struct key_hash *engine_key_hash(const struct engine *e);

/* Open and close a searcher: the scratch memory of one search worker.
 *
 * aside  for searches that nobody waits for. It searches in the calling thread alone, and takes no thread from others.
 *        If a GPU has no room for it, that is an error; for others it is a failure of the GPU, for which the processor
 *        takes over. */
err_t searcher_open(struct engine *e, struct searcher **out);
err_t searcher_open_aside(struct engine *e, struct searcher **out);
void searcher_close(struct searcher **s);

/* From now on, call pause(context) between the steps of each search of `s` on the processor, in its thread. Other
 * threads that share the search continue. The call may search with `between`, and with no other searcher of the thread.
 *
 * between  a searcher of the same engine that searches only then: it counts as no further thread */
void searcher_set_pause(struct searcher *s, struct searcher *between, void (*pause)(void *context), void *context);

/* Search one batch: at most max_batch checked queries of one space and one method.
 *
 * answers  [n]; every field is written except id and queued_us. Hits, explanations and watermark belong to the searcher
 *          and are valid until its next search. ANSWER_BAD_QUERY: there is no item for `like`; of the other fields only
 *          the error's message and searched_us are then set
 *
 * Returns ERR_SPACE_CHANGED if the space has been removed, or is not current any more and the queries do not name its
 * generation: check the queries again; ERR_MEMORY; ERR_DEVICE if the GPU fails and there is no other backend. Then no
 * answer is written. Thread: the worker that owns the searcher. Blocks: no.
 */
err_t searcher_search(struct searcher *s, size_t space, const struct method *method, const struct query *const *queries,
                      size_t n, struct answer *answers);

#endif
