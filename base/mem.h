/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: checked allocation. Sizes are given as count x size and checked for overflow. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/err.h"
#include "base/span.h"

/* Widest vector and cache line: what mem_array() aligns to. */
#define MEM_ALIGN 64

/* The pointer in a pointer variable of whatever type, whose address comes as `void *`. Through a `void **` it would be
 * another type's object, which the language forbids. */
static inline void *mem_pointer_get(const void *at)
{
  void *p;

  memcpy(&p, at, sizeof p);
  return p;
}

static inline void mem_pointer_set(void *at, const void *p)
{
  memcpy(at, &p, sizeof p);
}

/* Allocate an array of zeros, aligned to MEM_ALIGN, to be freed with mem_free().
 *
 * Returns ERR_OK, or ERR_MEMORY with the size in the message. `*out` is a pointer to the element type.
 */
err_t mem_array(size_t count, size_t size, void *out);

/* Grow an array from mem_array() or NULL to at least `count` elements, doubling; what is new is zero.
 *
 * capacity  elements now; updated
 * array     pointer to the array pointer; untouched on error
 */
err_t mem_grow(size_t count, size_t size, size_t *capacity, void *array);

/* Free an array and set the pointer to NULL. Takes the address of the pointer. */
void mem_free(void *array);

/* Reserve address space for an array of zeros whose pages cost memory only once they are touched: for arrays sized by
 * the largest catalogue. To be given back with mem_release() and the same numbers. */
err_t mem_reserve(size_t count, size_t size, void *out);
void mem_release(void *array, size_t count, size_t size);

/* Give the memory of elements from..to-1 of such an array back to the system, in whole pages. What they hold afterwards
 * is what they held, or zeros. No element from `to` on may have been touched. */
void mem_give_back(void *array, size_t from, size_t to, size_t size);

/* Copy of a string or of bytes, freed with mem_free(). */
err_t mem_copy(struct span bytes, void *out);
err_t mem_copy_str(const char *text, char **out);

#endif
