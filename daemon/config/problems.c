/* SPDX-License-Identifier: Apache-2.0 */
/* Collect error messages and report them together. */
#include "daemon/config/problems.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Fits into a message of base/err.c, and leaves room for the line that counts the rest. */
enum { MESSAGE_BYTES = 960 };

void problems_fini(struct problems *p)
{
  for (size_t i = 0; i < p->n; i++)
    mem_free(&p->items[i]);
  *p = (struct problems){ 0 };
}

err_t problems_add(struct problems *p)
{
  for (size_t i = 0; i < p->n; i++) {
    if (strcmp(p->items[i], err_message()) == 0)
      return ERR_OK;
  }
  if (p->n == PROBLEMS_MAX) {
    p->n_more++;
    return ERR_OK;
  }
  TRY(mem_copy_str(err_message(), &p->items[p->n]));
  p->n++;
  return ERR_OK;
}

err_t problems_note(struct problems *p, err_code_t err)
{
  return err == ERR_CONFIG ? problems_add(p) : err;
}

err_t problems_verify(const struct problems *p)
{
  char text[MESSAGE_BYTES];
  size_t n_bytes = 0;
  size_t n_shown = 0;

  if (p->n == 0)
    return ERR_OK;
  while (n_shown < p->n && n_bytes + strlen(p->items[n_shown]) + 2 < sizeof text) {
    n_bytes += (size_t)snprintf(text + n_bytes, sizeof text - n_bytes, "%s%s", n_shown ? "\n" : "", p->items[n_shown]);
    n_shown++;
  }
  if (n_shown == 0) /* the first problem alone fills a message */
    FAIL(ERR_CONFIG, "%s", p->items[0]);
  size_t n_left = p->n + p->n_more - n_shown;
  if (n_left)
    FAIL(ERR_CONFIG, "%s\nand %zu more", text, n_left);
  FAIL(ERR_CONFIG, "%s", text);
}

void problems_print(const struct problems *p, const char *program)
{
  for (size_t i = 0; i < p->n; i++)
    fprintf(stderr, "%s: %s\n", program, p->items[i]);
  if (p->n_more)
    fprintf(stderr, "%s: and %zu more\n", program, p->n_more);
}
