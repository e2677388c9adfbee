/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an error message about a tensor that a model file lacks: exporters often forget to rename tensors. */
#ifndef ENGINE_MODEL_TENSOR_HINT_H
#define ENGINE_MODEL_TENSOR_HINT_H

#include "engine/model/safetensors.h"

enum { TENSOR_HINT_MAX = 512 };

/* Print which of the file's tensors resembles the missing one, and how to rename it. If none does, list some of the
 * names. The text starts with "; ". Thread: any. */
void tensor_hint_print(const struct safetensors *file, const char *missing, char text[TENSOR_HINT_MAX]);

#endif
