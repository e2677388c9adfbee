/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the golden .safetensors files, for tests only. Any fault ends the program with a message. */
#ifndef TESTS_SUPPORT_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

struct golden;

/* Open a file of golden data.
 *
 * path   below the folder of golden data, like "books/weights.safetensors". The folder is $SLUICE_GOLDEN; else
 *        SLUICE_GOLDEN_DIR of the build; else tests/golden in the working directory
 */
struct golden *golden_open(const char *path);
void golden_close(struct golden **g);

/* Get a tensor, which must have this type and shape. Valid until golden_close(). An extent of 0 in `shape` matches any.
 */
const float *golden_f32(const struct golden *g, const char *name, size_t n_dims, const size_t *shape);
const double *golden_f64(const struct golden *g, const char *name, size_t n_dims, const size_t *shape);
const int64_t *golden_i64(const struct golden *g, const char *name, size_t n_dims, const size_t *shape);

/* The same with the shape as arguments: GOLDEN_F32(g, "phi", 16, 500). */
#define GOLDEN_ANY_(read, g, name, ...) \
  read(g, name, sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t), (const size_t[]){ __VA_ARGS__ })
#define GOLDEN_F32(g, name, ...) GOLDEN_ANY_(golden_f32, g, name, __VA_ARGS__)
#define GOLDEN_F64(g, name, ...) GOLDEN_ANY_(golden_f64, g, name, __VA_ARGS__)
#define GOLDEN_I64(g, name, ...) GOLDEN_ANY_(golden_i64, g, name, __VA_ARGS__)

/* Get the extent of one dimension of a tensor. */
size_t golden_extent(const struct golden *g, const char *name, size_t dim);

/* Get a value of __metadata__ as a number. */
double golden_number(const struct golden *g, const char *key);

#endif
