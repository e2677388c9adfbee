/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor set, and what it defines by full names. Thread: one. Blocks: no. */
#ifndef INGEST_PROTOBUF_SET_H
#define INGEST_PROTOBUF_SET_H

#include "base/err.h"
#include "base/region.h"
#include "base/span.h"
#include "proto/descriptors.pb-c.h"

/* A message or an enum. */
struct protobuf_definition {
  const char *name; /* in full, without a dot in front */
  const Descriptors__File *file;
  const Descriptors__Message *message; /* NULL: an enum */
  const Descriptors__Enum *enumeration;
  size_t index; /* in the set */
  void *made;   /* for protobuf_schema.c: what has been made of it */
};

struct protobuf_set {
  size_t n;
  size_t capacity;
  struct protobuf_definition *definitions; /* [n] by name */
};

/* Read a set.
 *
 * r    where it lives
 * out  its list belongs to the caller, who frees it with protobuf_set_fini(), also on error
 *
 * Returns ERR_CONFIG with what is wrong and what to do; ERR_MEMORY. */
err_t protobuf_set_read(struct span bytes, struct region *r, struct protobuf_set *out);
void protobuf_set_fini(struct protobuf_set *set);

/* Find a definition by its full name; NULL: there is none. It belongs to the set. */
struct protobuf_definition *protobuf_set_find(const struct protobuf_set *set, const char *name);

/* Print the names of the first messages, for an error. Returns `text`. */
const char *protobuf_set_list(const struct protobuf_set *set, char *text, size_t size);

#endif
