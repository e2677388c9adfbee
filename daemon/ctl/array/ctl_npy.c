/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the header of a .npy file, the text of a Python dictionary, and check it against the size of the file. */
#include "daemon/ctl/array/ctl_npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto_close.h"
#include "base/mem.h"

enum { MAGIC_BYTES = 6, HEADER_MAX = 1 << 20, TYPE_MAX = 16 };

struct ctl_npy {
  char *path;
  uint8_t *bytes;
  size_t n_bytes;
  char *header;      /* the dictionary's text */
  size_t data_begin; /* where the numbers begin */
  struct tensor tensor;
};

static err_t map_file(struct ctl_npy *f)
{
  AUTO(auto_close_fd) int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;

  if (fd < 0)
    FAIL(ERR_ITEM, "%s: cannot be opened: %s", f->path, strerror(errno));
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    FAIL(ERR_ITEM, "%s: cannot be read: is it a file, and not empty?", f->path);
  void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED)
    FAIL(ERR_ITEM, "%s: cannot be mapped into memory: %s", f->path, strerror(errno));
  f->bytes = bytes;
  f->n_bytes = (size_t)status.st_size;
  return ERR_OK;
}

/* Find the dictionary. Its length has two bytes in version 1, and four in versions 2 and 3. */
static err_t find_header(struct ctl_npy *f)
{
  size_t n_length = f->n_bytes > MAGIC_BYTES && f->bytes[MAGIC_BYTES] == 1 ? 2 : 4;
  size_t begin = MAGIC_BYTES + 2 + n_length;
  uint32_t n = 0;

  if (f->n_bytes < begin || memcmp(f->bytes, "\x93NUMPY", MAGIC_BYTES) != 0)
    FAIL(ERR_ITEM, "%s: not a .npy file, or cut short", f->path);
  if (f->bytes[MAGIC_BYTES] < 1 || f->bytes[MAGIC_BYTES] > 3)
    FAIL(ERR_ITEM, "%s: its version of the .npy format is %u; 1 to 3 are known", f->path, f->bytes[MAGIC_BYTES]);
  memcpy(&n, f->bytes + MAGIC_BYTES + 2, n_length);
  if (n > HEADER_MAX || n > f->n_bytes - begin)
    FAIL(ERR_ITEM, "%s: not a .npy file, or cut short: its header would be %u bytes long", f->path, n);
  f->data_begin = begin + n;
  return mem_copy(span_of(f->bytes + begin, n), &f->header);
}

/* Find the text of a member's value. Returns NULL if there is no such member. */
static const char *find_member(const struct ctl_npy *f, const char *quoted_name)
{
  const char *at = strstr(f->header, quoted_name);

  if (!at)
    return NULL;
  at += strlen(quoted_name);
  at += strspn(at, " ");
  return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static bool find_type(const char *text, enum tensor_type *out)
{
  static const struct {
    const char *name;
    enum tensor_type type;
  } rows[] = {
    { "'<f4'", TENSOR_F32 }, { "'<f2'", TENSOR_F16 }, { "'<f8'", TENSOR_F64 }, { "'|u1'", TENSOR_U8 },
    { "'|i1'", TENSOR_I8 },  { "'<i2'", TENSOR_I16 }, { "'<u2'", TENSOR_U16 }, { "'<i4'", TENSOR_I32 },
    { "'<u4'", TENSOR_U32 }, { "'<i8'", TENSOR_I64 }, { "'<u8'", TENSOR_U64 },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strncmp(text, rows[i].name, strlen(rows[i].name)) == 0) {
      *out = rows[i].type;
      return true;
    }
  }
  return false;
}

static err_t read_type(struct ctl_npy *f)
{
  const char *text = find_member(f, "'descr'");

  if (!text)
    FAIL(ERR_ITEM, "%s: its header does not say the type of the numbers", f->path);
  if (find_type(text, &f->tensor.type))
    return ERR_OK;
  FAIL(
      ERR_ITEM,
      "%s: its type %.*s cannot be used: write it as float32 or float16, or as integers, of this machine's byte order; "
      "for BF16 use .safetensors",
      f->path, (int)(strcspn(text, ",") < TYPE_MAX ? strcspn(text, ",") : TYPE_MAX), text);
}

/* Read "(60000, 64)", "(60000,)" or "()". */
static err_t read_shape(struct ctl_npy *f)
{
  const char *at = find_member(f, "'shape'");
  struct tensor_shape shape = { 0 };

  if (!at || *at++ != '(')
    FAIL(ERR_ITEM, "%s: its header does not say the shape", f->path);
  for (at += strspn(at, " "); *at >= '0' && *at <= '9'; at += strspn(at, ", ")) {
    char *end;
    if (shape.n_dims == TENSOR_DIMS_MAX)
      FAIL(ERR_ITEM, "%s: it has more than %d dimensions", f->path, TENSOR_DIMS_MAX);
    errno = 0;
    shape.dim[shape.n_dims++] = strtoull(at, &end, 10);
    if (errno)
      FAIL(ERR_ITEM, "%s: its header has a dimension beyond any file", f->path);
    at = end;
  }
  if (*at != ')')
    FAIL(ERR_ITEM, "%s: its header does not say the shape", f->path);
  f->tensor.shape = shape;
  return ERR_OK;
}

static err_t read_order(const struct ctl_npy *f)
{
  const char *text = find_member(f, "'fortran_order'");

  if (text && strncmp(text, "False", strlen("False")) == 0)
    return ERR_OK;
  FAIL(ERR_ITEM, "%s: it is in Fortran's order, column by column: write numpy.ascontiguousarray(array)", f->path);
}

static err_t find_numbers(struct ctl_npy *f)
{
  size_t n_here = f->n_bytes - f->data_begin, count;
  char shape[TENSOR_SHAPE_TEXT_MAX];

  tensor_shape_print(&f->tensor.shape, shape);
  if (!tensor_shape_count(&f->tensor.shape, &count))
    FAIL(ERR_ITEM, "%s: its shape %s has more numbers than a file can hold", f->path, shape);
  size_t n_needed = count * tensor_type_bytes(f->tensor.type);
  if (n_needed != n_here)
    FAIL(ERR_ITEM, "%s: it has %zu bytes of numbers where its shape %s needs %zu: %s", f->path, n_here, shape, n_needed,
         n_here < n_needed ? "is it cut short?" : "there is something behind them");
  f->tensor.bytes = span_of(f->bytes + f->data_begin, n_here);
  f->tensor.name = f->path;
  return ERR_OK;
}

err_t ctl_npy_map(const char *path, struct ctl_npy **out)
{
  AUTO(ctl_npy_close) struct ctl_npy *f = NULL;

  TRY(mem_array(1, sizeof *f, &f));
  TRY(mem_copy_str(path, &f->path));
  TRY(map_file(f));
  TRY(find_header(f));
  TRY(read_type(f));
  TRY(read_order(f));
  TRY(read_shape(f));
  TRY(find_numbers(f));
  *out = f;
  f = NULL;
  return ERR_OK;
}

void ctl_npy_close(struct ctl_npy **f)
{
  if (!*f)
    return;
  if ((*f)->bytes)
    munmap((*f)->bytes, (*f)->n_bytes);
  mem_free(&(*f)->header);
  mem_free(&(*f)->path);
  mem_free(f);
}

const struct tensor *ctl_npy_tensor(const struct ctl_npy *f)
{
  return &f->tensor;
}
