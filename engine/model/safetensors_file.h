/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind `struct safetensors`. Private to safetensors*.c. */
#ifndef ENGINE_MODEL_SAFETENSORS_FILE_H
#define ENGINE_MODEL_SAFETENSORS_FILE_H

#include <jansson.h>

#include "engine/model/safetensors.h"

struct safetensors {
  char *path;
  uint8_t *bytes;
  size_t n_bytes;
  bool is_mapped;
  struct span data; /* the tensors, after the header */
  json_t *header;
};

#endif
