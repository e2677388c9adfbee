/* SPDX-License-Identifier: Apache-2.0 */
/* The file: a page with the identity, then the bits, which are mapped into memory. */
#include "daemon/ctl/writer/ctl_resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { HEADER_BYTES = 4096, IDENTITY_MAX = 4000 };

struct ctl_resume {
  char *path;
  int fd;
  uint8_t *bytes; /* the whole file */
  size_t n_bytes;
  uint64_t n_rows;
  const char *row; /* what one is called */
};

/* ---- Whose file it is ---- */

/* Return the length of the first line that differs. */
static size_t find_difference(const char **here, const char **there)
{
  for (;;) {
    size_t n = strcspn(*here, "\n"), n_there = strcspn(*there, "\n");
    if (n != n_there || strncmp(*here, *there, n) != 0 || (*here)[n] == '\0' || (*there)[n] == '\0')
      return n;
    *here += n + 1;
    *there += n + 1;
  }
}

/* Fail with what differs: most often the file that is loaded has changed. */
static err_t fail_difference(const struct ctl_resume *r, const char *there, const char *identity)
{
  const char *here = identity, *other = there;
  int n = (int)find_difference(&here, &other), n_other = (int)strcspn(other, "\n");
  size_t mark = strlen(CTL_RESUME_STATE);

  if (strncmp(here, CTL_RESUME_STATE, mark) == 0 && strncmp(other, CTL_RESUME_STATE, mark) == 0)
    FAIL(
        ERR_SYSTEM,
        "--resume: the file that is loaded has changed since %s was begun (%.*s then, %.*s now): if all was sent then, "
        "load what was added as a file of its own; else remove %s to send all %ss",
        r->path, n_other - (int)mark, other + mark, n - (int)mark, here + mark, r->path, r->row);
  FAIL(ERR_SYSTEM,
       "--resume: %s is not of this load: it has \"%.*s\", not \"%.*s\": name another file, or remove it to "
       "send all %ss",
       r->path, n_other, other, n, here, r->row);
}

/* A load of another size may be this one, of a file that has changed since. */
static err_t fail_size(const struct ctl_resume *r, const char *identity)
{
  char there[HEADER_BYTES + 1] = "";
  size_t first = strcspn(identity, "\n") + 1;

  if (pread(r->fd, there, HEADER_BYTES, 0) > 0 && strncmp(there, identity, first) == 0 && strcmp(there, identity) != 0)
    return fail_difference(r, there, identity);
  FAIL(ERR_SYSTEM,
       "--resume: %s is not of this load, which has %llu %s%s: name another file, or remove it to send all of them",
       r->path, (unsigned long long)r->n_rows, r->row, r->n_rows == 1 ? "" : "s");
}

/* Has the file only zeros? A new one has, and one of a load that was killed before it wrote the identity. */
static bool is_blank(const struct ctl_resume *r)
{
  return r->bytes[0] == 0 && memcmp(r->bytes, r->bytes + 1, r->n_bytes - 1) == 0;
}

/* Nothing is written into a file of another load, or of no load. */
static err_t verify_identity(struct ctl_resume *r, const char *identity)
{
  char there[HEADER_BYTES + 1] = "";

  if (is_blank(r)) {
    memcpy(r->bytes, identity, strlen(identity));
    return ERR_OK;
  }
  memcpy(there, r->bytes, HEADER_BYTES);
  return strcmp(there, identity) == 0 ? ERR_OK : fail_difference(r, there, identity);
}

/* ---- Opening ---- */

static err_t open_file(struct ctl_resume *r, const char *identity)
{
  struct stat status;

  r->fd = open(r->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (r->fd < 0)
    FAIL(ERR_SYSTEM, "--resume: %s cannot be opened: %s", r->path, strerror(errno));
  if (flock(r->fd, LOCK_EX | LOCK_NB) != 0)
    FAIL(ERR_SYSTEM, "--resume: %s is in use: is another load running?", r->path);
  if (fstat(r->fd, &status) != 0 || !S_ISREG(status.st_mode))
    FAIL(ERR_SYSTEM, "--resume: %s is not a file", r->path);
  if (status.st_size != 0 && (size_t)status.st_size != r->n_bytes)
    return fail_size(r, identity);
  int error = posix_fallocate(r->fd, 0, (off_t)r->n_bytes); /* a full disk must not show as a signal later */
  if (error)
    FAIL(ERR_SYSTEM, "--resume: %s cannot be written: %s", r->path, strerror(error));
  return ERR_OK;
}

static err_t map_file(struct ctl_resume *r)
{
  void *bytes = mmap(NULL, r->n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);

  if (bytes == MAP_FAILED)
    FAIL(ERR_SYSTEM, "--resume: %s cannot be mapped into memory: %s", r->path, strerror(errno));
  r->bytes = bytes;
  return ERR_OK;
}

err_t ctl_resume_open(const char *path, const char *identity, uint64_t n_rows, const char *row, struct ctl_resume **out)
{
  AUTO(ctl_resume_close) struct ctl_resume *r = NULL;

  if (strlen(identity) > IDENTITY_MAX)
    FAIL(ERR_SYSTEM, "--resume: the names of the files are too long to note");
  TRY(mem_array(1, sizeof *r, &r));
  r->fd = -1;
  r->n_rows = n_rows;
  r->row = row;
  r->n_bytes = HEADER_BYTES + (size_t)(n_rows / 8) + 1;
  TRY(mem_copy_str(path, &r->path));
  TRY(open_file(r, identity));
  TRY(map_file(r));
  TRY(verify_identity(r, identity));
  *out = r;
  r = NULL;
  return ERR_OK;
}

void ctl_resume_close(struct ctl_resume **r)
{
  if (!*r)
    return;
  if ((*r)->bytes)
    munmap((*r)->bytes, (*r)->n_bytes);
  if ((*r)->fd >= 0)
    close((*r)->fd);
  mem_free(&(*r)->path);
  mem_free(r);
}

void ctl_resume_mark(struct ctl_resume *r, uint64_t row)
{
  r->bytes[HEADER_BYTES + row / 8] |= (uint8_t)(1u << row % 8);
}

bool ctl_resume_has(const struct ctl_resume *r, uint64_t row)
{
  return r->bytes[HEADER_BYTES + row / 8] >> row % 8 & 1;
}

uint64_t ctl_resume_count(const struct ctl_resume *r)
{
  uint64_t n = 0;

  for (size_t i = HEADER_BYTES; i < r->n_bytes; i++)
    n += (uint64_t)__builtin_popcount(r->bytes[i]);
  return n;
}
