/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces that come and go while searches run: new generations of the spaces of a configuration. Each step is an epoch,
 * so a search sees all of it or nothing.
 *
 *   engine_load_model()    read a model, beside everything
 *   engine_add_space()     the generation is there, and nobody has a part of it. engine_apply() puts parts
 *   engine_fill_space()    it gets parts that there were before, and other generations that use them do not
 *   engine_build_index()   what only makes searches faster is built, once the parts are there
 *   engine_set_current()   queries that name no generation get this one
 *   engine_remove_space()  the generation and its parts are gone, and their memory is free
 */
#ifndef ENGINE_ENGINE_SPACES_H
#define ENGINE_ENGINE_SPACES_H

#include "engine/engine.h"

/* A loaded model that no arena knows yet. */
struct engine_model;

/* Load the model of a generation. Returns ERR_MODEL with the file and what is wrong; ERR_MEMORY; ERR_SYSTEM.
 * Thread: any. Blocks: as long as the file needs; a large bilinear model takes minutes. */
err_t engine_load_model(const struct engine_space *space, struct engine_model **out);
void engine_model_close(struct engine_model **m);

/* SHA-256 of the model file as it was read, in hexadecimal digits. */
const char *engine_model_digest(const struct engine_model *m);

/* Add a generation of a space that the engine has.
 *
 * model  taken and set to NULL on success; unchanged on error
 *
 * Returns ERR_FULL with the bytes if it does not fit, on any backend that holds the catalogue, or if there are too many
 * spaces; ERR_SPACE if there is no space of this name, or it has the generation; ERR_MODEL if it shares parts with
 * another generation, and its model needs others. The engine is as before then. Other errors, thread and blocking as
 * engine_apply().
 */
err_t engine_add_space(struct engine *e, struct engine_model **model);

/* Verify that a generation can use a part. Its name is not looked at. Returns ERR_ITEM with the reason; ERR_SPACE if
 * there is no such generation. Thread: as engine_check_part(). */
err_t engine_check_fill(const struct engine *e, struct span name, uint32_t generation, const struct part *part);

/* Put parts into one generation as the next epoch, and into no other that uses them. They must have passed
 * engine_check_fill(). Returns ERR_SPACE if there is no such generation. Other errors, thread and blocking as
 * engine_apply(). */
err_t engine_fill_space(struct engine *e, struct span name, uint32_t generation, const struct item_change *changes,
                        size_t n);

/* Does a generation lack its index on the backend that searches? An added one is without, so that many parts can be put
 * fast; it only makes searches faster. engine_replace() builds those of generations that are current, or that half of
 * the items have parts of. Thread: catalogue. */
bool engine_lacks_index(const struct engine *e, struct span name, uint32_t generation);

/* Take one step towards the index of a generation in one of the arenas: build a part of it, or copy what the other
 * arena has. A step takes about a tenth of a second at most. Once the index is complete, it is kept. May publish an
 * epoch with the same items.
 *
 * Returns ERR_SPACE if there is no such generation. Other errors, thread and blocking as engine_apply(). */
err_t engine_build_index(struct engine *e, struct span name, uint32_t generation);

/* Make a generation the current one of its name. Does nothing if it is that already. Queries that were checked before
 * and name no generation have to be checked again: searcher_search() says so.
 *
 * Returns ERR_SPACE if there is no such generation. Other errors, thread and blocking as engine_apply(). */
err_t engine_set_current(struct engine *e, struct span name, uint32_t generation);

/* Remove a generation that is not the current one, and free its memory on all backends.
 *
 * Returns ERR_SPACE if there is no such generation, or it is the current one. Other errors, thread and blocking as
 * engine_apply(). */
err_t engine_remove_space(struct engine *e, struct span name, uint32_t generation);

/* Count the items of the front epoch that have a part of one generation and none of another. 0 if the space has no
 * `missing_in`, or no `present_in`. Thread: any. */
uint64_t engine_count_missing(struct engine *e, struct span name, uint32_t present_in, uint32_t missing_in);

#endif
