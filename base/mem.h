/* SPDX-License-Identifier: Apache-2.0 */
/* Memory allocation with errors. Sizes are given as count x size, and the product is checked for overflow. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include "base/err.h"
#include "base/span.h"

/* Alignment of mem_array(): the size of the widest SIMD register and of a cache line. */
#define MEM_ALIGN 64

/* Get or set a pointer variable of any type, given its address. Accessing it through a `void **` would be undefined
 * behaviour, because the variable has another pointer type. */
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

/* Allocate an array of zeros, aligned to MEM_ALIGN. The caller frees it with mem_free().
 *
 * out  address of a pointer to the element type
 *
 * Returns ERR_OK; ERR_MEMORY with the size in the message.
 */
err_t mem_array(size_t count, size_t size, void *out);

/* Allocate bytes that the caller writes at once: not zeroed, and without more alignment than malloc() gives. For very
 * many small things. Freed with mem_free(). */
err_t mem_bytes(size_t n, void *out);

/* Grow an array to at least `count` elements, by doubling its capacity. New elements are zero.
 *
 * capacity  current capacity in elements; updated
 * array     address of the array pointer, which is NULL or from mem_array(); unchanged on error
 */
err_t mem_grow(size_t count, size_t size, size_t *capacity, void *array);

/* Free an array and set its pointer to NULL.
 *
 * array  address of the array pointer
 */
void mem_free(void *array);

/* Reserve address space for an array of zeros. A page costs memory only once it is touched, so an array can be sized
 * for the largest possible catalogue. The caller frees it with mem_release() and the same count and size. */
err_t mem_reserve(size_t count, size_t size, void *out);
void mem_release(void *array, size_t count, size_t size);

/* Give the memory of elements from..to-1 of a reserved array back to the system, in whole pages. Each of these elements
 * then has its old value or zeros. No element at or after `to` may have been touched. */
void mem_give_back(void *array, size_t from, size_t to, size_t size);

/* Copy bytes or a string. A zero byte follows the copy. The caller frees it with mem_free(). */
err_t mem_copy(struct span bytes, void *out);
err_t mem_copy_str(const char *text, char **out);

#endif
