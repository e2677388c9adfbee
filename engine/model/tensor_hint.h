/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an error message about a tensor that a model file lacks: exporters often forget to rename tensors. */
#ifndef ENGINE_MODEL_TENSOR_HINT_H
#define ENGINE_MODEL_TENSOR_HINT_H

#include <stddef.h>

enum { TENSOR_HINT_MAX = 512 };

/* Iterates over the names of a file's tensors: the name after `previous`, the first after NULL, NULL at the end. The
 * hint takes it as an argument, so that this file does not depend on the reader of model files. */
struct safetensors;
typedef const char *(*tensor_hint_next)(const struct safetensors *file, const char *previous);

/* Print which of the file's tensors resembles the missing one, and how to rename it. If none does, list some of the
 * names. The text starts with "; ". Thread: any. */
void tensor_hint_print(const struct safetensors *file, tensor_hint_next next, const char *missing,
                       char text[TENSOR_HINT_MAX]);

#endif
