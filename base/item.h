/* SPDX-License-Identifier: Apache-2.0 */
/* Items and their changes: the nouns that ingest decodes, the store keeps and the engine searches. */
#ifndef BASE_ITEM_H
#define BASE_ITEM_H

#include "base/value.h"

enum { ITEM_KEY_MAX = 256, SPACE_NAME_MAX = 64 };

/* Borrowed f32 numbers. n = 0: not given. */
struct floats {
  const float *v;
  size_t n;
};

/* An item's data in one space. The space's similarity says which fields are set: see Part in proto/sluice.proto. */
struct part {
  struct span space;        /* name of the space */
  struct floats vector;     /* raw vector */
  struct floats components; /* component embeddings computed by the producer */
  struct floats item_gate;  /* output of the item-side gate computed by the producer */
  struct span codes;        /* for each split the number of its sub-item */
};

/* One change of one item. It borrows its bytes from the batch that it is part of. */
struct item_change {
  struct span key; /* 1..ITEM_KEY_MAX bytes */
  bool is_delete;
  bool is_sweep; /* a delete that no record asks for: see store_apply(). Partition, offset and time are not given */
  bool is_whole; /* the item's former parts and attributes are dropped; else those that are not named are kept */
  struct part *parts;
  size_t n_parts;
  struct attribute_value *attributes;
  size_t n_attributes;
  int32_t partition;
  int64_t offset;
  int64_t timestamp_ms; /* of the Kafka record */
};

/* A position in a partition: all offsets below `next` have been read. */
struct position {
  int32_t partition;
  int64_t next;
};

#endif
