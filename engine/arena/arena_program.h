/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a filter in an arena: what a device runs to find the slots that pass and are alive. */
#ifndef ENGINE_ARENA_PROGRAM_H
#define ENGINE_ARENA_PROGRAM_H

#include "engine/arena/arena.h"
#include "kernels/filter_program.h"

/* Make a program from a filter and the lives of items: a slot passes if the filter is true for it, and it is neither
 * expired nor embargoed at the epoch's time. Whether a slot has a part of a space is up to the device, so the program
 * serves every space.
 *
 * out  as for attribute_program_make()
 *
 * Returns ERR_MEMORY. Thread: any, while the arena is in front.
 */
err_t arena_program_make(const struct arena *arena, const struct filter_node *filter, struct region *region,
                         const struct filter_program **out);

#endif
