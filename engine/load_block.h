/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of slots that several threads load. Separate, because those who give items to the engine keep to them, and
 * so does everything that the items are written to. */
#ifndef ENGINE_LOAD_BLOCK_H
#define ENGINE_LOAD_BLOCK_H

/* While an arena is loaded, a block of this many slots belongs to one thread. */
enum { LOAD_BLOCK_SLOTS = 512 };

#endif
