/* SPDX-License-Identifier: Apache-2.0 */
/* Items and their changes: the nouns that ingest decodes, the store keeps and the engine searches. */
#ifndef BASE_ITEM_H
#define BASE_ITEM_H

#include "base/span.h"

enum { ITEM_KEY_MAX = 256, SPACE_NAME_MAX = 64 };

/* Borrowed f32 numbers; n = 0 means "not given". */
struct floats {
  const float *v;
  size_t n;
};

/* What one space needs of an item. Which fields are set depends on the space's similarity (proto/sluice.proto, Part).
 */
struct part {
  struct span space;        /* name of the space */
  struct floats vector;     /* raw vector */
  struct floats components; /* ready-made component embeddings */
  struct floats item_gate;  /* ready-made item-side gate */
  struct span codes;        /* sub-item of each split */
};

/* One change of one item, borrowed from the batch that it came in. */
struct item_change {
  struct span key; /* 1..ITEM_KEY_MAX bytes */
  bool is_delete;
  bool is_whole; /* what the item had before is forgotten: parts not named here are absent */
  struct part *parts;
  size_t n_parts;
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms; /* of the Kafka record */
};

/* "Offsets below `next` of this catalogue partition have been seen." */
struct position {
  int32_t partition;
  int64_t next;
};

#endif
