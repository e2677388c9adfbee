/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating arrays from the heap and from reserved address space. */
#include "base/mem.h"

#include <stdlib.h>
#include <sys/mman.h>

static err_t multiply(size_t count, size_t size, size_t *bytes)
{
  if (__builtin_mul_overflow(count, size, bytes))
    FAIL(ERR_MEMORY, "%zu elements of %zu bytes are more than this machine can address", count, size);
  return ERR_OK;
}

err_t mem_array(size_t count, size_t size, void *out)
{
  size_t bytes;
  void *p;

  TRY(multiply(count, size, &bytes));
  if (posix_memalign(&p, MEM_ALIGN, bytes ? bytes : 1) != 0)
    FAIL(ERR_MEMORY, "no memory for %zu bytes", bytes);
  memset(p, 0, bytes);
  mem_pointer_set(out, p);
  return ERR_OK;
}

err_t mem_bytes(size_t n, void *out)
{
  void *p = malloc(n ? n : 1);

  if (!p)
    FAIL(ERR_MEMORY, "no memory for %zu bytes", n);
  mem_pointer_set(out, p);
  return ERR_OK;
}

err_t mem_grow(size_t count, size_t size, size_t *capacity, void *array)
{
  void *old = mem_pointer_get(array);
  void *bigger;
  size_t want = *capacity ? *capacity : 16;

  if (count <= *capacity)
    return ERR_OK;
  while (want < count)
    want = want > SIZE_MAX / 2 ? count : 2 * want;
  TRY(mem_array(want, size, &bigger));
  if (old)
    memcpy(bigger, old, *capacity * size);
  free(old);
  mem_pointer_set(array, bigger);
  *capacity = want;
  return ERR_OK;
}

void mem_free(void *array)
{
  free(mem_pointer_get(array));
  mem_pointer_set(array, NULL);
}

/* From this size an array gets huge pages. On average half of its last page is wasted. */
enum { HUGE_FROM = 16 << 20 };

err_t mem_reserve(size_t count, size_t size, void *out)
{
  size_t bytes;

  TRY(multiply(count, size, &bytes));
  void *p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    FAIL(ERR_MEMORY, "no address space for %zu bytes: lower catalogue.max_items or raise the limit", bytes);
  if (bytes >= HUGE_FROM)
    madvise(p, bytes, MADV_HUGEPAGE); /* random reads miss the TLB less often; the system may refuse */
  mem_pointer_set(out, p);
  return ERR_OK;
}

void mem_release(void *array, size_t count, size_t size)
{
  void *p = mem_pointer_get(array);

  if (p)
    munmap(p, count && size ? count * size : 1);
  mem_pointer_set(array, NULL);
}

void mem_give_back(void *array, size_t from, size_t to, size_t size)
{
  enum { PAGE = 4096, HUGE = 2 << 20 };
  size_t step = to * size >= HUGE_FROM ? HUGE : PAGE; /* freeing part of a huge page would slow the rest down */
  uintptr_t first = ((uintptr_t)array + from * size + step - 1) & ~(uintptr_t)(step - 1);
  uintptr_t end = ((uintptr_t)array + to * size + PAGE - 1) & ~(uintptr_t)(PAGE - 1);

  if (array && from < to && first < end)
    (void)madvise((void *)first, end - first, MADV_DONTNEED); /* if refused, the memory stays in use */
}

err_t mem_copy(struct span bytes, void *out)
{
  void *p;

  TRY(mem_array(bytes.n + 1, 1, &p)); /* the zero byte after the copy */
  if (bytes.n)
    memcpy(p, bytes.p, bytes.n);
  mem_pointer_set(out, p);
  return ERR_OK;
}

err_t mem_copy_str(const char *text, char **out)
{
  return mem_copy(span_of_str(text), out);
}
