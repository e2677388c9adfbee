/* SPDX-License-Identifier: Apache-2.0 */
/* Reading only when poll(2) says that there is something. getline(3) would wait, even after Ctrl-C. */
#include "daemon/ctl/topk/ctl_topk_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum { READ_BYTES = 1 << 16 };

err_t ctl_topk_lines_open(const char *path, struct ctl_topk_lines *out)
{
  *out = (struct ctl_topk_lines){ .path = path };
  out->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (out->fd < 0)
    FAIL(ERR_SYSTEM, "%s cannot be opened: %s", path, strerror(errno));
  return ERR_OK;
}

void ctl_topk_lines_fini(struct ctl_topk_lines *l)
{
  if (l->fd > STDIN_FILENO)
    close(l->fd);
  mem_free(&l->bytes);
}

/* Take the next line of what was read. */
static bool find_line(struct ctl_topk_lines *l, struct span *out)
{
  size_t n_left = l->n - l->begin;
  const char *begin = n_left ? l->bytes + l->begin : NULL;
  const char *end = n_left ? memchr(begin, '\n', n_left) : NULL;

  if (!end && !(l->has_ended && n_left))
    return false;
  *out = span_of(begin, end ? (size_t)(end - begin) + 1 : n_left);
  l->begin += out->n;
  return true;
}

/* Would a read return at once? */
static bool can_read(const struct ctl_topk_lines *l)
{
  struct pollfd ready = { .fd = l->fd, .events = POLLIN };

  return poll(&ready, 1, 0) > 0;
}

static err_t read_more(struct ctl_topk_lines *l)
{
  TRY(mem_grow(l->n + READ_BYTES, 1, &l->capacity, &l->bytes));
  memmove(l->bytes, l->bytes + l->begin, l->n - l->begin);
  l->n -= l->begin;
  l->begin = 0;
  ssize_t n = read(l->fd, l->bytes + l->n, READ_BYTES);
  if (n < 0 && errno != EINTR && errno != EAGAIN)
    FAIL(ERR_SYSTEM, "%s cannot be read to its end: %s", l->path, strerror(errno));
  l->n += n > 0 ? (size_t)n : 0;
  l->has_ended = n == 0;
  return ERR_OK;
}

err_t ctl_topk_lines_next(struct ctl_topk_lines *l, struct span *out)
{
  *out = (struct span){ 0 };
  while (!find_line(l, out)) {
    if (l->has_ended || !can_read(l))
      return ERR_OK;
    TRY(read_more(l));
  }
  return ERR_OK;
}
