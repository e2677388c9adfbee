/* SPDX-License-Identifier: Apache-2.0 */
/* What to say where a model's tensor is not in its file: exports that forget to rename are common. */
#ifndef ENGINE_MODEL_TENSOR_HINT_H
#define ENGINE_MODEL_TENSOR_HINT_H

#include <stddef.h>

struct safetensors;

enum { TENSOR_HINT_MAX = 512 };

/* Print which of the file's tensors looks like the missing one, and how names are mended; or which tensors there are.
 * Starts with "; " or is empty. Thread: any. */
void tensor_hint_print(const struct safetensors *f, const char *missing, char text[TENSOR_HINT_MAX]);

#endif
